package explore

import (
	"errors"
	"fmt"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/aggregates/slot"
	"berth/events"
)

var (
	errNotNow = errors.New("not now")
	errMoved  = errors.New("the boundary has moved")
)

// commit appends to the name's boundary, or with heir to that of life n's
// written-off environment, if nothing was appended since sequence seen. It
// returns the law that was broken.
func (w *world) commit(n int, heir bool, by events.Writer, seen uint64, es ...events.Event) error {
	if err := w.r.strange(w, es); err != nil {
		return err
	}
	at := &w.seat
	if heir {
		at = &w.edit(n).heir
	}
	before := **at
	if !w.r.Takes(seen, before.Sequence) {
		return errMoved
	}
	if held := before.Slot; held.Held() && (held.Holder == by.Instance && held.Epoch > by.Epoch || seen != before.Sequence) {
		return w.broken("law 3", "epoch %d of %.1s appends, and the seat is of epoch %d of %.1s", by.Epoch, by.Instance, held.Epoch, held.Holder)
	}
	w.r.checks["law 3"]++
	meta := events.Meta{Time: w.now(), Writer: by}
	for _, e := range es {
		s := **at
		if err := s.Check(meta, e); err != nil {
			return fmt.Errorf("law 2: the tables refuse what was appended: %w", err)
		}
		after := w.r.Fold(s, meta, e)
		w.r.seen(s, after, e)
		after.Sequence = before.Sequence + 1
		*at = &after
		if err := w.step(n, s, after, e); err != nil {
			return err
		}
	}
	w.next++
	if heir {
		return nil
	}
	return w.probes()
}

// add appends by who acts.
func (w *world) add(n int, heir bool, es ...events.Event) error {
	at := w.seat
	if heir {
		at = w.lives[n].heir
	}
	return w.commit(n, heir, w.self, at.Sequence, es...)
}

// step is what must hold of one event, and what it means for an open call.
func (w *world) step(n int, before, after aggregates.Seat, e events.Event) error {
	if _, ok := e.(events.SlotClaimed); ok || n < 0 {
		return nil
	}
	if err := w.transition(n, before, after, e); err != nil {
		return err
	}
	was, is := before.Environment.Operation, after.Environment.Operation
	if was == nil || is != nil && is.ID == was.ID || after.Environment.WrittenOff {
		return nil
	}
	l := w.edit(n)
	c := l.call
	l.call = nil
	if c == nil {
		return nil
	}
	if !c.landed && !c.fenced {
		return w.broken("law 2, H13", "%s is settled and may still land", c.verb)
	}
	w.r.checks["law 2, H13"]++
	switch e.(type) {
	case events.OperationExcluded, events.OperationRefused:
		if c.landed {
			return w.broken("law 2, E8", "%s has landed and is recorded as never executed", c.verb)
		}
	case events.OperationConfirmed, events.OperationLanded:
		if !c.landed {
			return w.broken("R30, E8", "%s has not landed and is recorded as done", c.verb)
		}
	}
	w.r.checks["law 2, E8"]++
	w.r.checks["R30, E8"]++
	return nil
}

// tell appends to a goal's boundary.
func (w *world) tell(l *life, g *goal.State, es ...events.Event) error {
	for _, e := range es {
		was := *g
		on, _ := goal.Meaning(e)
		*g = was.Apply(w.meta(), e)
		w.r.edge("goal", string(was.State), string(on), string(g.State))
		ended, isEnd := e.(events.GoalEnded)
		switch {
		case was.State.Terminal() && (was.State != events.GoalUncertain || was.Settled != nil):
			return w.broken("2.6", "%s is appended to a goal that is %s", e.EventType(), was.State)
		case isEnd && ended.State == events.GoalUncertain && w.now().Before(was.Ready):
			return w.broken("decision 14", "a goal is uncertain before its readiness deadline")
		case isEnd && ended.State == events.GoalSucceeded && g == &l.goal && !l.ran && !(w.left.Reserved && l.truth != ""):
			return w.broken("H11", "the goal succeeded and the seat never was where it was to be")
		case isEnd && ended.State == events.GoalExpired && w.now().Before(was.Ready):
			return w.broken("2.6", "a goal expired before its readiness deadline")
		}
		w.r.checks["2.6"]++
		w.r.checks["decision 14"]++
		w.r.checks["H11"]++
	}
	return nil
}

// broken is a law that does not hold.
func (w *world) broken(law, format string, args ...any) error {
	return fmt.Errorf(law+": "+format, args...)
}

// open says that an operation may still have an effect.
func open(e environment.State) bool { return e.Operation != nil && e.Operation.Open() }

func retired(s aggregates.Seat) bool { return s.Slot.Phase == slot.Retired }
