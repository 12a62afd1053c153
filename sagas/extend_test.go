package sagas_test

import (
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/events"
	"berth/providers/drill"
	"berth/sagas"
	"berth/sagas/sagastest"
)

// R29: a step of an extension that is proved never to have happened is tried
// again under a new id, so that the whole of what was asked for is done. When
// it never happens MaxExcluded times in a row, the extension ends there, and
// what is waited for says so.
func TestAnExcludedStepOfAnExtensionIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name       string
		lost       []int // which calls of extend are lost before they arrive
		steps      int   // of ten minutes, that are done
		operations int
	}{
		{"the first", []int{1}, 3, 4},
		{"a later one", []int{2}, 3, 4},
		{"one, then another", []int{1, 3}, 3, 5},
		{"a later one, for good", []int{2, 3, 4, 5, 6}, 1, 1 + sagas.MaxExcluded},
	} {
		t.Run(c.name, func(t *testing.T) {
			var rules []drill.Rule
			for _, n := range c.lost {
				rules = append(rules, drill.Rule{Verb: "extend", Nth: n, Fault: drill.AcceptThenDrop, DelayMs: 7_200_000})
			}
			bubble(t, func(t *testing.T, w *sagastest.World) {
				w.Spawn("web")
				w.Until("running", time.Minute, w.Status("web", aggregates.StatusRunning))
				from := *w.Seat("web").Environment.Deadline
				to := from.Add(30 * time.Minute)
				id, err := w.Ask("web", events.VerbExtend, events.Arguments{ExtendTo: &to})
				if err != nil {
					t.Fatal(err)
				}
				var last environment.Operation
				w.Until("its end", 50*time.Minute, func() bool {
					op, ok := w.Seat("web").Environment.Outcome(id)
					last = op
					return ok && op.Phase != environment.Planned && !op.Open()
				})
				s := w.Seat("web")
				if want := from.Add(time.Duration(c.steps) * 10 * time.Minute); !s.Environment.Deadline.Equal(want) {
					t.Errorf("it lives until %s, want %s\n%s", s.Environment.Deadline, want, w.Story())
				}
				if done := c.steps == 3; done != last.Succeeded() {
					t.Errorf("what is said of it: %s", last.Phase)
				}
				n := 0
				for _, o := range s.Environment.Done {
					if o.Verb == events.VerbExtend {
						n++
					}
				}
				if n != c.operations {
					t.Errorf("%d operations, want %d\n%s", n, c.operations, w.Story())
				}
			}, rules...)
		})
	}
}
