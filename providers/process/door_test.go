//go:build linux

package process

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"berth/events"
)

// A seat without a network sees the socket of its manager, also one that was
// made again after the seat began, and can't put anything beside it.
func TestASeatSeesTheDoor(t *testing.T) {
	r := newRig(t)
	r.needIsolation()
	dir := DoorDir(r.d.Dir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	none := "none"
	p := r.plan(`until test -S "$` + events.EnvDoor + `/manager.sock"; do sleep 0.05; done; touch "$` + events.EnvDoor + `/x" || echo "seen and kept"; exec sleep 1000`)
	p.Network = &none
	id := r.provisioned(p)
	r.must(r.op(id, events.VerbStart))
	// Its path may be longer than the kernel takes.
	old, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	l, err := net.Listen("unix", "manager.sock")
	t.Chdir(old)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r.untilLog(id, "seen and kept")
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("the seat wrote into the door's directory")
	}
}
