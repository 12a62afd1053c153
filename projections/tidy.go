package projections

import (
	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/events"
)

// tidy makes what a seat has in common with others the same string: each was
// decoded from its own record, and a live seat would otherwise hold a
// thousand bytes of copies. Only what this fold has just made is changed:
// next is not published yet, and its open operation is new if its pointer is.
func (v *Views) tidy(next, before *aggregates.Seat, es []events.Event) {
	for _, e := range es {
		switch e.(type) {
		case events.SlotClaimed:
			p := &next.Environment.Plan
			p.Provider, p.Image.Kind, p.Image.Reference = v.same(p.Provider), v.same(p.Image.Kind), v.same(p.Image.Reference)
			p.Resources.CPUs = v.retired.sizes.same(p.Resources.CPUs)
			next.Slot.Holder = events.InstanceID(v.same(string(next.Slot.Holder)))
			next.Environment.Target = events.Target(v.same(string(next.Environment.Target)))
		case events.HeadActivated:
			if next.Head.UID == next.Slot.UID {
				next.Head.UID = next.Slot.UID
			}
		case events.EnvironmentProbed:
			s := &next.Environment
			s.Host, s.Architecture, s.Engine, s.Network = v.same(s.Host), v.same(s.Architecture), v.same(s.Engine), v.same(s.Network)
			s.Image.Image.Kind, s.Image.Image.Reference = v.same(s.Image.Image.Kind), v.same(s.Image.Image.Reference)
			s.Image.Architecture, s.Image.ABI = v.same(s.Image.Architecture), v.same(s.Image.ABI)
			s.Image.Digest, s.Image.BundleSHA256 = v.same(s.Image.Digest), v.same(s.Image.BundleSHA256)
		case events.SlotTakenOver:
			next.Slot.Holder = events.InstanceID(v.same(string(next.Slot.Holder)))
		}
	}
	op := next.Environment.Operation
	if op == nil || op == before.Environment.Operation {
		return
	}
	v.tidyOperation(op, next)
}

// tidyAll is tidy for a seat that nobody else has seen, such as one that was
// read from a snapshot.
func (v *Views) tidyAll(s *aggregates.Seat) {
	v.tidy(s, &aggregates.Seat{}, []events.Event{events.SlotClaimed{}, events.HeadActivated{}, events.EnvironmentProbed{}})
	for _, op := range s.Environment.Done {
		v.tidyOperation(op, s)
	}
	for i := range s.Environment.Queue {
		v.tidyOperation(&s.Environment.Queue[i], s)
	}
}

func (v *Views) tidyOperation(op *environment.Operation, s *aggregates.Seat) {
	op.Verb = events.Verb(v.same(string(op.Verb)))
	op.Phase = environment.Phase(v.same(string(op.Phase)))
	op.Writer.Instance = events.InstanceID(v.same(string(op.Writer.Instance)))
	if op.Goal == s.Slot.Goal {
		op.Goal = s.Slot.Goal
	}
}

func (v *Views) same(s string) string {
	if s == "" {
		return ""
	}
	return v.retired.words.same(s)
}

// same is the value equal to v that the table holds.
func (t *table[T]) same(v T) T { return t.values[t.number(v)] }
