package plane_test

import (
	"encoding/json"
	"testing"

	"berth/commands"
	"berth/commands/commandstest"
)

// What the plane itself costs for the commonest read.
func BenchmarkHandleInspect(b *testing.B) {
	w := commandstest.New(b, commandstest.Config{})
	w.Spawn("demo")
	body, _ := json.Marshal(commands.Request{Input: json.RawMessage(`{"name":"demo"}`)})
	a := commandstest.Address(commands.Inspect.Contract)
	b.ReportAllocs()
	for b.Loop() {
		if r := w.Plane.Handle(b.Context(), a, body, ""); !r.OK {
			b.Fatal(r.Error)
		}
	}
}
