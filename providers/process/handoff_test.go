//go:build linux

package process

import (
	"os"
	"strings"
	"testing"

	"berth/events"
	"berth/internal/handoff"
	"berth/providers"
	"berth/providers/process/seatdir"
)

// H7, H8: a hand-off is one file of mode 0600 that the environment names beside
// the manager; the seat may remove it, and then nothing of it is left, here or
// in the seat. Only the file's name is in the environment.
func TestAHandoffIsTheSeatsToRemove(t *testing.T) {
	r := newRig(t)
	if err := r.d.TakesHandoff(t.Context()); err != nil {
		t.Fatal(err)
	}
	const canary = "canary-0123456789"
	id := r.provisioned(r.plan(`f=$BERTH_MANAGED_HANDOFF_FILE; echo "mode $(stat -c %a:%u:%h "$f"):$(id -u)"; echo "is $(wc -c <"$f")"; ` +
		`rm "$f" && echo removed; ls -A "$(dirname "$f")" | wc -l; echo "manager $BERTH_MANAGER_INSTANCE"; exec sleep 1000`))
	op := r.op(id, events.VerbStart)
	op.Material = providers.Material{handoff.Purpose: []byte(canary)}
	r.must(op)
	got := r.untilLog(id, "manager ")
	for _, want := range []string{"is 17", "removed", "manager " + string(op.Writer.Instance)} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in: %s", want, got)
		}
	}
	_, mode, _ := strings.Cut(got, "mode 600:")
	uid, rest, _ := strings.Cut(mode, ":1:")
	if uid == "" || !strings.HasPrefix(rest, uid+"\n") && !strings.HasPrefix(rest, uid+"\r") {
		t.Errorf("the file is not the seat's alone: %s", got)
	}
	left, err := os.ReadDir(r.d.Seat(id).File(seatdir.DirMaterial))
	if err != nil || len(left) != 0 {
		t.Errorf("it is left: %v %v", left, err)
	}
	start, err := os.ReadFile(r.d.Seat(id).File(seatdir.FileStart))
	if err != nil || strings.Contains(string(start), canary) {
		t.Errorf("what is started holds the hand-off: %v", err)
	}
}

// A seat without a hand-off can't change its material.
func TestMaterialIsReadOnlyOtherwise(t *testing.T) {
	r := newRig(t)
	r.needIsolation()
	id := r.provisioned(r.plan(`rm "$BERTH_MATERIAL/key" || echo "kept ${BERTH_MANAGED_HANDOFF_FILE-none}"; exec sleep 1000`))
	op := r.op(id, events.VerbStart)
	op.Material = providers.Material{"key": []byte("x")}
	r.must(op)
	r.untilLog(id, "kept none")
}
