package aggregates

import (
	"time"

	"berth/aggregates/environment"
	"berth/aggregates/slot"
	"berth/aggregates/turns"
	"berth/events"
	"berth/events/fault"
)

// Relay queues a turn at the seat that it is meant for, once for its id. A seat
// that does not run is refused, and so is one more than turns.MaxPending.
func (s Seat) Relay(e events.TurnRelayed, now time.Time) ([]events.Event, error) {
	if err := s.held(); err != nil {
		return nil, err
	}
	if err := s.Slot.Is(e.UID); err != nil {
		return nil, err
	}
	if _, ok := s.Turns.Find(e.Turn); ok {
		return nil, nil
	}
	_, id, _ := events.Boundary(e.Goal).Goal()
	other, same := s.Turns.Named(id)
	switch {
	case !now.Before(e.Deadline):
		return nil, turns.TooLate(s.Alias, e.Deadline)
	case s.Slot.Phase != slot.Active || s.Environment.Record != environment.Running:
		return nil, fault.New(fault.FailedPrecondition, "%s is %s: a turn needs a running seat", s.Alias, s.Status()).WithHint("`berth inspect %s` shows how it is", s.Alias)
	case same && other.Phase == turns.Pending:
		return nil, fault.New(fault.Conflict, "a turn of another caller with the goal id %s waits at %s", id, s.Alias).WithHint("use a new goal id")
	}
	if err := s.Turns.Check(e); err != nil {
		return nil, err
	}
	return []events.Event{e}, nil
}

// Yield gives a turn back, by its goal's id and for the seat itself. A repeat
// of the request that gave it back decides nothing. Refused: a turn that is not
// this seat's (not-found), one that waits behind another, whose deadline is over
// or that has ended otherwise (failed-precondition).
func (s Seat) Yield(uid events.UID, id events.GoalID, e events.TurnYielded, fingerprint string, now time.Time) ([]events.Event, error) {
	if err := s.Self(uid); err != nil {
		return nil, err
	}
	t, ok := s.Turns.Named(id)
	switch {
	case !ok:
		return nil, fault.New(fault.NotFound, "there is no turn %s of %s", id, s.Alias).WithHint("`berth turn-pending` shows the one that waits")
	case t.Phase == turns.Yielded && t.Fingerprint == fingerprint:
		return nil, nil
	case t.Phase == turns.Pending && !now.Before(t.Deadline):
		return nil, fault.New(fault.FailedPrecondition, "the deadline of turn %s is over", id).
			WithDetail(turns.DetailDeadline, "deadline", t.Deadline.UTC().Format(time.RFC3339))
	case t.Phase == turns.Pending && !s.Turns.Shown(t.ID):
		return nil, fault.New(fault.FailedPrecondition, "turn %s waits behind another: only the oldest is given back", id).WithHint("`berth turn-pending` shows it")
	case t.Phase != turns.Pending:
		f := fault.New(fault.FailedPrecondition, "turn %s has ended: it was %s", id, t.Phase)
		if t.Reason == turns.ReasonDeadline {
			return nil, f.WithDetail(turns.DetailDeadline, "deadline", t.Deadline.UTC().Format(time.RFC3339))
		}
		return nil, f
	}
	e.UID, e.Turn = uid, t.ID
	return []events.Event{e}, nil
}

// Self refuses a caller that is not the current lifecycle of this name: a
// seat that asks for itself is who the head says (decision 21).
func (s Seat) Self(uid events.UID) error {
	if err := s.readable(); err != nil {
		return err
	}
	if !s.Slot.Held() || s.Slot.UID != uid || s.Head.UID != uid {
		return fault.New(fault.Expired, "lifecycle %s is not the current one of %s", uid, s.Alias)
	}
	return nil
}

// DropTurns ends the turns whose deadline is over, and all of them when the
// life is on its way out. Only the one that was shown may have been begun.
func (s Seat) DropTurns(now time.Time) []events.Event {
	var out []events.Event
	for _, t := range s.Turns.Pending {
		reason := turns.ReasonDeadline
		switch {
		case s.Slot.Phase == slot.Terminalizing:
			reason = s.Slot.Reason
		case now.Before(t.Deadline):
			continue
		}
		out = append(out, s.dropped(t, reason))
	}
	return out
}

// CancelTurn ends a turn that waits, for its goal; nothing if it has ended.
func (s Seat) CancelTurn(id events.OperationID) []events.Event {
	t, ok := s.Turns.Find(id)
	if !ok || t.Phase != turns.Pending || !s.Slot.Held() {
		return nil
	}
	return []events.Event{s.dropped(t, turns.ReasonCancelled)}
}

func (s Seat) dropped(t turns.Turn, reason string) events.TurnDropped {
	e := events.TurnDropped{UID: s.Turns.UID, Turn: t.ID, Reason: reason, Outcome: fault.NotExecuted}
	if s.Turns.Shown(t.ID) {
		e.Outcome = fault.Unknown
	}
	if env := s.Environment; env.Record == environment.Stopped {
		e.DownAt = env.StoppedAt
	}
	return e
}

// NextLapse is the first deadline of a turn that waits; zero if none does.
func (s Seat) NextLapse() time.Time {
	var at time.Time
	for _, t := range s.Turns.Pending {
		if at.IsZero() || t.Deadline.Before(at) {
			at = t.Deadline
		}
	}
	return at
}
