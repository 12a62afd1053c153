package projections_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"berth/events"
	"berth/projections"
)

// Decision 14: a goal that ended uncertain is found again after a restart
// however many have ended since, until it is settled.
func TestUncertainGoalsAreFoundHoweverOld(t *testing.T) {
	v := projections.NewViews("default")
	seq := uint64(0)
	last := map[events.Boundary]uint64{}
	at := func(n int) events.Boundary {
		return events.GoalBoundary(events.Caller{Owner: "local", Actor: "tester", UID: "abcdefghijklmnopqrstuvwxyz"}, events.GoalID(fmt.Sprintf("goal-%06d", n)))
	}
	commit := func(b events.Boundary, es ...events.Event) {
		seq++
		v.Apply(events.Record{Boundary: b, Sequence: seq, Previous: last[b], Events: es})
		last[b] = seq
	}
	end := func(n int, state events.GoalState) {
		commit(at(n), events.GoalAccepted{Command: "spawn", Fingerprint: "f", Holder: "aaaaaaaaaaaaaaaaaaaaaaaaaa",
			Allocated: events.Allocation{Name: "web", Owner: "local"}})
		commit(at(n), events.GoalEnded{State: state})
	}
	end(0, events.GoalUncertain)
	end(1, events.GoalUncertain)
	for n := range projections.MaxEndedGoals + 10 {
		end(n+2, events.GoalSucceeded)
	}
	open := at(1_000_000)
	commit(open, events.GoalAccepted{Command: "spawn", Allocated: events.Allocation{Name: "web", Owner: "local"}})
	if got, want := v.Unfinished(), []events.Boundary{open, at(0), at(1)}; !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	if got := v.GoalsAbout("local", "web"); !slices.Equal(got, []events.Boundary{open}) {
		t.Errorf("about web: %v", got)
	}
	commit(at(0), events.GoalSettled{State: events.GoalFailed})
	path := filepath.Join(t.TempDir(), "views")
	if err := projections.Save(path, "stream", v.Clone()); err != nil {
		t.Fatal(err)
	}
	again, err := projections.Load(path, "stream", "default")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := again.Unfinished(), []events.Boundary{open, at(1)}; !slices.Equal(got, want) {
		t.Errorf("after a restart %v, want %v", got, want)
	}
}
