//go:build linux

package qemu

import (
	"os"
	"strings"
	"testing"

	"berth/events"
	"berth/events/fault"
	"berth/internal/handoff"
	"berth/providers"
	"berth/providers/process/seatdir"
)

// H7, H8: in a machine a hand-off is one file of mode 0600 that the environment
// names beside the manager; it is gone from this host before the command runs,
// and the seat removes it there. The program that takes it is in the guest.
func TestAHandoffGoesIntoTheMachine(t *testing.T) {
	needMachines(t)
	r := newRig(t)
	if err := r.d.TakesHandoff(t.Context()); err != nil {
		t.Fatal(err)
	}
	const canary = "canary-0123456789"
	p := plan(`f=$BERTH_MANAGED_HANDOFF_FILE; echo "mode $(stat -c %a:%u:%h "$f")"; echo "is $(wc -c <"$f")"; ` +
		`rm "$f" && echo "removed, left $(ls -A "$BERTH_MATERIAL" | wc -l)"; echo "program $(readlink "$(command -v berth)")"; echo "manager $BERTH_MANAGER_INSTANCE"; exec sleep 1000`)
	p.Delegated = true
	id := r.provisioned(p)
	start := r.op(id, events.VerbStart)
	start.Material = providers.Material{handoff.Purpose: []byte(canary)}
	if out := r.do(start); out.Kind == providers.Refused && strings.Contains(out.Fault.Message, "not there in time") {
		r.Skipf("NO MICROVM IS SHOWN BY THIS TEST: this host is too busy to boot one in minutes: %v", out.Fault)
	}
	r.must(start) // the same id: the same answer
	got := r.untilLog(id, "manager ")
	for _, want := range []string{"mode 600:0:1", "is 17", "removed, left 0", "program /berth/init", "manager " + string(start.Writer.Instance)} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in: %s", want, got)
		}
	}
	left, err := os.ReadDir(r.d.Seat(id).File(seatdir.DirMaterial))
	if err != nil || len(left) != 0 {
		t.Errorf("it is left on this host: %v %v", left, err)
	}
	b, err := os.ReadFile(r.d.Seat(id).File(seatdir.FileStart))
	if err != nil || strings.Contains(string(b), canary) {
		t.Errorf("what is started holds the hand-off: %v", err)
	}
}

// A delegated seat's memory is kept nowhere, and it begins from no other's: the
// hand-off is taken once.
func TestADelegatedMachineBeginsFromNothing(t *testing.T) {
	p := plan("true")
	p.Delegated = true
	if _, err := choices(p); err != nil {
		t.Errorf("a plain one: %v", err)
	}
	for name, value := range map[string]string{OptionCheckpoint: "memory", providers.OptionFrom: "0191e1a0-0000-7000-8000-000000000001/golden"} {
		p.Options = map[string]string{name: value}
		if _, err := choices(p); fault.CodeOf(err) != fault.FailedPrecondition {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}
