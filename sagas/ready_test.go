package sagas_test

import (
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/slot"
	"berth/events"
	"berth/providers/drill"
	"berth/sagas/sagastest"
)

// withSign has every spawn ask for a sign of its seat.
func withSign(w *sagastest.World) {
	w.Alter = func(p *events.Plan) {
		p.Connector = &events.Connector{Name: "exec", Ready: &events.ReadySign{Kind: events.SignFD}}
	}
}

// 2.6: a seat whose process runs is not managed before it showed its sign; the
// goal then succeeds and the record says by what.
func TestASeatIsManagedWhenItShowsItsSign(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		withSign(w)
		goal := w.Spawn("web")
		w.Until("the start", time.Minute, func() bool { return w.Seat("web").Environment.Started })
		if s := w.Seat("web"); s.Slot.Phase != slot.Provisioning || s.Status() != aggregates.StatusStarting {
			t.Fatalf("%s, %s before its sign", s.Slot.Phase, s.Status())
		}
		w.Until("the goal's end", time.Minute, w.Ended(goal))
		s := w.Seat("web")
		if g := w.Goal(goal); g.State != events.GoalSucceeded || s.Environment.Ready == nil || s.Environment.Ready.Evidence == "" {
			t.Fatalf("%s, ready %+v", g.State, s.Environment.Ready)
		}
	}, drill.Rule{Verb: "start", Fault: drill.Unready, DelayMs: 5_000})
}

// 2.6: neither a sign nor an end within the window is uncertain: the seat
// stays managed, is never started again, and a late sign settles the goal.
func TestASeatWithoutItsSignIsUncertain(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		withSign(w)
		goal := w.Spawn("web")
		w.Until("the goal's end", time.Hour, w.Ended(goal))
		if g := w.Goal(goal); g.State != events.GoalUncertain || g.EndedAt.Before(g.Ready) {
			t.Fatalf("%s at %s, ready by %s", g.State, g.EndedAt, g.Ready)
		}
		w.Until("running", time.Hour, w.Status("web", aggregates.StatusRunning))
		finish2(t, w, goal, events.GoalSucceeded)
		starts := 0
		for _, c := range w.Provider.Status().Calls {
			if c.Verb == "start" {
				starts++
			}
		}
		if starts != 1 {
			t.Errorf("it was started %d times", starts)
		}
	}, drill.Rule{Verb: "start", Fault: drill.Unready, DelayMs: 600_000})
}
