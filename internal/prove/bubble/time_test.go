package bubble

import (
	"testing"
	"time"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/events/eventlog/stream"
	"berth/providers/drill"
	"berth/sagas"
)

// The accepted lifetime ends at its minute and not before, whether or not a
// manager ran in between (R26, scenarios 33 and 36).
func TestLifetimesEndOnTime(t *testing.T) {
	bubble(t, func(w *world) {
		accepted := time.Now()
		w.running("short", "1h")
		w.running("long", "5h")
		time.Sleep(time.Until(accepted.Add(59 * time.Minute)))
		if !w.is("short", aggregates.StatusRunning)() {
			t.Fatalf("it ended before its time: %s", w.story())
		}
		w.until("the end of short", 10*time.Minute, w.gone("short"))
		if at := time.Since(accepted); at < time.Hour || at > time.Hour+time.Minute {
			t.Errorf("a lifetime of an hour ended after %s", at)
		}
		w.kill()
		time.Sleep(6 * time.Hour) // nobody is there when long's time is over
		w.boot()
		w.until("the end of long", 5*time.Minute, w.gone("long"))
		for _, e := range w.drill.Status().Environments {
			t.Errorf("the provider still holds %s, %s", e.Alias, e.State)
		}
	})
}

// An extension by hours is many bounded steps of the provider, and the end
// moves by what was asked (R28, R29).
func TestExtendInManySteps(t *testing.T) {
	bubble(t, func(w *world) {
		accepted := time.Now()
		first := w.running("web", "1h")
		_, err := client.Call(w.Context(), w.client, commands.Extend, commands.ExtendInput{Named: commands.Named{Name: "web"}, By: "6h"})
		w.must(err)
		end := accepted.Add(7 * time.Hour)
		w.until("the whole extension", time.Hour, func() bool {
			d := w.seat("web").Environment.Deadline
			return d != nil && !d.Before(events.MillisUTC(end).Add(-time.Second))
		})
		steps := len(w.calls(drill.Verb(events.VerbExtend)))
		if want := int(6 * time.Hour / (drill.ExtendStepMs * time.Millisecond)); steps < want {
			t.Errorf("%d calls to extend; one may grow by %d ms, so at least %d are needed", steps, drill.ExtendStepMs, want)
		}
		time.Sleep(time.Until(end.Add(-time.Minute)))
		if s := w.seat("web"); s.Slot.UID != first.UID || s.Status() != aggregates.StatusRunning {
			t.Fatalf("it ended before its extended time: %s", w.story())
		}
		w.until("the end", 10*time.Minute, w.gone("web"))
		if time.Now().Before(end.Add(-time.Second)) {
			t.Errorf("it ended %s before its time", time.Until(end))
		}
	})
}

// A provider that throttles is asked again at growing distances, and never
// while it asked not to be (scenario 66; E9).
func TestBackoffGrows(t *testing.T) {
	const times, wait = 5, 20_000
	bubble(t, func(w *world) {
		w.running("web", "2h")
		calls := w.calls(drill.Verb(events.VerbReserve))
		if len(calls) != times+1 {
			t.Fatalf("%d calls to reserve, want %d", len(calls), times+1)
		}
		for i := 1; i < len(calls); i++ {
			if gap, least := calls[i].At.Sub(calls[i-1].At), wait*time.Millisecond; gap < least || gap > 2*least {
				t.Errorf("call %d came %s after the one before; the provider asked for %s", i+1, gap, least)
			}
		}
	}, drill.Rule{Verb: drill.Verb(events.VerbReserve), Times: times, Fault: drill.Throttle, DelayMs: wait})
}

// A provider that can't be asked what became of an operation is asked again,
// ever more slowly, up to the bound (scenarios 1 and 18).
func TestReconciliationIsSpaced(t *testing.T) {
	const blind = 8
	bubble(t, func(w *world) {
		w.running("web", "2h")
		asked := w.calls(drill.Reconcile, drill.Exclude)
		if len(asked) < blind {
			t.Fatalf("the provider was asked %d times, want at least %d: %s", len(asked), blind, w.story())
		}
		most := sagas.RetryMost + 30*time.Second // of a question that is never answered
		for i := 1; i < len(asked); i++ {
			if gap := asked[i].At.Sub(asked[i-1].At); gap > most {
				t.Errorf("question %d came %s after the one before, want at most %s", i+1, gap, most)
			}
		}
		if n := len(w.calls(drill.Verb(events.VerbReserve))); n != 1 {
			t.Errorf("reserve was called %d times: a create whose answer is lost is never made again (R32)", n)
		}
	}, drill.Rule{Verb: drill.Verb(events.VerbReserve), Nth: 1, Fault: drill.AcceptThenDrop},
		drill.Rule{Verb: drill.Reconcile, Times: blind, Fault: drill.Refuse},
		drill.Rule{Verb: drill.Exclude, Times: blind, Fault: drill.Refuse})
}

// The readiness window closes while a call has no answer: the goal ends
// uncertain, its client is told so then, and what became of it is said later
// beside it (decision 14; scenario 12). It holds across a restart.
func TestReadinessWindow(t *testing.T) {
	for _, restart := range []bool{false, true} {
		bubble(t, func(w *world) {
			accepted := time.Now()
			r := w.spawn("web", "2h", "1m")
			g, err := w.client.WaitGoal(w.Context(), r.GoalID)
			w.must(err)
			if at := time.Since(accepted); g.State != events.GoalUncertain || at < time.Minute || at > 2*time.Minute {
				t.Fatalf("the goal is %s after %s, want uncertain after a minute: %s", g.State, at, w.story())
			}
			if restart {
				w.kill()
				w.boot()
			}
			w.until("the settlement", time.Hour, func() bool { return w.goal(r).Settled != nil })
			if got := w.goal(r); got.State != events.GoalUncertain {
				t.Errorf("a terminal goal became %s", got.State)
			}
			if n := len(w.calls(drill.Verb(events.VerbProvision))); n != 1 {
				t.Errorf("provision was called %d times", n)
			}
		}, drill.Rule{Verb: drill.Verb(events.VerbProvision), Nth: 1, Fault: drill.AcceptThenLateAnswer, DelayMs: 200_000},
			drill.Rule{Verb: drill.Exclude, Fault: drill.Refuse})
	}
}

// An operation that stays open raises its alarm once, when its patience is
// over, and goes on being reconciled (scenario 18).
func TestStuckAlarm(t *testing.T) {
	const patience = 15 * time.Minute // of provision
	bubble(t, func(w *world) {
		accepted := time.Now()
		w.spawn("web", "5h", "1h")
		w.until("the alarm", time.Hour, func() bool {
			op := w.seat("web").Environment.Operation
			return op != nil && op.Stuck
		})
		if at := time.Since(accepted); at < patience || at > patience+time.Minute {
			t.Errorf("the alarm came after %s, want %s", at, patience)
		}
		w.until("the late end", 3*time.Hour, w.is("web", aggregates.StatusRunning))
		if n, _ := w.events(events.TypeOperationStuck); n != 1 {
			t.Errorf("%d alarms for one operation", n)
		}
		if n := len(w.calls(drill.Verb(events.VerbProvision))); n != 1 {
			t.Errorf("provision was called %d times: %s", n, w.story())
		}
	}, drill.Rule{Verb: drill.Verb(events.VerbProvision), Nth: 1, Fault: drill.NeverAnswer, DelayMs: 2_400_000},
		drill.Rule{Verb: drill.Exclude, Fault: drill.Refuse},
		drill.Rule{Verb: drill.Reconcile, Times: 400, Fault: drill.Refuse})
}

// The same commit given again after the server forgot its id is answered with
// what is stored: the duplicate window is never relied on.
func TestSameCommitBeyondTheDuplicateWindow(t *testing.T) {
	bubble(t, func(w *world) {
		c := events.Commit{Boundary: "uid.aaaaaaaaaaaaaaaaaaaaaaaaaa", Meta: w.meta(1), Events: []events.Event{events.SlotTerminalizing{UID: caller.UID, Reason: "once"}}}
		log := w.run[0].log
		first, err := log.Commit(w.Context(), c)
		w.must(err)
		for range 3 {
			time.Sleep(2 * stream.DuplicatesWindow)
			again, err := log.Commit(w.Context(), c)
			w.must(err)
			if again.Sequence != first.Sequence || again.Hash != first.Hash {
				t.Fatalf("stored again at %d, first at %d", again.Sequence, first.Sequence)
			}
		}
	})
}
