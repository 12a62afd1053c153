package projections

import (
	"iter"

	"berth/events"
)

// Records gives every record that is served, each with a name that says what
// it is, in no particular order: what a comparison of two views compares.
// Values are those of the aggregates, or rows.
func (v *Views) Records() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		if !yield("counts", v.counts) || !yield("quarantined", v.Quarantined()) || !yield("losses", v.losses) {
			return
		}
		for b, e := range v.live {
			if !yield(string(b), e.seat) {
				return
			}
		}
		for i := range v.retired.rows {
			r := v.retiredRow(uint32(i))
			r.prev = 0 // a row number, which is nothing that is served
			if !yield("retired."+string(r.Owner)+"."+string(r.Alias)+"."+string(r.UID), r) {
				return
			}
		}
		v.otherRecords(yield)
	}
}

func (v *Views) otherRecords(yield func(string, any) bool) {
	for id, s := range v.writtenOff {
		if !yield(string(events.EnvironmentBoundary(id)), *s) {
			return
		}
	}
	for _, g := range v.Goals(true) {
		if !yield(string(g.Boundary), g.State) {
			return
		}
	}
	for _, b := range v.goals.unsettled {
		if !yield("unsettled."+string(b), true) {
			return
		}
	}
	for s, n := range v.goals.count {
		if !yield("goals."+string(s), n) {
			return
		}
	}
	for _, h := range v.Hosts() {
		if !yield(string(events.InstanceBoundary(h.Instance)), h) {
			return
		}
	}
	for a, m := range v.meters {
		if !yield("usage."+string(a.owner)+"."+a.provider, m.amounts(nil)) {
			return
		}
	}
}
