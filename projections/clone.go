package projections

import (
	"maps"
	"slices"

	"berth/events"
)

// Clone is a copy that shares nothing that either changes: both may go on
// being folded. Its cost is that of what is live, and of the names.
func (v *Views) Clone() *Views {
	c := *v
	c.live = make(map[events.Boundary]*entry, len(v.live))
	for b, e := range v.live {
		copied := *e
		c.live[b] = &copied
	}
	c.last = maps.Clone(v.last)
	c.retired = v.retired.clone()
	c.recent = recent{Commands: maps.Clone(v.recent.Commands), Order: slices.Clone(v.recent.Order)}
	c.writtenOff = maps.Clone(v.writtenOff) // its values are replaced, never changed
	c.goals = goals{open: maps.Clone(v.goals.open), offered: maps.Clone(v.goals.offered), ended: maps.Clone(v.goals.ended), order: slices.Clone(v.goals.order), count: maps.Clone(v.goals.count), unsettled: slices.Clone(v.goals.unsettled)}
	c.instances = make(map[events.InstanceID]*host, len(v.instances))
	for id, h := range v.instances {
		copied := *h
		copied.held = maps.Clone(h.held)
		c.instances[id] = &copied
	}
	c.meters = make(map[account]*Meter, len(v.meters))
	for a, m := range v.meters {
		copied := &Meter{}
		copied.merge(m)
		c.meters[a] = copied
	}
	c.quarantined = maps.Clone(v.quarantined)
	c.intents = maps.Clone(v.intents) // its values are replaced, never changed
	c.losses = slices.Clone(v.losses)
	return &c
}

// clone shares the bytes that are written, which never change; clipped, so
// that each goes on in a piece of its own.
func (p *packed) clone() packed {
	c := packed{chunks: slices.Clone(p.chunks), rows: slices.Clone(p.rows), words: p.words.clone(), sizes: p.sizes.clone(), caps: p.caps.clone()}
	for i := range c.chunks {
		c.chunks[i] = slices.Clip(c.chunks[i])
	}
	return c
}

// Clone is a copy of the views as they stand, for what takes longer than a
// read should: a snapshot, a comparison.
func (r *Runner) Clone() *Views {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.views.Clone()
}
