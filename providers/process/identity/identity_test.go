//go:build linux

package identity

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
)

func TestOpenProvesIdentity(t *testing.T) {
	me, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(me)
	if err != nil {
		t.Fatalf("our own process: %v", err)
	}
	h.Close()

	reused := me
	reused.StartTime++
	otherBoot := me
	otherBoot.BootID = "00000000-0000-0000-0000-000000000000"
	nobody := me
	nobody.PID = 1 << 30
	none := me
	none.PID = 0
	for name, c := range map[string]events.Custody{"a reused pid": reused, "another boot": otherBoot, "no such pid": nobody, "no pid": none} {
		if _, err := Open(c); !errors.Is(err, ErrGone) {
			t.Errorf("%s: got %v, want ErrGone", name, err)
		}
	}
}

// A zombie passes pidfd_open, the start time and signal 0; it has ended all the same.
func TestAZombieIsGone(t *testing.T) {
	c := exec.Command("/bin/sh", "-c", "read x")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	cu, err := Of(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(cu)
	if err != nil {
		t.Fatalf("alive: %v", err)
	}
	defer h.Close()
	if h.WaitExit(0) {
		t.Fatal("a living process was taken for one that has ended")
	}
	in.Close()
	if !h.WaitExit(60 * time.Second) {
		t.Fatal("the process did not end")
	}
	// Not waited for yet: it is a zombie now.
	if err := unix.Kill(cu.PID, 0); err != nil {
		t.Fatalf("the trap is not set: %v", err)
	}
	if _, err := Open(cu); !errors.Is(err, ErrGone) {
		t.Fatalf("a zombie: got %v, want ErrGone", err)
	}
	_ = c.Wait()
}

func TestBoottimeRises(t *testing.T) {
	if a, b := Boottime(), Boottime(); a <= 0 || b < a {
		t.Fatalf("boot time went from %v to %v", a, b)
	}
}
