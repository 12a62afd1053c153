package scenario

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/fault"
	"berth/providers/drill"
	"berth/sagas/sagastest"
)

// bubble runs f in virtual time with a fresh world.
func bubble(t *testing.T, f func(w *sagastest.World), rules ...drill.Rule) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := sagastest.New(t, rules...)
		defer w.End()
		f(w)
	})
}

func running(w *sagastest.World, alias events.Alias) events.Boundary {
	w.T.Helper()
	goal := w.Spawn(alias)
	w.Until(string(alias)+" runs", time.Hour, w.Status(alias, aggregates.StatusRunning))
	return goal
}

// gone waits until the name is free, and holds it against the provider.
func gone(w *sagastest.World, alias events.Alias) {
	w.T.Helper()
	w.Until("the end of "+string(alias), 3*time.Hour, w.Status(alias, aggregates.StatusRetired))
	for _, e := range w.Provider.Status().Environments {
		if e.Alias == alias {
			w.T.Errorf("the provider still holds %s, %s", e.Alias, e.State)
		}
	}
	if w.Seat(alias).Environment.Reserved() {
		w.T.Errorf("the reservation of %s was not released", alias)
	}
}

// operations are the ids with which the provider was asked to change something.
func operations(w *sagastest.World) map[events.OperationID]int {
	asked := map[events.OperationID]int{}
	for _, c := range w.Provider.Status().Calls {
		switch events.Verb(c.Verb) {
		case events.VerbReserve, events.VerbProvision, events.VerbStart, events.VerbStop, events.VerbDestroy, events.VerbPause, events.VerbResume:
			asked[c.Operation]++
		}
	}
	return asked
}

// Scenario 10: a name that is used again begins a life of its own: every id is
// a new one, and none is ever given to the provider twice.
func TestANameUsedAgainIsANewLife(t *testing.T) {
	bubble(t, func(w *sagastest.World) {
		running(w, "web")
		first := w.Seat("web")
		w.Retire("web")
		gone(w, "web")
		before := operations(w)
		running(w, "web")
		second := w.Seat("web")
		if first.Slot.UID == second.Slot.UID || first.Environment.ID == second.Environment.ID {
			t.Errorf("the second life is the first: %s %s", second.Slot.UID, second.Environment.ID)
		}
		all := operations(w)
		if len(all) <= len(before) {
			t.Errorf("%d operations for one life, %d for two", len(before), len(all))
		}
		for id, n := range all {
			if n != 1 {
				t.Errorf("operation %s was given to the provider %d times", id, n)
			}
		}
	})
}

// Scenario 14: whatever step is refused, no credential of the life is left
// that still holds.
func TestARefusedStepLeavesNoCredential(t *testing.T) {
	for _, verb := range []drill.Verb{"describe-image", "preflight", "reserve", "provision", "start"} {
		t.Run(string(verb), func(t *testing.T) {
			bubble(t, func(w *sagastest.World) {
				w.Spawn("web")
				gone(w, "web")
				for _, c := range w.Seat("web").Head.Ledger {
					if !c.Revoked {
						t.Errorf("credential %s of %s still holds", c.ID, c.Holder)
					}
				}
			}, drill.Rule{Verb: verb, Fault: drill.Refuse, Code: fault.FailedPrecondition})
		})
	}
}

// Scenarios 27 and 40: a pause or a resume that fails, is lost or is refused
// for good leaves the seat so that its retirement really ends it.
func TestAFailedPauseOrResumeIsStillRetired(t *testing.T) {
	for _, verb := range []events.Verb{events.VerbPause, events.VerbResume} {
		for _, f := range []drill.Fault{drill.Refuse, drill.ErrorAfterAccept, drill.AcceptThenDrop, drill.NeverAnswer} {
			t.Run(fmt.Sprintf("%s/%s", verb, f), func(t *testing.T) {
				bubble(t, func(w *sagastest.World) {
					running(w, "web")
					idle := func() bool {
						s := w.Seat("web")
						return s.Environment.Operation == nil && len(s.Environment.Queue) == 0
					}
					if _, err := w.Ask("web", events.VerbPause, events.Arguments{}); err != nil {
						t.Fatal(err)
					}
					if verb == events.VerbResume {
						w.Until("paused", time.Minute, w.Status("web", aggregates.StatusPaused))
						if _, err := w.Ask("web", events.VerbResume, events.Arguments{}); err != nil {
							t.Fatal(err)
						}
					}
					w.Until("its settlement", 3*time.Hour, func() bool { return idle() || w.Seat("web").Slot.Phase != slot.Active })
					if w.Seat("web").Slot.Held() {
						w.Retire("web")
					}
					gone(w, "web")
				}, drill.Rule{Verb: drill.Verb(verb), Fault: f})
			})
		}
	}
}

// Scenario 28: what failed holds nothing: ten failures leave no reservation,
// and the next spawn, also of the same name, runs.
func TestFailuresHoldNothing(t *testing.T) {
	bubble(t, func(w *sagastest.World) {
		for n := range 10 {
			alias := events.Alias(fmt.Sprintf("web-%d", n))
			goal := w.Spawn(alias)
			w.Until("the end", time.Hour, w.Ended(goal))
			gone(w, alias)
			if g := w.Goal(goal); g.State != events.GoalFailed {
				t.Errorf("%s is %s", alias, g.State)
			}
		}
		running(w, "web-0")
	}, drill.Rule{Verb: "provision", Times: 10, Fault: drill.Refuse, Code: fault.FailedPrecondition})
}

// Scenarios 20 and 42: while a destroy is not proved, the name, the record and
// the reservation stay, and it is asked for again; then they go.
func TestAFailedDestroyKeepsTheRecord(t *testing.T) {
	for _, f := range []drill.Fault{drill.Refuse, drill.NeverAnswer} {
		t.Run(string(f), func(t *testing.T) {
			bubble(t, func(w *sagastest.World) {
				running(w, "web")
				w.Retire("web")
				w.Until("the first destroy", time.Hour, func() bool {
					for _, c := range w.Provider.Status().Calls {
						if c.Verb == drill.Verb(events.VerbDestroy) {
							return true
						}
					}
					return false
				})
				time.Sleep(30 * time.Minute)
				s := w.Seat("web")
				if !s.Slot.Held() || !s.Environment.Reserved() || s.Environment.Gone {
					t.Errorf("before any proof: slot %s, reserved %v, gone %v", s.Slot.Phase, s.Environment.Reserved(), s.Environment.Gone)
				}
				w.Provider.SetScript(drill.Script{})
				gone(w, "web")
			}, drill.Rule{Verb: drill.Verb(events.VerbDestroy), Fault: f},
				drill.Rule{Verb: "reconcile", Fault: drill.NeverAnswer}, drill.Rule{Verb: "exclude", Fault: drill.NeverAnswer})
		})
	}
}

// Scenario 51: after a restart each seat goes on from its own step: one that
// had been reserved is not reserved again, and one that had not been is.
func TestARestartMixesNoSteps(t *testing.T) {
	bubble(t, func(w *sagastest.World) {
		w.Spawn("first")
		w.Until("first is reserved", time.Minute, func() bool { return w.Seat("first").Environment.Ref != "" })
		w.Stop()
		w.Spawn("second")
		w.Start()
		for _, alias := range []events.Alias{"first", "second"} {
			w.Until(string(alias)+" runs", time.Hour, w.Status(alias, aggregates.StatusRunning))
		}
		steps := map[events.Alias]map[drill.Verb]int{"first": {}, "second": {}}
		for _, c := range w.Provider.Status().Calls {
			for alias := range steps {
				if c.Environment == w.Seat(alias).Environment.ID {
					steps[alias][c.Verb]++
				}
			}
		}
		for alias, n := range steps {
			if n["reserve"] != 1 || n["provision"] == 0 || n["start"] != 1 {
				t.Errorf("%s was asked for %v", alias, n)
			}
		}
		for id, n := range operations(w) {
			if n != 1 {
				t.Errorf("operation %s was given to the provider %d times", id, n)
			}
		}
	}, drill.Rule{Verb: "provision", Alias: "first", Nth: 1, Fault: drill.AcceptThenLateAnswer, DelayMs: 5_000})
}

// Scenario 71: several requests on one seat are all carried out, in order, one
// at a time. Of those that a restart finds on their way none is forgotten:
// each is carried out once, or ends with its reason.
func TestQueuedRequestsAreNotLost(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) {
			bubble(t, func(w *sagastest.World) { queued(w, restart) })
		})
	}
}

func queued(w *sagastest.World, restart bool) {
	running(w, "web")
	var ids []events.OperationID
	for _, verb := range []events.Verb{events.VerbPause, events.VerbResume, events.VerbPause, events.VerbResume} {
		id, err := w.Ask("web", verb, events.Arguments{})
		if err != nil {
			w.T.Fatal(err)
		}
		ids = append(ids, id)
	}
	if restart {
		w.Restart()
	}
	w.Until("the end of all of them", 30*time.Minute, func() bool {
		for _, id := range ids {
			op, ok := w.Seat("web").Environment.Find(id)
			switch {
			case !ok:
				w.T.Fatalf("operation %s is forgotten", id)
			case op.Open() || op.Phase == environment.Planned:
				return false
			case !restart && !op.Succeeded():
				w.T.Fatalf("%s is %s", op.Verb, op.Phase)
			}
		}
		return true
	})
	var order []events.OperationID
	for _, c := range w.Provider.Status().Calls {
		if v := events.Verb(c.Verb); v == events.VerbPause || v == events.VerbResume {
			order = append(order, c.Operation)
		}
	}
	// What was carried out is a part of what was asked, in the same order.
	rest := ids
	for _, id := range order {
		n := slices.Index(rest, id)
		if n < 0 {
			w.T.Fatalf("asked %v, carried out %v", ids, order)
		}
		rest = rest[n+1:]
	}
	if !restart && len(order) != len(ids) {
		w.T.Errorf("asked %v, carried out %v", ids, order)
	}
}
