//go:build linux

package seat

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"berth/events"
	"berth/providers/process/identity"
)

// A seat that ends before it could be watched is told of all the same: nobody
// polls what has a watcher.
func TestAnExitBeforeTheWatchIsTold(t *testing.T) {
	w, err := newWatches()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	boot, err := identity.BootID()
	if err != nil {
		t.Fatal(err)
	}
	gone := events.Custody{BootID: boot, PID: cmd.Process.Pid, StartTime: 1}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	told := make(chan events.EnvironmentID, 2)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = (&Base{watches: w}).Watch(ctx, func(id events.EnvironmentID) { told <- id })
	}()
	defer func() { cancel(); <-ended }()
	for b := (&Base{watches: w}); b.Watchers() != 1; {
		runtime.Gosched()
	}
	for name, watch := range map[string]func(events.EnvironmentID, events.Custody) error{"add": w.add, "ensure": w.ensure} {
		if err := watch("e", gone); !errors.Is(err, identity.ErrGone) {
			t.Fatalf("%s: %v", name, err)
		}
		select {
		case <-told:
		case <-time.After(60 * time.Second):
			t.Fatalf("%s: nobody was told", name)
		}
	}
}
