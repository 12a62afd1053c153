//go:build linux

package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"berth/providers/process/seatdir"
)

// TrialRole is the first argument that makes the program try whether a machine
// boots here.
const TrialRole = "__vmtrial"

// TrialPatience bounds one trial, to the word of the guest's agent. A machine
// that can be used is there in a fraction of it.
const TrialPatience = 20 * time.Second

// TrialMain boots the machine of path's seatdir.FileStart until its agent
// speaks, ends it, and returns 0; what went wrong is on standard error.
func TrialMain(path string) int {
	runtime.LockOSThread() // as in Main
	unix.Umask(0o077)
	if err := try(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func try(path string) error {
	if err := unix.Chdir(path); err != nil {
		return err
	}
	s := newSupervisor(path)
	if err := s.Dir.ReadJSON(seatdir.FileStart, &s.start); err != nil {
		return err
	}
	s.Dir.ID = s.start.Environment
	ctx, cancel := context.WithTimeout(context.Background(), TrialPatience)
	defer cancel()
	defer s.Clear()
	return s.attempt(ctx, false, func(ctx context.Context) error {
		select {
		case <-s.peer.ready:
			return nil
		case <-s.peer.broken:
			return s.peer.err
		case <-ctx.Done():
			return errors.New("the guest's agent did not speak in time")
		}
	})
}
