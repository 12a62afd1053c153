package drill

import (
	"testing"
	"time"

	"berth/events"
)

// TestLawsHoldUnderEveryFault drives seeded nonsense through every fault and
// asserts after each call what no script may break: an operation that ended
// keeps its end (a fence holds, a landing stays, H14), a deadline never comes
// earlier (scenario 31), a destroyed id never lives again (R61), and nothing
// that is over runs (scenario 30).
func TestLawsHoldUnderEveryFault(t *testing.T) {
	type key struct {
		env events.EnvironmentID
		op  events.OperationID
	}
	for seed := range uint64(30) {
		m := NewMachine(randomScript(seed))
		ends, deadlines, dead := map[key]phase{}, map[events.EnvironmentID]time.Time{}, map[events.EnvironmentID]bool{}
		for i, c := range randomCalls(seed, 120) {
			m.Apply(c.At, *c.Call)
			for id, e := range m.s.Envs {
				for _, o := range e.Ops {
					k := key{id, o.ID}
					if was := ends[k]; was != "" && was != o.Phase {
						t.Fatalf("seed %d, call %d: operation %s was %s and is %s", seed, i, o.ID, was, o.Phase)
					}
					if o.Phase != pending {
						ends[k] = o.Phase
					}
				}
				if dead[id] && e.State != events.StateAbsent {
					t.Fatalf("seed %d, call %d: %s was destroyed and is %s", seed, i, id, e.State)
				}
				dead[id] = e.State == events.StateAbsent
				if e.Expires == nil {
					continue
				}
				if e.Expires.Before(deadlines[id]) {
					t.Fatalf("seed %d, call %d: the end of %s moved from %s to %s", seed, i, id, deadlines[id], e.Expires)
				}
				deadlines[id] = *e.Expires
				if e.held() && e.expired(m.clock(c.At)) && e.State != events.StateStopped {
					t.Fatalf("seed %d, call %d: %s is over and is %s", seed, i, id, e.State)
				}
			}
		}
		if len(ends) == 0 {
			t.Fatalf("seed %d: nothing ended", seed)
		}
	}
}
