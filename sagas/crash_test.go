package sagas_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
	"berth/providers/drill"
	"berth/sagas/sagastest"
)

// points lists what a life passes when nothing crashes.
func points(t *testing.T, rules ...drill.Rule) []string {
	var passed []string
	bubble(t, func(t *testing.T, w *sagastest.World) {
		lifetime(t, w)
		passed = slices.Clone(w.Passed)
	}, rules...)
	return passed
}

// The manager dies at every point of a whole life, before and after each
// append and each call, and is started again with the next epoch: the records
// converge with what the provider really holds, nothing is left and nothing
// is made twice (scenarios 1, 46, 48; law 1).
func TestCrashAtEveryPointConverges(t *testing.T) {
	scripts := map[string][]drill.Rule{
		"faithful":     nil,
		"lost reserve": {{Verb: "reserve", Nth: 1, Fault: drill.AcceptThenDrop}},
		"lost start":   {{Verb: "start", Nth: 1, Fault: drill.NeverAnswer}},
		"lost restore": {{Verb: "restore", Nth: 1, Fault: drill.AcceptThenDrop}},
		"lost destroy": {{Verb: "destroy", Nth: 1, Fault: drill.AcceptThenDrop}},
	}
	for name, rules := range scripts {
		all := points(t, rules...)
		if len(all) < 40 {
			t.Fatalf("%s: a whole life passes only %d points", name, len(all))
		}
		for n, point := range all {
			t.Run(fmt.Sprintf("%s/%d-%s", name, n+1, point), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *sagastest.World) {
					w.CrashAt(n + 1)
					lifetime(t, w)
					if w.Epoch == 1 && n < len(all)*3/4 {
						// Goals are recorded beside the seat, so that the number of
						// points differs a little from run to run.
						t.Error("the manager did not die")
					}
				}, rules...)
			})
		}
	}
}

// The points that a life passes cover every verb and every row that appends.
func TestCrashPointsCoverEveryCall(t *testing.T) {
	all := strings.Join(points(t), " ")
	for _, v := range events.Verbs {
		if v != events.VerbDeleteFile && !strings.Contains(all, "call:"+string(v)+":before") {
			t.Errorf("no life passes the call of %s", v)
		}
	}
}

// A goal that was accepted before the crash and has no seat yet is continued
// by its holder (decision 2).
func TestAcceptedGoalIsContinued(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		goal := w.Accept("web")
		w.Restart()
		w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
		w.Until("the goal's end", time.Minute, w.Ended(goal))
		if g := w.Goal(goal); g.State != events.GoalSucceeded {
			t.Errorf("the goal is %s", g.State)
		}
	})
}

// What runs is found again by observation after a restart: an exit that
// nobody saw is recorded, and nothing is started anew (scenarios 41, 49).
func TestRestartAdoptsWhatRuns(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Spawn("web")
		w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
		w.Stop()
		time.Sleep(10 * time.Minute)
		w.Start()
		w.Until("the look at it", time.Minute, func() bool {
			return slices.ContainsFunc(w.Provider.Status().Calls, func(c drill.CallRecord) bool { return c.Verb == drill.Inspect })
		})
		w.Until("rest", time.Minute, w.Engine.Idle)
		if s := w.Seat("web"); s.Status() != aggregates.StatusRunning || s.Slot.Epoch != 1 {
			t.Errorf("%s at epoch %d", s.Status(), s.Slot.Epoch)
		}
		to := w.Seat("web").Environment.Deadline.Add(5 * time.Minute)
		if _, err := w.Ask("web", events.VerbExtend, events.Arguments{ExtendTo: &to}); err != nil {
			t.Fatal(err)
		}
		w.Until("the extension", time.Minute, func() bool { return w.Seat("web").Environment.Deadline.Equal(to) })
		if e := w.Seat("web").Slot.Epoch; e != 2 {
			t.Errorf("the first append of epoch 2 left the seat at epoch %d (decision 1)", e)
		}
		w.Stop()
		time.Sleep(2 * time.Hour) // the provider ends it by itself (scenario 33)
		w.Start()
		gone(t, w, "web")
	})
}

// Scenario 52: an engine whose epoch is over can't act any more: its appends
// lose, and it does not dispatch.
func TestStaleEpochActsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sagastest.New(t)
		defer w.End()
		w.Spawn("web")
		w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
		old, stopOld := w.Engine, w.Detach()
		defer stopOld()
		w.Start() // the next epoch, over the same log, while the old one lives
		w.Until("adopted", time.Minute, w.Engine.Idle)
		w.Retire("web")
		gone(t, w, "web")
		old.Resume(w.Seat("web").Boundary())
		w.Until("rest", time.Minute, old.Idle)
		if n := strings.Count(w.Story(), `"verb":"destroy"`); n != 1 {
			t.Errorf("%d destroys were dispatched\n%s", n, w.Story())
		}
	})
}

// Drain lets what is in flight be answered and begins nothing new.
func TestDrainWaitsForAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Spawn("web")
		w.Until("a call in flight", time.Minute, func() bool { return w.Engine.Stats().InFlight == 1 })
		w.Engine.Drain(t.Context())
		if op := w.Seat("web").Environment.Operation; op != nil {
			t.Errorf("%s is open after the drain", op.Verb)
		}
		if s := w.Seat("web"); s.Environment.Ref == "" || s.Environment.Provisioned {
			t.Errorf("after the drain: ref %q, provisioned %v", s.Environment.Ref, s.Environment.Provisioned)
		}
		w.Restart()
		w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
	}, drill.Rule{Verb: "reserve", Nth: 1, Fault: drill.AcceptThenLateAnswer, DelayMs: 5000})
}

// A look that failed is taken again, also where the provider has a watcher:
// that tells of what changes, not of what was missed (scenario 49).
func TestFailedLookIsTakenAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Spawn("web")
		w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
		w.Stop()
		w.Provider.SetScript(drill.Script{Rules: []drill.Rule{{Verb: drill.Inspect, Nth: 1, Fault: drill.Refuse, Code: fault.Unavailable}}})
		looks := func() (n int) {
			for _, c := range w.Provider.Status().Calls {
				if c.Verb == drill.Inspect {
					n++
				}
			}
			return n
		}
		before := looks()
		w.Start()
		w.Until("the second look", 10*time.Minute, func() bool { return looks() >= before+2 })
		w.Until("rest", time.Minute, w.Engine.Idle)
		if n := looks() - before; n != 2 {
			t.Errorf("%d looks; want the failed one and its repeat", n)
		}
	})
}
