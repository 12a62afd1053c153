package sagas_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/providers/drill"
	"berth/sagas"
	"berth/sagas/sagastest"
)

// Scenarios 5 and 22: a cancel at every moment of a spawn ends it and what it
// made, and the goal says cancelled only once that is proved.
func TestCancelAtEveryPoint(t *testing.T) {
	for _, verb := range []drill.Verb{"describe-image", "preflight", "reserve", "provision", "start"} {
		for _, f := range []drill.Rule{
			{Fault: drill.AcceptThenLateAnswer, DelayMs: 5_000},
			{Fault: drill.NeverAnswer},
		} {
			f.Verb, f.Nth = verb, 1
			t.Run(fmt.Sprintf("%s/%s", verb, f.Fault), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *sagastest.World) {
					goal := w.Spawn("web")
					w.Until("the call", time.Minute, func() bool {
						for _, c := range w.Provider.Status().Calls {
							if c.Verb == verb {
								return true
							}
						}
						return false
					})
					if err := w.Cancel(goal); err != nil {
						t.Fatal(err)
					}
					w.Until("the goal's end", 3*time.Hour, func() bool {
						g := w.Goal(goal)
						if g.State == events.GoalCancelled && w.Seat("web").Slot.Phase != slot.Retired {
							t.Errorf("cancelled while the slot is %s", w.Seat("web").Slot.Phase)
						}
						return g.State == events.GoalCancelled || g.Settled != nil && g.Settled.State == events.GoalCancelled
					})
					gone(t, w, "web")
				}, f)
			})
		}
	}
}

// Scenario 12: a spawn that is not ready by its deadline is uncertain, never
// failed; what it turned out to be stands beside that (decision 14).
func TestSpawnBeyondItsDeadlineIsUncertain(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		goal := w.Spawn("web")
		w.Until("the goal's end", time.Minute, w.Ended(goal))
		if g := w.Goal(goal); g.State != events.GoalUncertain || g.EndedAt.Before(g.Ready) {
			t.Fatalf("%s at %s, ready by %s", g.State, g.EndedAt, g.Ready)
		}
		w.Until("running", time.Hour, w.Status("web", aggregates.StatusRunning))
		finish2(t, w, goal, events.GoalSucceeded)
	}, drill.Rule{Verb: "provision", Nth: 1, Fault: drill.AcceptThenLateAnswer, DelayMs: 100_000})
}

func finish2(t *testing.T, w *sagastest.World, goal events.Boundary, want events.GoalState) {
	t.Helper()
	w.Until("the settlement", time.Minute, func() bool { return w.Goal(goal).Settled != nil })
	if g := w.Goal(goal); g.Settled.State != want || g.State != events.GoalUncertain {
		t.Errorf("%s, settled as %s", g.State, g.Settled.State)
	}
}

// A refusal reaches the goal with its code (scenario 29), and what was made
// before it is taken down (scenarios 15, 17).
func TestRefusedStepFailsTheGoalAndUndoes(t *testing.T) {
	for _, verb := range []drill.Verb{"preflight", "reserve", "provision", "start"} {
		t.Run(string(verb), func(t *testing.T) {
			r := drill.Rule{Verb: verb, Fault: drill.Refuse, Code: fault.FailedPrecondition}
			bubble(t, func(t *testing.T, w *sagastest.World) {
				goal := w.Spawn("web")
				gone(t, w, "web")
				w.Until("the goal's end", time.Minute, w.Ended(goal))
				g := w.Goal(goal)
				if g.State != events.GoalFailed || g.Fault.Code != fault.FailedPrecondition {
					t.Errorf("%s: %v", g.State, g.Fault)
				}
			}, r)
		})
	}
}

// A hint about what this instance does not work on is nothing: what it must know
// of a seat that comes to it is in the record, and only that takes it up.
func TestAHintTakesNothingUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Engine.Poke(events.SeatBoundary("local", "elsewhere"))
		if s := w.Engine.Stats(); s.Seats != 0 || s.Queued != 0 {
			t.Errorf("%+v", s)
		}
		w.Spawn("web")
		w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
		w.Engine.Poke(w.Seat("web").Boundary())
		w.Until("rest", time.Minute, w.Engine.Idle)
	})
}

// The lifetime ends: the seat is stopped and destroyed, at its deadline and
// not before (scenario 36).
func TestExpiry(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Spawn("web")
		w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
		deadline := *w.Seat("web").Environment.Deadline
		time.Sleep(time.Until(deadline) - time.Millisecond)
		if s := w.Seat("web"); s.Slot.Phase != slot.Active {
			t.Fatalf("it is %s before its deadline", s.Slot.Phase)
		}
		gone(t, w, "web")
		if s := w.Seat("web"); s.Slot.Reason != "expired" || s.Slot.EndedAt.Sub(deadline) > time.Second {
			t.Errorf("%s at %s, deadline %s", s.Slot.Reason, s.Slot.EndedAt, deadline)
		}
	})
}

// Scenarios 30 and 31: extensions that race with the end of the life. Each is
// either refused and the seat ends at the deadline it had, or accepted and it
// lives until the later one; the deadline never goes back.
func TestExtendAgainstExpiry(t *testing.T) {
	for _, before := range []time.Duration{-time.Millisecond, 0, time.Millisecond, 5 * time.Millisecond, time.Second} {
		t.Run(before.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *sagastest.World) {
				w.Spawn("web")
				w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
				deadline := *w.Seat("web").Environment.Deadline
				time.Sleep(time.Until(deadline) - before)
				to := deadline.Add(25 * time.Minute) // three bounded steps
				id, err := w.Ask("web", events.VerbExtend, events.Arguments{ExtendTo: &to})
				if err != nil {
					gone(t, w, "web")
					return
				}
				w.Until("the answer", time.Hour, func() bool {
					op, ok := w.Seat("web").Environment.Find(id)
					return ok && !op.Open() && op.Phase != "planned"
				})
				s := w.Seat("web")
				op, _ := s.Environment.Find(id)
				if op.Succeeded() {
					w.Until("the whole extension", time.Minute, func() bool { return w.Seat("web").Environment.Deadline.Equal(to) })
					time.Sleep(time.Until(to) - time.Second)
					if s := w.Seat("web"); s.Status() != aggregates.StatusRunning {
						t.Errorf("extended, and then %s", s.Status())
					}
				}
				gone(t, w, "web")
			})
		})
	}
}

func checkpointed(t *testing.T, w *sagastest.World) {
	t.Helper()
	w.Spawn("web")
	w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
	if _, err := w.Ask("web", events.VerbCheckpoint, events.Arguments{CheckpointID: "checkpoint-1"}); err != nil {
		t.Fatal(err)
	}
	w.Until("the checkpoint", time.Minute, func() bool { return len(w.Seat("web").Environment.Checkpoints) == 1 })
}

// R37, scenario 63: a file is accepted whole and verified, or rejected with
// nothing of it left; one cut is survived by reading on from where it was.
func TestExportedFiles(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules []drill.Rule
		ok    bool
		host  bool
	}{
		{"faithful", nil, true, false},
		{"slow", []drill.Rule{{Verb: "read-file", Fault: drill.SlowStream, DelayMs: 10}}, true, false},
		{"cut once", []drill.Rule{{Verb: "read-file", Nth: 1, Fault: drill.TruncateStream}}, true, false},
		{"unreachable once", []drill.Rule{{Verb: "read-file", Nth: 1, Fault: drill.ErrorAfterAccept}}, true, false},
		{"truncated", []drill.Rule{{Verb: "read-file", Fault: drill.TruncateStream}}, false, false},
		{"grown", []drill.Rule{{Verb: "read-file", Fault: drill.GrowStream}}, false, false},
		{"corrupted", []drill.Rule{{Verb: "read-file", Fault: drill.CorruptStream}}, false, false},
		{"unreachable", []drill.Rule{{Verb: "read-file", Fault: drill.ErrorAfterAccept}}, false, false},
		{"to the host", nil, true, true},
		{"to the host, truncated", []drill.Rule{{Verb: "export", Fault: drill.TruncateStream}}, false, true},
		{"to the host, grown", []drill.Rule{{Verb: "export", Fault: drill.GrowStream}}, false, true},
		{"to the host, corrupted", []drill.Rule{{Verb: "export", Fault: drill.CorruptStream}}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *sagastest.World) {
				checkpointed(t, w)
				args := events.Arguments{CheckpointID: "checkpoint-1", MaxBytes: 1 << 20}
				if c.host {
					args.HostPath = filepath.Join(w.Dir, "web.tar")
				}
				id, goal := w.AskGoal("web", events.VerbExport, args)
				w.Until("the goal's end", time.Hour, w.Ended(goal))
				path := args.HostPath
				if path == "" {
					path = sagas.ExportFile(filepath.Join(w.Dir, "exports"), id)
				}
				if g := w.Goal(goal); (g.State == events.GoalSucceeded) != c.ok {
					t.Fatalf("%s: %v\n%s", g.State, g.Fault, w.Story())
				}
				verifyFile(t, w, path, c.ok)
			}, c.rules...)
		})
	}
}

func verifyFile(t *testing.T, w *sagastest.World, path string, there bool) {
	t.Helper()
	b, err := os.ReadFile(path)
	want := drill.Content(w.Seat("web").Environment.ID, "checkpoint-1")
	switch sum := sha256.Sum256(b); {
	case there && (err != nil || string(b) != string(want)):
		t.Errorf("%d bytes, %s: %v", len(b), hex.EncodeToString(sum[:4]), err)
	case !there && !os.IsNotExist(err):
		t.Errorf("%d bytes of a rejected file are left", len(b))
	}
	if left, _ := filepath.Glob(filepath.Join(w.Dir, "exports", ".*.part")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// Scenario 26: a retirement waits until an export's file is copied.
func TestRetireWaitsForTheExport(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		checkpointed(t, w)
		_, goal := w.AskGoal("web", events.VerbExport, events.Arguments{CheckpointID: "checkpoint-1", MaxBytes: 1 << 20})
		w.Until("the copy", time.Minute, func() bool {
			return len(w.Provider.Status().Calls) > 0 && strings.Contains(w.Story(), "call read-file")
		})
		w.Retire("web")
		gone(t, w, "web")
		w.Until("the goal's end", time.Minute, w.Ended(goal))
		if g := w.Goal(goal); g.State != events.GoalSucceeded {
			t.Errorf("%s: %v", g.State, g.Fault)
		}
	}, drill.Rule{Verb: "read-file", Fault: drill.SlowStream, DelayMs: 60_000})
}

// Decision 13: a write-off frees the name at once; the environment goes on
// being reconciled on its own boundary and is destroyed when it is found.
func TestWriteOffIsFollowedUp(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *sagastest.World) {
				goal := w.Spawn("web")
				w.Until("uncertain", time.Hour, w.Status("web", aggregates.StatusUncertain))
				w.WriteOff("web")
				w.Until("the goal's end", time.Hour, func() bool { return w.Goal(goal).Settled != nil || w.Goal(goal).State == events.GoalFailed })
				if restart {
					w.Restart()
				}
				time.Sleep(time.Hour)
				w.Provider.SetScript(drill.Script{})
				w.Until("the destruction", time.Hour, func() bool { return len(w.Provider.Status().Environments) == 0 })
				w.Spawn("web")
				w.Until("the next life", time.Minute, w.Status("web", aggregates.StatusRunning))
				if n := w.Creations(); n != 2 {
					t.Errorf("%d creations", n)
				}
			}, drill.Rule{Verb: "reserve", Nth: 1, Fault: drill.AcceptThenDrop},
				drill.Rule{Verb: "reconcile", Fault: drill.Refuse}, drill.Rule{Verb: "exclude", Fault: drill.Refuse})
		})
	}
}

// Scenario 66: hundreds of seats that are due at once are taken up with
// bounded concurrency, and all get there.
func TestRestartHerdIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Stop()
		const seats, bound = 300, 10
		w.Options = func(o *sagas.Options) { o.PerProvider = bound }
		for i := range seats {
			w.Spawn(events.Alias(fmt.Sprintf("web-%d", i)))
		}
		w.Start()
		w.Until("all running", 10*time.Minute, func() bool { return len(w.Provider.Status().Environments) == seats && w.Engine.Idle() })
		if p := w.Provider.Peak(); p > bound || p < 2 {
			t.Errorf("%d calls at once", p)
		}
		for i := range seats {
			if s := w.Seat(events.Alias(fmt.Sprintf("web-%d", i))); s.Status() != aggregates.StatusRunning {
				t.Errorf("%s is %s", s.Alias, s.Status())
			}
		}
	}, drill.Rule{Verb: "reserve", Fault: drill.AcceptThenLateAnswer, DelayMs: 100})
}

// A log that is full or does not answer loses no answer of a provider: it is
// recorded when the log takes it (scenario 45).
func TestLogFailuresLoseNothing(t *testing.T) {
	lost := fault.New(fault.Unavailable, "the acknowledgement was lost")
	var n atomic.Int64
	for name, hooks := range map[string]func() memory.Hooks{
		"lost acknowledgements": func() memory.Hooks {
			return memory.Hooks{After: func([]events.Record) error {
				if n.Add(1)%2 == 0 {
					return lost
				}
				return nil
			}}
		},
		"unreachable": func() memory.Hooks {
			return memory.Hooks{Before: func([]events.Commit) error {
				if n.Add(1)%3 > 0 {
					return lost
				}
				return nil
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *sagastest.World) {
				w.Log.SetHooks(hooks())
				lifetime(t, w)
			})
		})
	}
	t.Run("full", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *sagastest.World) {
			goal := w.Spawn("web")
			w.Log.SetFull(true)
			w.Until("a failure", time.Minute, func() bool { return w.Engine.Stats().Failing > 0 })
			time.Sleep(time.Hour / 2)
			w.Log.SetFull(false)
			w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
			w.Until("the goal", time.Minute, w.Ended(goal))
			if n := w.Creations(); n != 1 {
				t.Errorf("%d creations", n)
			}
		})
	})
}

// A record that can't be read stops that seat and nothing else (scenarios 73,
// 74).
func TestQuarantineStopsOneSeat(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Spawn("web")
		w.Spawn("api")
		w.Until("running", time.Minute, func() bool {
			return w.Status("web", aggregates.StatusRunning)() && w.Status("api", aggregates.StatusRunning)()
		})
		w.Log.AppendRaw(w.Seat("web").Boundary(), []byte("from a newer program"))
		time.Sleep(3 * time.Hour)
		if s := w.Seat("web"); s.Status() != aggregates.StatusHeld {
			t.Errorf("web is %s", s.Status())
		}
		if s := w.Seat("api"); s.Slot.Phase != slot.Retired {
			t.Errorf("api is %s", s.Status())
		}
		if _, _, err := w.Shelf.DecideSeat(context.Background(), sagastest.Owner, "web", events.Meta{}, func(s aggregates.Seat) ([]events.Event, error) {
			return s.Retire("", "retired", 0)
		}); fault.CodeOf(err) != fault.FailedPrecondition {
			t.Error(err)
		}
	})
}

// Material is staged with mode 0600, reaches no event, and is removed with
// the lifecycle (R54, R55).
func TestMaterialStaysOffTheLog(t *testing.T) {
	bubble(t, func(t *testing.T, w *sagastest.World) {
		w.Spawn("web")
		w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
		h := w.Seat("web").Head
		path := filepath.Join(w.Dir, "material", string(h.UID), string(h.Ledger[0].ID))
		seed, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(seed), "SU") {
			t.Fatal(err)
		}
		if st, _ := os.Stat(path); st.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", st.Mode())
		}
		if strings.Contains(w.Story(), string(seed)) {
			t.Error("the seed is in the log")
		}
		w.Retire("web")
		gone(t, w, "web")
		if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
			t.Error("the material is left")
		}
	})
}
