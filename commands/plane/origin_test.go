package plane_test

import (
	"encoding/json"
	"testing"

	"berth/commands"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// A spawn begins only from a checkpoint that its owner keeps, with the provider
// that has it; anything else is refused before a goal is accepted (R87).
func TestBeginsFromOwnCheckpointsOnly(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	spawned := w.Spawn("demo")
	w.Ended("spawn-demo")
	must[commands.OperationResult](t)(commandstest.Ask(w, commands.Checkpoint, "c", commands.CheckpointInput{Named: commands.Named{Name: "demo"}}))
	var cp events.Checkpoint
	if err := json.Unmarshal(w.Ended("c").Result, &cp); err != nil {
		t.Fatal(err)
	}
	from := func(name, origin string) commands.SpawnInput {
		in := commandstest.Drill(name)
		in.Options = map[string]string{providers.OptionFrom: origin}
		return in
	}
	own := string(spawned.Environment) + "/" + cp.ID
	for what, c := range map[string]struct {
		in     commands.SpawnInput
		refuse fault.Code
	}{
		"a checkpoint that is not there":   {from("b", string(spawned.Environment)+"/none"), fault.NotFound},
		"an environment that is not there": {from("c", "0198c5a0-0000-7000-8000-000000000001/"+cp.ID), fault.NotFound},
		"no checkpoint at all":             {from("d", "demo"), fault.BadRequest},
	} {
		t.Log(what)
		_, err := commandstest.Ask(w, commands.Spawn, "refused", c.in)
		refused(t, err, c.refuse, fault.NotExecuted)
	}
	elsewhere := from("e", own)
	elsewhere.Provider = "process"
	_, err := commandstest.Ask(w, commands.Spawn, "refused", elsewhere)
	refused(t, err, fault.FailedPrecondition, fault.NotExecuted)
	must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "f", from("f", own)))
	// It is for the driver then, and the drill provider has no options.
	if g := w.Ended("f"); g.State != events.GoalFailed || g.Fault.Code != fault.FailedPrecondition {
		t.Errorf("a spawn from an own checkpoint ended %+v", g)
	}
}
