package sagas_test

import (
	"context"
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/events"
	"berth/providers/drill"
	"berth/sagas"
	"berth/sagas/sagastest"
)

const other = events.InstanceID("bbbbbbbbbbbbbbbbbbbbbbbbbb")

// asOther lets the next start of the world be that of another instance.
func asOther(w *sagastest.World, about ...events.Boundary) {
	w.Options = func(o *sagas.Options) {
		o.Self = events.Writer{Instance: other, Epoch: 1}
		o.About = func(events.Boundary) []events.Boundary { return about }
		o.Continue = func(ctx context.Context, b events.Boundary, g goal.State) error {
			if g.Command == "spawn" {
				return nil // a spawn is claimed only by who accepted it
			}
			_, _, err := w.Shelf.DecideSeat(ctx, g.Allocated.Owner, g.Allocated.Name, events.Meta{ID: events.EventID(w.IDs.UUID()), Time: events.MillisUTC(time.Now()), Caller: sagastest.Caller, Writer: o.Self},
				func(s aggregates.Seat) ([]events.Event, error) {
					if _, ok := s.Environment.Find(g.Allocated.Operation); ok {
						return nil, nil
					}
					return s.Plan(events.OperationPlanned{Operation: g.Allocated.Operation, Verb: events.Verb(g.Command), Goal: string(b), Arguments: events.Arguments{CheckpointID: "c-1"}}, time.Now())
				})
			return err
		}
	}
}

// takeOver is an operator's decision that the other instance holds a seat.
func takeOver(t *testing.T, w *sagastest.World, alias events.Alias) {
	t.Helper()
	meta := events.Meta{ID: events.EventID(w.IDs.UUID()), Time: events.MillisUTC(time.Now()), Caller: sagastest.Caller, Writer: events.Writer{Instance: other, Epoch: 1}}
	if _, _, err := w.Shelf.DecideSeat(t.Context(), sagastest.Owner, alias, meta, func(s aggregates.Seat) ([]events.Event, error) { return s.TakeOver(other, 1) }); err != nil {
		t.Fatal(err)
	}
}

// Decisions 1 and 11: an instance is killed and its seat is taken over. The
// goals that are about the seat go with it, whatever they waited for, also
// when the new holder is killed in its turn.
func TestATakenOverSeatBringsItsGoals(t *testing.T) {
	slow := func(verb drill.Verb) drill.Rule {
		return drill.Rule{Verb: verb, Nth: 1, Fault: drill.AcceptThenDrop, DelayMs: 60_000}
	}
	running := func(w *sagastest.World) {
		w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
	}
	checkpoint := func(w *sagastest.World) events.Boundary {
		w.Spawn("web")
		running(w)
		_, b := w.AskGoal("web", events.VerbCheckpoint, events.Arguments{CheckpointID: "c-1"})
		return b
	}
	for _, c := range []struct {
		name  string
		rule  drill.Rule
		begin func(t *testing.T, w *sagastest.World) events.Boundary
		want  events.GoalState
	}{
		{"a spawn in the middle", slow("provision"), func(_ *testing.T, w *sagastest.World) events.Boundary {
			b := w.Spawn("web")
			w.Until("uncertain", time.Minute, w.Status("web", aggregates.StatusUncertain))
			return b
		}, events.GoalSucceeded},
		{"a spawn that was cancelled", slow("provision"), func(t *testing.T, w *sagastest.World) events.Boundary {
			b := w.Spawn("web")
			w.Until("uncertain", time.Minute, w.Status("web", aggregates.StatusUncertain))
			if err := w.Cancel(b); err != nil {
				t.Fatal(err)
			}
			return b
		}, events.GoalCancelled},
		{"a checkpoint whose answer is lost", slow("checkpoint"), func(_ *testing.T, w *sagastest.World) events.Boundary {
			b := checkpoint(w)
			w.Until("uncertain", time.Minute, w.Status("web", aggregates.StatusUncertain))
			return b
		}, events.GoalFailed}, // the new holder had it excluded
		{"a checkpoint that is queued", slow("pause"), func(t *testing.T, w *sagastest.World) events.Boundary {
			w.Spawn("web")
			running(w)
			if _, err := w.Ask("web", events.VerbPause, events.Arguments{}); err != nil {
				t.Fatal(err)
			}
			w.Until("uncertain", time.Minute, w.Status("web", aggregates.StatusUncertain))
			_, b := w.AskGoal("web", events.VerbCheckpoint, events.Arguments{CheckpointID: "c-1"})
			return b
		}, events.GoalSucceeded},
	} {
		for _, twice := range []bool{false, true} {
			t.Run(c.name+map[bool]string{true: ", killed twice"}[twice], func(t *testing.T) {
				bubble(t, func(t *testing.T, w *sagastest.World) {
					b := c.begin(t, w)
					w.Stop()
					asOther(w)
					w.Start()
					takeOver(t, w, "web")
					if twice {
						w.Restart()
					}
					w.Until("the goal's end", time.Hour, func() bool {
						g := w.Goal(b)
						return g.State.Terminal() && (g.State != events.GoalUncertain || g.Settled != nil)
					})
					g := w.Goal(b)
					if got := g.State; got != c.want && (g.Settled == nil || g.Settled.State != c.want) {
						t.Errorf("%s, settled %+v; want %s\n%s", got, g.Settled, c.want, w.Story())
					}
				}, c.rule)
			})
		}
	}
}

// Decision 2: a goal that was accepted, and whose instance died before it was
// on the seat, is found by the seat's new holder and continued.
func TestATakenOverSeatBringsAGoalThatIsNotOnItYet(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Spawn("web")
		w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
		w.Stop()
		s := w.Seat("web")
		b := events.GoalBoundary(sagastest.Caller, "checkpoint-1")
		meta := events.Meta{ID: events.EventID(w.IDs.UUID()), Time: events.MillisUTC(time.Now()), Caller: sagastest.Caller, Writer: events.Writer{Instance: sagastest.Instance, Epoch: 1}}
		_, _, err := w.Shelf.DecideGoal(t.Context(), b, meta, func(g goal.State) ([]events.Event, error) {
			return g.Accept(events.GoalAccepted{Command: "checkpoint", Fingerprint: "f", Request: []byte(`"x"`), Holder: sagastest.Instance,
				Allocated: events.Allocation{Name: "web", Owner: sagastest.Owner, Environment: s.Environment.ID, Operation: events.OperationID(w.IDs.UUID())}})
		})
		if err != nil {
			t.Fatal(err)
		}
		asOther(w, b)
		w.Start()
		calls := len(w.Provider.Status().Calls)
		takeOver(t, w, "web")
		w.Until("the goal's end", time.Hour, w.Ended(b))
		if g := w.Goal(b); g.State != events.GoalSucceeded {
			t.Errorf("%s: %v\n%s", g.State, g.Fault, w.Story())
		}
		// What came from another instance is looked at before anything else.
		if now := w.Provider.Status().Calls; len(now) <= calls || now[calls].Verb != "inspect" {
			t.Errorf("the environment was not looked at\n%s", w.Story())
		}
	})
}

// A goal of ours about a seat that another instance holds now is settled by
// what that seat's records say, though the seat is not ours.
func TestAGoalOfALostSeatIsStillSettled(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		b := w.Spawn("web")
		time.Sleep(sagas.PatienceOf(events.VerbProvision).Call - time.Second)
		w.Until("uncertain", 10*time.Second, w.Status("web", aggregates.StatusUncertain))
		if g := w.Goal(b); g.State != events.GoalUncertain {
			t.Fatalf("the goal is %s", g.State)
		}
		takeOver(t, w, "web")
		time.Sleep(time.Minute)
		if n := w.Engine.Stats(); n.Seats != 0 || n.Goals != 1 {
			t.Fatalf("it has %+v", n)
		}
		w.WriteOff("web")
		w.Until("its settlement", time.Second, func() bool { return w.Goal(b).Settled != nil })
		w.Until("that it is forgotten", time.Second, func() bool { return w.Engine.Stats().Goals == 0 })
	}, drill.Rule{Verb: "provision", Nth: 1, Fault: drill.NeverAnswer, DelayMs: 3_600_000})
}
