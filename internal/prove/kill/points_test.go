//go:build linux

package kill

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"berth"
	"berth/events"
	"berth/sagas"
)

// at is one place to die: the nth time that a point is passed.
type at struct {
	point string
	nth   int
}

func (a at) String() string { return fmt.Sprintf("%s:%d", a.point, a.nth) }

// beside are the appends of a life that no step makes: those of the command
// plane, between the acceptance of the goal, the uid's reservation and the
// claim (decision 2) and of each write, of goals, and of the manager itself.
var beside = []events.Event{
	events.GoalAccepted{}, events.UIDReserved{}, events.SlotClaimed{}, events.OperationPlanned{}, events.SlotTerminalizing{},
	events.GoalEnded{}, events.InstanceRegistered{}, events.ChainSigned{},
}

// generated are the points that every life passes, from the table of steps: a
// new step with a verb adds its own.
func generated() []at {
	var out []at
	both := func(point string) {
		for _, p := range []string{point + ":before", point + ":after"} {
			if !slices.Contains(out, at{p, 1}) {
				out = append(out, at{p, 1})
			}
		}
	}
	for _, e := range beside {
		both(berth.CommitPoint([]events.Event{e}))
	}
	for _, s := range sagas.Steps {
		if s.Verb != "" {
			both("append:" + s.Name)
			both("call:" + string(s.Verb))
		}
	}
	both("accept")
	return out
}

// listened are the points that a life passed, each time that it did.
func listened(t *testing.T, list string) []at {
	t.Helper()
	b, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	var out []at
	for _, p := range strings.Fields(string(b)) {
		seen[p]++
		out = append(out, at{p, seen[p]})
	}
	return out
}

// merge is both lists, each place once.
func merge(a, b []at) []at {
	out := slices.Clone(a)
	for _, p := range b {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}
