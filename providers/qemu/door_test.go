//go:build linux

package qemu

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/events"
	"berth/providers"
)

// doorRole makes the test binary, which is also in the guest, a program that
// says who it is at the door and prints what it hears.
const doorRole = "__door"

func atDoor() {
	c, err := net.Dial("unix", filepath.Join(os.Getenv(events.EnvDoor), providers.DoorSocket))
	if err != nil {
		fmt.Println("no door:", err)
		return
	}
	fmt.Fprintln(c, os.Getenv(events.EnvSeat))
	_, _ = io.Copy(os.Stdout, c)
}

// A program in a guest without a network reaches whoever listens at the door of
// this host, also after the machine was paused and the listener was another;
// a seat without material, and one that began before there was a door, has none.
func TestAGuestHasADoor(t *testing.T) {
	needMachines(t)
	dir := filepath.Join(t.TempDir(), "door")
	r := newRig(t, func(c *Config) { c.Door = dir })
	script := `echo "door: $` + events.EnvDoor + `"; while read x; do /proc/1/exe ` + doorRole + `; done`
	withMaterial := func(op *providers.Operation) {
		if op.Verb == events.VerbProvision {
			op.Material = providers.Material{"key": []byte("secret")}
		}
	}
	before, _ := r.running(plan(script), withMaterial)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	bare, _ := r.running(plan(script))
	for _, id := range []events.EnvironmentID{before, bare} {
		r.until("it says that it has none", func() bool { return strings.Contains(r.logs(id), "door: \r\n") })
		r.must(r.op(id, events.VerbDestroy))
	}
	id, _ := r.running(plan(script), withMaterial)
	for i := range 2 {
		l := welcome(t, dir, fmt.Sprintf("%d welcomes ", i))
		if err := r.say(id, "go\n"); err != nil {
			t.Fatal(err)
		}
		r.until("it is welcome", func() bool { return strings.Contains(r.logs(id), fmt.Sprintf("%d welcomes demo", i)) })
		_ = l.Close()
		r.must(r.op(id, events.VerbPause))
		r.must(r.op(id, events.VerbResume))
	}
}

// welcome answers at the door until it is closed.
func welcome(t *testing.T, dir, greeting string) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(dir, providers.DoorSocket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			name, _ := bufio.NewReader(c).ReadString('\n')
			fmt.Fprintln(c, greeting+strings.TrimSpace(name))
			_ = c.Close()
		}
	}()
	return l
}
