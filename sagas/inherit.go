package sagas

import (
	"berth/aggregates"
	"berth/aggregates/slot"
	"berth/events"
)

//house:pure

// Inherited folds the boundary of a written-off environment (decision 13) as
// a seat that is at its end and holds nothing on this host: the rows that
// reconcile, exclude, stop and destroy then apply as they are, and the one
// that frees a name has nothing to free.
func Inherited(s aggregates.Seat, r events.Record) aggregates.Seat {
	foldInherited(&s, &r)
	return s
}

func foldInherited(s *aggregates.Seat, r *events.Record) {
	s.Fold(r)
	for _, e := range r.Events {
		if e, ok := e.(events.EnvironmentInherited); ok {
			s.Owner, s.Alias, _ = e.From.Seat()
			s.Slot = slot.State{Phase: slot.Terminalizing, UID: e.UID, Holder: e.Holder, Cleaned: true}
			if r.Meta.Writer.Instance == e.Holder { // epochs of two instances say nothing of each other
				s.Slot.Epoch = r.Meta.Writer.Epoch
			}
		}
	}
}

// settled says that nothing is left to do for a written-off environment.
func settled(s aggregates.Seat) bool {
	e := s.Environment
	return e.Operation == nil && (e.Gone || e.Ref == "")
}
