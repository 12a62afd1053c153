package environment

import "berth/events"

// RecordMeaning is what an event means to the record's table; empty if it does
// not concern the record. What has no row in the state that the record is in
// changes nothing.
func (s State) RecordMeaning(e events.Event) RecordOn {
	if !s.Concerns(e) {
		return ""
	}
	switch e := e.(type) {
	case events.SlotClaimed:
		return OnClaim
	case events.EnvironmentRefused:
		return OnRefusal
	case events.OperationRefused:
		if op := s.Operation; op != nil && op.ID == e.Operation && creates(op.Verb) && !throttled(e.Fault) {
			return OnRefusal
		}
	case events.EnvironmentObserved:
		return s.meant(&e.Facts)
	case events.OperationConfirmed:
		return s.meant(&e.Facts)
	case events.OperationLanded:
		return s.meant(&e.Facts)
	}
	return ""
}

func (s *State) meant(f *events.Facts) RecordOn {
	if s.Gone || s.WrittenOff {
		return ""
	}
	return s.seen(f)
}

// seen is what a provider's state means to the record: running as another
// incarnation is a replacement (scenario 58).
func (s *State) seen(f *events.Facts) RecordOn {
	on := sees(f.State)
	if on == OnRunning && f.Incarnation != "" && s.Incarnation != "" && f.Incarnation != s.Incarnation {
		return OnReplace
	}
	return on
}
