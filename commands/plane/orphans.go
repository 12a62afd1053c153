package plane

import (
	"context"
	"time"

	"berth/events"
	"berth/projections"
	"berth/sagas"
)

// An instance expires its own spawns at their deadline; one that has not done
// so orphanGrace later is taken for gone, and is looked for every orphanEvery.
const (
	orphanGrace = time.Minute
	orphanEvery = time.Minute
)

// Orphans expires the spawns that another instance accepted and never made,
// until ctx ends (decision 11): their instance died before it took the name,
// and may never come back. One that is alive loses nothing by it: the goal is
// past its deadline, and the fence on the name keeps a late claim out.
func (p *Plane) Orphans(ctx context.Context) error {
	left := map[events.Boundary]bool{} // looked at, and something was made: their holders' affair
	for {
		if len(left) > maxTrying {
			clear(left)
		}
		var found []projections.Goal
		p.Views.Read(func(v *projections.Views) { found = v.Unmade(p.Now().Add(-orphanGrace)) })
		for _, g := range found {
			if g.Command != goalSpawn || g.Holder == p.Self.Instance || left[g.Boundary] {
				continue
			}
			if err := p.expireOrphan(ctx, g, left); err != nil && !p.rest(ctx, g.Boundary, err) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(orphanEvery):
		}
	}
}

func (p *Plane) expireOrphan(ctx context.Context, g projections.Goal, left map[events.Boundary]bool) error {
	ctx, cancel := context.WithTimeout(ctx, carryFor)
	defer cancel()
	now, _, err := p.Shelf.Goal(ctx, g.Boundary)
	if err != nil {
		return err
	}
	if now.State != events.GoalStateAccepted || now.Holder == p.Self.Instance {
		return nil
	}
	ended, _, err := p.endUnmade(ctx, g.Boundary, now, sagas.Expire(now))
	if err == nil {
		left[g.Boundary] = !ended.State.Terminal()
	}
	return err
}
