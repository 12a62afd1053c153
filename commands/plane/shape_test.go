package plane_test

import (
	"encoding/json"
	"strings"
	"testing"

	"berth/commands"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/fault"
)

// at finds a value in a JSON document by names and indexes.
func at(t *testing.T, doc []byte, path string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatal(err)
	}
	for p := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = x[p]; !ok {
				t.Errorf("%s: there is no %s", path, p)
				return nil
			}
		case []any:
			if len(x) == 0 {
				t.Errorf("%s: the list is empty", path)
				return nil
			}
			v = x[0]
		default:
			t.Errorf("%s: %s is not inside an object", path, p)
			return nil
		}
	}
	return v
}

// The names that scripts rely on are there, whatever else is.
func TestNamesThatScriptsRelyOn(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	s := w.Spawn("demo")
	spawn, _ := json.Marshal(s)
	for _, k := range []string{"name", "owner", "actor", "uid", "goalId", "fingerprint", "environment", "state"} {
		if v, ok := at(t, spawn, k).(string); !ok || v == "" {
			t.Errorf("spawn: %s is %v", k, v)
		}
	}
	read := func(row *commands.Contract, in any) []byte {
		t.Helper()
		r := w.Send(row, commands.Request{MinSequence: w.Tip()}, in)
		if !r.OK {
			t.Fatalf("%s: %v", row.Name, r.Error)
		}
		return r.Result
	}
	ls := read(commands.Ls.Contract, commands.LsInput{})
	for _, k := range []string{"items.0.alias", "items.0.environment.version", "items.0.environment.id", "items.0.environment.state", "items.0.operation.id", "items.0.operation.verb", "items.0.operation.state", "asOf"} {
		at(t, ls, k)
	}
	if ms, ok := at(t, ls, "items.0.environment.createdAt").(float64); !ok || ms < 1e12 {
		t.Errorf("R69: createdAt is %v, not epoch milliseconds", ms)
	}
	inspect := read(commands.Inspect.Contract, commands.Named{Name: "demo"})
	for _, k := range []string{"alias", "live", "slot.phase", "head.state", "head.gate", "environment.id", "operation.id", "operation.verb", "operation.state", "consistency", "asOf"} {
		at(t, inspect, k)
	}
}

// A record that can't be read is one event that says so; a torn one is none.
func TestCloudEventsOfWhatCantBeRead(t *testing.T) {
	broken := events.Record{Sequence: 7, Boundary: "seat.local.demo", Broken: fault.New(fault.UnsupportedVersion, "from the future")}
	if es := commands.CloudEventsOf("test", broken); len(es) != 1 || es[0].Type != commands.TypeBroken || es[0].Broken == nil || es[0].Sequence != "7" {
		t.Errorf("%+v", es)
	}
	if es := commands.CloudEventsOf("test", events.Record{Sequence: 8, Boundary: "seat.local.demo", Torn: true}); len(es) != 0 {
		t.Errorf("%+v", es)
	}
}

// The log is read page by page without a gap, in whatever size.
func TestEventPages(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	w.Spawn("demo")
	tip := w.Tip()
	for _, limit := range []int{1, 3, commands.MaxPage} {
		var last uint64
		in := commands.EventsInput{Limit: limit}
		for {
			p := must[commands.EventsResult](t)(commandstest.Ask(w, commands.Events, "", in))
			for _, e := range p.Items {
				var n uint64
				if err := json.Unmarshal([]byte(e.Sequence), &n); err != nil || n < last || n > last+1 {
					t.Fatalf("limit %d: sequence %s follows %d", limit, e.Sequence, last)
				}
				last = n
			}
			if in.From = p.Next; in.From > tip {
				break
			}
		}
		if last < tip {
			t.Errorf("limit %d: ended at %d of %d", limit, last, tip)
		}
	}
	// One that waits is answered by the next commit, and none is an empty page.
	empty := must[commands.EventsResult](t)(commandstest.Ask(w, commands.Events, "", commands.EventsInput{From: w.Tip() + 100, Wait: "1ms"}))
	if len(empty.Items) != 0 || empty.Next == 0 {
		t.Errorf("%+v", empty)
	}
}
