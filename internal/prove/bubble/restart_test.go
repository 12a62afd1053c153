package bubble

import (
	"fmt"
	"testing"
	"time"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/providers/drill"
)

// Two hundred environments are adopted at a restart, each looked at, none
// touched, and not all at one instant (scenarios 41 and 66).
func TestHerdAtRestart(t *testing.T) {
	const herd = 200
	bubble(t, func(w *world) {
		for n := range herd {
			w.spawn(fmt.Sprintf("e%d", n), "9h", "1h")
		}
		all := func() bool {
			for n := range herd {
				if !w.is(fmt.Sprintf("e%d", n), aggregates.StatusRunning)() {
					return false
				}
			}
			return true
		}
		w.until("all run", time.Hour, all)
		w.kill()
		time.Sleep(time.Hour)
		looked, begun := len(w.calls(drill.Inspect)), time.Now()
		mutated := len(w.calls(mutations()...))
		m := w.boot()
		time.Sleep(2 * time.Minute)
		if !all() {
			t.Fatal("not all run after the restart")
		}
		calls := w.calls(drill.Inspect)[looked:]
		seen, moments := map[events.EnvironmentID]bool{}, map[time.Time]int{}
		for _, c := range calls {
			seen[c.Environment] = true
			moments[c.At]++
		}
		if len(seen) != herd {
			t.Errorf("%d of %d were looked at within two minutes", len(seen), herd)
		}
		if n := len(w.calls(mutations()...)) - mutated; n != 0 {
			t.Errorf("the restart changed %d environments", n)
		}
		for at, n := range moments {
			if n > herd/2 {
				t.Errorf("%d were looked at in one instant, %s after the start", n, at.Sub(begun))
			}
		}
		if s := m.engine.Stats(); s.Seats != herd || s.Open+s.Failing+s.Stuck != 0 {
			t.Errorf("the engine holds %+v", s)
		}
	})
}

func mutations() (vs []drill.Verb) {
	for _, v := range events.Verbs {
		vs = append(vs, drill.Verb(v))
	}
	return vs
}

// A manager dies while a call is in flight, and the next one finds out what
// became of it, under the same operation id, hours later (law 2, H12).
func TestDeathInFlight(t *testing.T) {
	for _, verb := range []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart} {
		t.Run(string(verb), func(t *testing.T) {
			bubble(t, func(w *world) {
				r := w.spawn("web", "9h", "5h")
				w.until("the call", time.Minute, func() bool {
					op := w.seat("web").Environment.Operation
					return op != nil && op.Verb == verb
				})
				time.Sleep(time.Second) // the call is with the provider, and lands while nobody is there
				w.kill()
				time.Sleep(3 * time.Hour)
				w.boot()
				w.until("it runs", time.Hour, w.is("web", aggregates.StatusRunning))
				g, err := w.client.WaitGoal(w.Context(), r.GoalID)
				w.must(err)
				if g.State != events.GoalSucceeded {
					t.Errorf("the goal ended %s", g.State)
				}
				if n := len(w.calls(drill.Verb(verb))); n != 1 {
					t.Errorf("%s was called %d times", verb, n)
				}
			}, drill.Rule{Verb: drill.Verb(verb), Nth: 1, Fault: drill.NeverAnswer, DelayMs: 5_000})
		})
	}
}

// A manager that was away, and whose place another process took meanwhile,
// begins nothing more once its lease is over (law 3, decision 1; scenarios 52 and 70).
func TestLeaseIsLost(t *testing.T) {
	bubble(t, func(w *world) {
		w.running("web", "9h")
		old := w.run[0]
		old.service.Stop() // clients find the next one only
		fresh := w.start()
		if fresh.epoch != old.epoch+1 {
			t.Fatalf("epochs %d and %d", old.epoch, fresh.epoch)
		}
		time.Sleep(2 * lease)
		if old.check(w.Context()) == nil || fresh.check(w.Context()) != nil {
			t.Fatal("the lease of the old epoch holds, or that of the new one does not")
		}
		_, err := client.Call(w.Context(), w.client, commands.Pause, commands.SeatInput{Named: commands.Named{Name: "web"}})
		w.must(err)
		w.until("the pause", time.Hour, w.is("web", aggregates.StatusPaused))
		if n := len(w.calls(drill.Verb(events.VerbPause))); n != 1 {
			t.Errorf("two managers of one instance called pause %d times", n)
		}
		late := 0
		w.must(fresh.log.Scan(w.Context(), 0, func(r events.Record) error {
			if r.Meta.Time.After(events.MillisUTC(time.Now().Add(-lease))) && r.Meta.Writer.Epoch == old.epoch {
				late++
			}
			return nil
		}))
		if late != 0 {
			t.Errorf("the old epoch wrote %d records after its lease", late)
		}
	})
}
