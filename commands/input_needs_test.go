package commands_test

import (
	"strconv"
	"testing"

	"berth/commands"
	"berth/events/fault"
)

// Needs are public text (R71) within their limits; each limit at its edge.
func TestNeedsAreChecked(t *testing.T) {
	labels := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m["l"+strconv.Itoa(i)] = "v"
		}
		return m
	}
	free := func(f commands.FreeInput) commands.NeedsInput { return commands.NeedsInput{Headroom: &f} }
	for name, n := range map[string]commands.NeedsInput{
		"nothing": {}, "all labels": {Labels: labels(commands.MaxNeedLabels)}, "all slots": free(commands.FreeInput{Slots: commands.MaxFreeSlots}),
		"exact": free(commands.FreeInput{CPUs: "0.25", Memory: "128MiB", Disk: "1GiB"}),
	} {
		if err := n.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, n := range map[string]commands.NeedsInput{
		"a label too many": {Labels: labels(commands.MaxNeedLabels + 1)}, "an empty label": {Labels: map[string]string{"a": ""}},
		"a secret label": {Labels: map[string]string{"password": "x"}}, "a control character": {Arch: "amd\x0064"}, "a slot too many": free(commands.FreeInput{Slots: commands.MaxFreeSlots + 1}),
		"no number": free(commands.FreeInput{CPUs: "many"}), "half a MiB": free(commands.FreeInput{Memory: "512KiB"}), "half a GiB": free(commands.FreeInput{Disk: "512MiB"}),
	} {
		in := commands.SpawnInput{Name: "demo", Needs: &n}
		if err := in.Check(); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}
