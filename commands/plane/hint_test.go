package plane_test

import (
	"encoding/json"
	"slices"
	"testing"

	"berth/commands"
	"berth/commands/commandstest"
	"berth/commands/plane"
	"berth/events"
)

// Whoever works on a seat is told of what a command has committed there, once;
// of what was not committed nobody is told.
func TestACommitIsHintedAt(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "s", commandstest.Drill("demo")))
	var told []events.Boundary
	o := w.Plane.Options
	o.Poke = func(b events.Boundary) { told = append(told, b) }
	p := plane.New(o)
	defer p.Close()
	send := func(id events.CommandID, dry bool, name string) commands.Reply {
		body, err := json.Marshal(commands.Request{ID: id, DryRun: dry, Input: json.RawMessage(`{"name":"` + name + `"}`)})
		if err != nil {
			t.Fatal(err)
		}
		return p.Handle(t.Context(), commandstest.Address(commands.Retire.Contract), body, "")
	}
	for range 2 { // the second is a repeat
		if r := send("r", false, "demo"); !r.OK {
			t.Fatalf("%+v", r.Error)
		}
	}
	send("dry", true, "demo")
	if r := send("none", false, "another"); r.OK {
		t.Fatalf("%+v", r)
	}
	if want := []events.Boundary{events.SeatBoundary("local", "demo")}; !slices.Equal(told, want) {
		t.Errorf("told of %v instead of %v", told, want)
	}
}
