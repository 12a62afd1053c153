package sagas_test

import (
	"testing"
	"testing/synctest"
	"time"

	"berth/aggregates"
	"berth/events"
	"berth/providers/drill"
	"berth/sagas/sagastest"
)

// bubble runs f in virtual time with a fresh world.
func bubble(t *testing.T, f func(t *testing.T, w *sagastest.World), rules ...drill.Rule) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := sagastest.New(t, rules...)
		defer w.End()
		f(t, w)
	})
}

// gone says that the provider holds nothing and the name is free.
func gone(t *testing.T, w *sagastest.World, alias events.Alias) {
	t.Helper()
	w.Until("the end of "+string(alias), 2*time.Hour, w.Status(alias, aggregates.StatusRetired))
	if held := w.Provider.Status().Environments; len(held) != 0 {
		t.Errorf("the provider still holds %v\n%s", held, w.Story())
	}
	if w.Seat(alias).Environment.Reserved() {
		t.Error("the reservation was not released")
	}
}

func TestWholeLife(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		goal := w.Spawn("web")
		w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
		w.Until("the goal's end", time.Minute, w.Ended(goal))
		if g := w.Goal(goal); g.State != events.GoalSucceeded {
			t.Fatalf("the goal is %s: %v", g.State, g.Fault)
		}
		to := w.Seat("web").Environment.Deadline.Add(25 * time.Minute)
		_, err := w.Ask("web", events.VerbExtend, events.Arguments{ExtendTo: &to})
		if err != nil {
			t.Fatal(err)
		}
		w.Until("the extension", time.Minute, func() bool { return w.Seat("web").Environment.Deadline.Equal(to) })
		if _, err := w.Ask("web", events.VerbPause, events.Arguments{}); err != nil {
			t.Fatal(err)
		}
		w.Until("paused", time.Minute, w.Status("web", aggregates.StatusPaused))
		if _, err := w.Ask("web", events.VerbResume, events.Arguments{}); err != nil {
			t.Fatal(err)
		}
		w.Until("running again", time.Minute, w.Status("web", aggregates.StatusRunning))
		w.Retire("web")
		gone(t, w, "web")
	})
}
