package sagas_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/slot"
	"berth/events"
	"berth/providers/drill"
	"berth/sagas/sagastest"
)

// lifetime asks for everything that can be asked of a seat, as far as it gets,
// and ends it.
func lifetime(t *testing.T, w *sagastest.World) {
	goal := w.Spawn("web")
	live(t, w, goal)
	if w.Seat("web").Slot.Held() {
		w.Retire("web")
	}
	gone(t, w, "web")
	finish(t, w, goal)
}

// live waits until the seat runs or the spawn failed, and then uses it.
func live(t *testing.T, w *sagastest.World, goal events.Boundary) {
	settledDown := func() bool {
		s := w.Seat("web")
		return s.Environment.Operation == nil && len(s.Environment.Queue) == 0 && s.Slot.Phase != slot.Provisioning
	}
	w.Until("the spawn's end", 3*time.Hour, func() bool { return settledDown() && w.Ended(goal)() })
	if w.Seat("web").Slot.Phase != slot.Active {
		return
	}
	to := w.Seat("web").Environment.Deadline.Add(15 * time.Minute)
	for _, ask := range []struct {
		verb events.Verb
		args events.Arguments
	}{
		{events.VerbExtend, events.Arguments{ExtendTo: &to}},
		{events.VerbPause, events.Arguments{}},
		{events.VerbResume, events.Arguments{}},
		{events.VerbCheckpoint, events.Arguments{CheckpointID: "checkpoint-1"}},
		{events.VerbRestore, events.Arguments{CheckpointID: "checkpoint-1"}},
		{events.VerbExport, events.Arguments{CheckpointID: "checkpoint-1", MaxBytes: 1 << 20}},
	} {
		if _, err := w.Ask("web", ask.verb, ask.args); err != nil {
			continue // an earlier fault made it impossible, and it was said
		}
		w.Until("the end of "+string(ask.verb), 3*time.Hour, settledDown)
	}
}

// finish waits for the spawn's goal and holds it against the facts.
func finish(t *testing.T, w *sagastest.World, goal events.Boundary) {
	t.Helper()
	w.Until("the goal's end", 3*time.Hour, func() bool {
		g := w.Goal(goal)
		return g.State.Terminal() && (g.State != events.GoalUncertain || g.Settled != nil)
	})
	if n := w.Creations(); n > 1 {
		t.Errorf("%d environments were made for one spawn\n%s", n, w.Story())
	}
	w.Until("rest", time.Hour, w.Engine.Idle)
	if s := w.Engine.Stats(); s.Seats+s.Goals+s.Open+s.InFlight+s.Failing > 0 {
		t.Errorf("the engine still holds %+v", s)
	}
}

// Every fault at the first call of every verb ends with nothing left, and no
// second environment (scenarios 1, 4, 6, 17, 40, 42; R32, H12).
func TestEveryFaultAtEveryVerbEnds(t *testing.T) {
	verbs := append(slices.Clone(events.Verbs), "reconcile", "exclude", "inspect", "preflight", "describe-image", "read-file")
	faults := []drill.Fault{drill.AcceptThenDrop, drill.AcceptThenLateAnswer, drill.ErrorAfterAccept, drill.NeverAnswer,
		drill.Refuse, drill.Throttle, drill.Stuck, drill.Vanish, drill.SwapIncarnation}
	for _, v := range verbs {
		for _, f := range faults {
			r := drill.Rule{Verb: drill.Verb(v), Nth: 1, Fault: f}
			if f == drill.AcceptThenLateAnswer {
				r.DelayMs = 400_000 // beyond most deadlines of a call
			}
			if (drill.Script{Rules: []drill.Rule{r}}).Check() != nil {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", v, f), func(t *testing.T) { bubble(t, lifetime, r) })
		}
	}
}

// The same with every call of the verb, for the faults that can be lived with.
func TestLastingFaultsEnd(t *testing.T) {
	for _, v := range events.Verbs {
		for _, f := range []drill.Fault{drill.AcceptThenDrop, drill.ErrorAfterAccept, drill.NeverAnswer} {
			r := drill.Rule{Verb: drill.Verb(v), Fault: f}
			t.Run(fmt.Sprintf("%s/%s", v, f), func(t *testing.T) { bubble(t, lifetime, r) })
		}
	}
}

// Scenarios 1 and 4: a create whose answer was lost is not created again; its
// operation id is asked about first.
func TestLostCreateIsReconciledNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		goal := w.Spawn("web")
		w.Until("running", time.Hour, w.Status("web", aggregates.StatusRunning))
		var calls []string
		for _, c := range w.Provider.Status().Calls {
			if c.Operation != "" {
				calls = append(calls, string(c.Verb))
			}
		}
		if got := strings.Join(calls, " "); got != "reserve reconcile provision start" {
			t.Errorf("calls: %s", got)
		}
		w.Until("the goal", time.Minute, w.Ended(goal))
	}, drill.Rule{Verb: "reserve", Nth: 1, Fault: drill.AcceptThenDrop})
}

// Scenario 6: an answer that comes after the deadline is bound to its
// operation.
func TestLateAnswerIsBoundToItsOperation(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Spawn("web")
		w.Until("uncertain", 10*time.Minute, w.Status("web", aggregates.StatusUncertain))
		id := w.Seat("web").Environment.Operation.ID
		w.Until("running", time.Hour, w.Status("web", aggregates.StatusRunning))
		op, ok := w.Seat("web").Environment.Find(id)
		if !ok || op.Phase != environment.Landed {
			t.Errorf("the operation is %+v", op)
		}
		if n := w.Creations(); n != 1 {
			t.Errorf("%d creations", n)
		}
	}, drill.Rule{Verb: "reserve", Nth: 1, Fault: drill.AcceptThenLateAnswer, DelayMs: 90_000},
		drill.Rule{Verb: "reconcile", Fault: drill.Refuse}, drill.Rule{Verb: "exclude", Fault: drill.Refuse})
}

// Scenario 27: a stop that is refused for good does not keep the seat alive.
func TestRefusedStopIsDestroyedAnyway(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Spawn("web")
		w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
		w.Retire("web")
		gone(t, w, "web")
	}, drill.Rule{Verb: "stop", Fault: drill.Refuse})
}

// Scenario 18: an operation that outlasts its patience raises an alarm, once,
// and the seat can still be retired (scenario 19).
func TestStuckOperationRaisesAnAlarm(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Spawn("web")
		w.Until("stuck", 2*time.Hour, func() bool { return w.Seat("web").Stuck() })
		if s := w.Engine.Stats(); s.Stuck != 1 || s.Uncertain != 1 {
			t.Errorf("%+v", s)
		}
		if n := strings.Count(w.Story(), "operation-stuck"); n != 1 {
			t.Errorf("%d alarms", n)
		}
		w.Retire("web")
		w.Provider.SetScript(drill.Script{})
		gone(t, w, "web")
	}, drill.Rule{Verb: "provision", Fault: drill.Stuck}, drill.Rule{Verb: "reconcile", Fault: drill.NeverAnswer}, drill.Rule{Verb: "exclude", Fault: drill.NeverAnswer})
}

// A provider that throttles is asked again when it said, and not before
// (scenario 66); one that never stops is given up.
func TestThrottlingIsObeyedAndBounded(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		began := time.Now()
		w.Spawn("web")
		w.Until("running", time.Hour, w.Status("web", aggregates.StatusRunning))
		if d := time.Since(began); d < 4*time.Minute {
			t.Errorf("it ran after %s", d)
		}
	}, drill.Rule{Verb: "reserve", Times: 2, Fault: drill.Throttle, DelayMs: 120_000})
	bubble(t, func(t *testing.T, w *sagastest.World) {
		goal := w.Spawn("web")
		gone(t, w, "web")
		finish(t, w, goal)
	}, drill.Rule{Verb: "reserve", Fault: drill.Throttle})
}
