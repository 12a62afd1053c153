package sagas_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/events"
	"berth/events/fault"
	"berth/providers/drill"
	"berth/sagas"
	"berth/sagas/sagastest"
)

// A spawn whose name could not be claimed by its readiness deadline made
// nothing: it is expired and not executed, never uncertain (decision 22), by
// whoever can make sure that no claim comes any more; without one, by the
// engine.
func TestUnclaimedSpawnExpires(t *testing.T) {
	for _, c := range []struct {
		name       string
		continuing bool
	}{{"by whoever claims", true}, {"by the engine", false}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *sagastest.World) {
				w.Stop()
				early := 0
				w.Options = func(o *sagas.Options) {
					o.Continue = nil
					if c.continuing {
						o.Continue = func(ctx context.Context, b events.Boundary, g goal.State) error {
							if time.Now().Before(g.Ready) {
								early++
								return fault.New(fault.Unavailable, "nobody can claim now")
							}
							return w.Continue(ctx, b, g)
						}
					}
				}
				w.Start()
				b := w.Accept("web")
				w.Until("the goal's end", time.Hour, w.Ended(b))
				g := w.Goal(b)
				if g.State != events.GoalExpired || g.Fault.Outcome != fault.NotExecuted || g.EndedAt.Before(g.Ready) {
					t.Errorf("%s at %s (ready by %s): %v", g.State, g.EndedAt, g.Ready, g.Fault)
				}
				if early != 0 {
					t.Errorf("this process's own goal was continued %d times while its command still could", early)
				}
			})
		})
	}
}

// An operation that is dropped from the queue ends its goal as cancelled, not
// as failed: nothing was tried, and its environment is being retired.
func TestDroppedOperationCancelsItsGoal(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Spawn("web")
		w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
		if _, err := w.Ask("web", events.VerbPause, events.Arguments{}); err != nil {
			t.Fatal(err)
		}
		w.Until("the pause is open", time.Minute, func() bool { return w.Seat("web").Environment.Operation != nil })
		_, goal := w.AskGoal("web", events.VerbCheckpoint, events.Arguments{CheckpointID: "checkpoint-1"})
		w.Retire("web")
		gone(t, w, "web")
		w.Until("the goal's end", time.Minute, w.Ended(goal))
		if g := w.Goal(goal); g.State != events.GoalCancelled || g.Fault.Outcome != fault.NotExecuted {
			t.Errorf("%s: %v", g.State, g.Fault)
		}
	}, drill.Rule{Verb: "pause", Nth: 1, Fault: drill.AcceptThenLateAnswer, DelayMs: 10_000})
}

// Decision 13: the credential of a life that was written off is not kept; the
// environment that is still reconciled needs none.
func TestWrittenOffLifeLeavesNoCredential(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Spawn("web")
		w.Until("uncertain", time.Hour, w.Status("web", aggregates.StatusUncertain))
		dir := filepath.Join(w.Dir, "material", string(w.Seat("web").Slot.UID))
		if kept, err := os.ReadDir(dir); err != nil || len(kept) == 0 {
			t.Fatalf("no credential is staged: %v", err)
		}
		w.WriteOff("web")
		w.Until("its end", time.Minute, func() bool { _, err := os.Stat(dir); return errors.Is(err, os.ErrNotExist) })
	}, drill.Rule{Verb: "provision", Nth: 1, Fault: drill.AcceptThenDrop})
}
