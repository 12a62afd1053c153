package explore

import (
	"flag"
	"strings"
	"testing"

	"berth/events"
	"berth/sagas"
)

var (
	budget = flag.Int("explore.budget", 0, "faults, crashes, commands and changes on one path; 0 runs the small walks, 1 takes seconds, 2 is without an end in sight")
	limit  = flag.Int("explore.limit", 60_000, "most states of one walk")
)

// Every state that a seat reaches keeps the laws, whatever is lost, refused,
// killed or asked, and from each of them its life can end.
func TestEveryStateKeepsTheLaws(t *testing.T) {
	walks := []Budget{
		{}, {Faults: 2}, {Faults: 1, Crashes: 1}, {Crashes: 1, Commands: 1}, {Faults: 1, Commands: 2}, {Commands: 3},
		{Faults: 1, Changes: 1}, {Crashes: 1, Changes: 1}, {Changes: 1, Commands: 1}, {Faults: 1, Crashes: 1, Commands: 1},
	}
	if n := *budget; n > 0 {
		walks = []Budget{{n, n, n, n}}
	}
	for _, b := range walks {
		r, err := Walk(sagas.Next, b, *limit)
		t.Logf("%+v: %s", b, r)
		switch {
		case err != nil:
			t.Errorf("%+v: %v", b, err)
		case r.Ended == 0:
			t.Errorf("%+v: no life came to its end", b)
		case !r.Complete && *budget == 0:
			t.Errorf("%+v: the walk is larger than its limit: raise the limit or lower the budget", b)
		}
	}
}

// A walk that finds nothing proves something only if it finds what is wrong.
func TestAWalkFindsDefects(t *testing.T) {
	without := func(steps ...string) Kernel { // the kernel with rows that do nothing
		return func(v sagas.View) sagas.Action {
			a := sagas.Next(v)
			for _, s := range steps {
				if a.Step == s {
					return sagas.Action{Kind: sagas.Idle, Step: s}
				}
			}
			return a
		}
	}
	cases := []struct {
		name   string
		kernel Kernel
		budget Budget
		want   string
	}{
		{"a lost reservation is taken for a refused one", func(v sagas.View) sagas.Action {
			if op := v.Seat.Environment.Operation; op != nil && op.Verb == events.VerbReserve && op.Phase == "uncertain" {
				return sagas.Action{Kind: sagas.Append, Events: []events.Event{events.OperationExcluded{Environment: environmentOf(v), Operation: op.ID, Evidence: "a list does not show it"}}}
			}
			return sagas.Next(v)
		}, Budget{Faults: 1}, "law 2"},
		{"another mutation goes out while one is open", func(v sagas.View) sagas.Action {
			if op := v.Seat.Environment.Operation; op != nil && op.Phase == "uncertain" {
				return sagas.Action{Kind: sagas.Dispatch, Events: []events.Event{events.OperationDispatched{Environment: environmentOf(v), Operation: v.Fresh, Verb: op.Verb}}}
			}
			return sagas.Next(v)
		}, Budget{Faults: 1}, "law 2"},
		{"the name is freed without a proof", func(v sagas.View) sagas.Action {
			if a := sagas.Next(v); a.Step != "destroy" {
				return a
			}
			es, _ := v.Seat.Head.CompleteRetirement("retire-" + events.OperationID(v.Seat.Slot.UID))
			return sagas.Action{Kind: sagas.Append, Events: append(es, events.SlotRetired{UID: v.Seat.Slot.UID})}
		}, Budget{}, "not proved gone"},
		{"nobody asks what became of it", without("reconcile", "exclude"), Budget{Faults: 1}, "deadlock"},
		{"nobody gives up waiting after a crash", without("lose"), Budget{Crashes: 1}, "deadlock"},
		{"a lifetime that is over ends nothing", without("expire"), Budget{}, "deadlock"},
		{"revoking is forgotten", without("revoke"), Budget{}, "deadlock"},
	}
	for _, c := range cases {
		_, err := Walk(c.kernel, c.budget, *limit)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "1. the name is claimed") {
			t.Errorf("%s: found %v, want %q with a path", c.name, err, c.want)
		}
	}
}

func environmentOf(v sagas.View) events.EnvironmentID { return v.Seat.Environment.ID }
