package sagas_test

import (
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/aggregates/turns"
	"berth/events"
	"berth/events/fault"
	"berth/sagas/sagastest"
)

// askTurn accepts a turn of a running seat and relays it, as the plane does.
func askTurn(t *testing.T, w *sagastest.World, within time.Duration) events.Boundary {
	t.Helper()
	w.Spawn("web")
	w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
	meta := func() events.Meta {
		return events.Meta{ID: events.EventID(w.IDs.UUID()), Time: events.MillisUTC(time.Now()), Caller: sagastest.Caller, Writer: events.Writer{Instance: sagastest.Instance, Epoch: 1}}
	}
	s, b := w.Seat("web"), events.GoalBoundary(sagastest.Caller, "turn-1")
	a := events.Allocation{Name: "web", Owner: sagastest.Owner, UID: s.Slot.UID, Environment: s.Environment.ID, Operation: events.OperationID(w.IDs.UUID())}
	until := events.MillisUTC(time.Now().Add(within))
	if _, _, err := w.Shelf.DecideGoal(t.Context(), b, meta(), func(g goal.State) ([]events.Event, error) {
		return g.Accept(events.GoalAccepted{Command: goal.CommandTurn, Fingerprint: "f", Request: []byte(`{}`), Holder: sagastest.Instance, Allocated: a, Ready: until})
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Shelf.DecideSeat(t.Context(), a.Owner, a.Name, meta(), func(s aggregates.Seat) ([]events.Event, error) {
		return s.Relay(events.TurnRelayed{UID: a.UID, Turn: a.Operation, Goal: string(b), Deadline: until}, time.Now())
	}); err != nil {
		t.Fatal(err)
	}
	return b
}

// Rules 2.6, decisions 1 and 11: the deadline of a turn holds for whoever holds
// the seat: on time, after a kill, and after another instance took it over.
func TestTheDeadlineOfATurnOutlivesItsManager(t *testing.T) {
	for name, then := range map[string]func(*testing.T, *sagastest.World){
		"nothing happens":          func(*testing.T, *sagastest.World) {},
		"the manager starts again": func(_ *testing.T, w *sagastest.World) { w.Restart() },
		"another takes the seat":   func(t *testing.T, w *sagastest.World) { w.Stop(); asOther(w); w.Start(); takeOver(t, w, "web") },
		"another, and starts again": func(t *testing.T, w *sagastest.World) {
			w.Stop()
			asOther(w)
			w.Start()
			takeOver(t, w, "web")
			w.Restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *sagastest.World) {
				b := askTurn(t, w, 10*time.Minute)
				then(t, w)
				w.Until("the turn's end", 20*time.Minute, w.Ended(b))
				g := w.Goal(b)
				if g.State != events.GoalFailed || g.Fault.Code != fault.DeadlineExceeded || g.Fault.Outcome != fault.Unknown {
					t.Errorf("%s %v\n%s", g.State, g.Fault, w.Story())
				}
				if late := g.EndedAt.Sub(g.Ready); late < 0 || late > time.Second {
					t.Errorf("it ended %s after its deadline", late)
				}
			})
		})
	}
}

// A turn of a seat that is retired ends before the seat is stopped, and says so.
func TestARetiredSeatEndsItsTurn(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		b := askTurn(t, w, time.Hour)
		w.Retire("web")
		w.Until("the turn's end", time.Minute, w.Ended(b))
		if g := w.Goal(b); g.State != events.GoalCancelled || g.Fault.Code != fault.Cancelled || g.Fault.Outcome != fault.Unknown {
			t.Errorf("%s %v\n%s", g.State, g.Fault, w.Story())
		}
		if s := w.Seat("web"); len(s.Turns.Pending) != 0 || s.Turns.Ended[0].Phase != turns.Dropped {
			t.Errorf("its turns are %+v", s.Turns)
		}
	})
}
