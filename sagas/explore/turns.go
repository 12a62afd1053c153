package explore

import (
	"time"

	"berth/aggregates/slot"
	"berth/aggregates/turns"
	"berth/events"
)

// within is how long a seat has for a turn of the walk: over at the next moment.
const within = 10 * time.Minute

// turn accepts the goal of a turn and relays it: two commits, of which the
// second is idempotent, so that a crash in between changes nothing here. One
// turn of a life is walked.
func (m *mover) turn(n int) {
	m.ask("turn", func(w *world) ([]events.Event, error) {
		l := w.edit(n)
		e := events.TurnRelayed{UID: l.uid, Turn: w.fresh(), Goal: string(l.asked), Deadline: w.now().Add(within)}
		es, err := w.seat.Relay(e, w.now())
		if err != nil || len(es) == 0 {
			return es, err
		}
		if l.turn.State != "" {
			return nil, nil
		}
		return es, w.tell(l, &l.turn, events.GoalAccepted{Command: "turn", Fingerprint: "f", Holder: w.self.Instance, Ready: e.Deadline,
			Allocated: events.Allocation{Name: w.name, Owner: "local", UID: l.uid, Environment: l.environment, Operation: e.Turn}})
	})
}

// yield is the seat's own answer, while it can give one.
func (m *mover) yield(n int) {
	l := m.w.lives[n]
	if l.turn.State == "" || l.seat != nil || l.truth != events.StateRunning {
		return
	}
	m.try("the seat gives its turn back", func(w *world) error {
		_, id, _ := l.asked.Goal()
		es, err := w.seat.Yield(l.uid, id, events.TurnYielded{Status: events.TurnDone}, "f", w.now())
		if err != nil {
			return w.refusal("turn-yield", es, err)
		}
		if len(es) == 0 {
			return errNotNow
		}
		return w.add(n, false, es...)
	})
}

// cancelTurn asks the goal of a turn to end; its seat is told at once.
func (m *mover) cancelTurn(n int) {
	if !m.mayAsk("cancel") {
		return
	}
	m.try("asked: cancel the turn", func(w *world) error {
		l := w.edit(n)
		es, err := l.turn.Cancel("graceful")
		if err != nil || len(es) == 0 {
			return errNotNow
		}
		w.left.Commands--
		if err := w.tell(l, &l.turn, es...); err != nil {
			return err
		}
		es = w.seat.CancelTurn(l.turn.Allocated.Operation)
		if l.seat != nil || len(es) == 0 {
			return nil
		}
		return w.add(n, false, es...)
	})
}

// lapses is what holds of the turns of a seat: none waits after its deadline,
// or for a life that is ending, while something else is done.
func (w *world) lapses(step string) (lapsed bool, err error) {
	s := *w.seat
	for _, t := range s.Turns.Pending {
		lapsed = lapsed || s.Slot.Phase == slot.Terminalizing || !w.now().Before(t.Deadline)
	}
	if !lapsed {
		return false, nil
	}
	if w.r.checks["2.6, turns"]++; step != "lapse" {
		return true, w.broken("2.6, turns", "a turn waits that is over, and what is done is %s", step)
	}
	return true, nil
}

// given is what must hold of the end of a turn: one, by the seat in time, or
// without it when its time or its life is over or its goal was cancelled.
func (w *world) given(n int, t turns.Turn, e events.Event) error {
	w.r.checks["2.6, turns"]++
	l := w.lives[n]
	over := !w.now().Before(t.Deadline)
	switch e := e.(type) {
	case events.TurnYielded:
		if t.Phase != turns.Pending || over {
			return w.broken("2.6, turns", "a turn is given back that is %s, over %t", t.Phase, over)
		}
	case events.TurnDropped:
		ending := w.seat.Slot.Phase == slot.Terminalizing || l.turn.State == events.GoalStateCancelling
		if t.Phase != turns.Pending || !over && !ending {
			return w.broken("2.6, turns", "a turn is dropped that is %s, over %t: %s", t.Phase, over, e.Reason)
		}
	}
	return nil
}
