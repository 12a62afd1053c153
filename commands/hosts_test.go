package commands_test

import (
	"slices"
	"testing"

	"berth/commands"
)

// R76: environment-host-facts is a read about nobody, for any instance and with
// manager.read, and it is in the contract.
func TestHostFactsAreInTheContract(t *testing.T) {
	c, err := commands.Find("environment-host-facts")
	if err != nil || !slices.Contains(commands.Table, c) {
		t.Fatalf("it is not in the table: %v", err)
	}
	if c.Kind != commands.Read || c.Target != commands.TargetAny || c.Capability != commands.CanRead || !slices.Equal(c.Modes, []commands.Mode{commands.ModeNone}) {
		t.Errorf("%+v", c)
	}
}

// R84: status stays free of inventory: what hosts have is not in its answer.
func TestStatusHasNoInventory(t *testing.T) {
	status, hosts := commands.Status.OutputSchema()["properties"].(commands.Schema), commands.Hosts.OutputSchema()["properties"].(commands.Schema)
	for _, inventory := range []string{"headroom", "instances"} {
		if hosts[inventory] == nil || status[inventory] != nil {
			t.Errorf("%s: in the answer of hosts %v, of status %v", inventory, hosts[inventory] != nil, status[inventory] != nil)
		}
	}
	if status["providers"].(commands.Schema)["items"].(commands.Schema)["type"] != "string" {
		t.Error("status tells more of a provider than its name")
	}
}
