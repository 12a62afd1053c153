package scenario

import (
	"testing"

	"berth/commands"
	"berth/commands/commandstest"
	"berth/events/fault"
)

// Scenario 25: a spawn for which there is no provider is refused at once, by
// the word, and nothing waits for one.
func TestNoProviderIsRefusedAtOnce(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	before := w.Tip()
	in := commandstest.Drill("web")
	in.Provider = "nowhere"
	_, err := commandstest.Ask(w, commands.Spawn, "spawn-web", in)
	if code, outcome := commandstest.Code(err); code != fault.NotFound || outcome != fault.NotExecuted {
		t.Errorf("%v", err)
	}
	if after := w.Tip(); after != before {
		t.Errorf("the refusal appended %d records", after-before)
	}
}
