//go:build unix

package cli

import (
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"

	"berth/events/fault"
	"berth/internal/handoff"
)

// become puts the document into a pipe and replaces this process by the
// command, which inherits the reading end. The pipe holds all of it, so that
// no process has to stay to write, and it is read once. It returns only when
// the command can't be started.
func become(command []string, document []byte) error {
	program, err := exec.LookPath(command[0])
	if err != nil {
		return fault.New(fault.NotFound, "the command of the seat is not there, or can't be run").WithOutcome(fault.NotExecuted)
	}
	var ends [2]int
	if err := unix.Pipe(ends[:]); err != nil {
		return unpiped()
	}
	defer unix.Close(ends[0])
	// The writer must be gone at the exec, or the reader would wait for ever.
	unix.CloseOnExec(ends[1])
	n := 0
	if err := unix.SetNonblock(ends[1], true); err == nil {
		n, err = unix.Write(ends[1], document)
		if err != nil {
			n = 0
		}
	}
	_ = unix.Close(ends[1]) // what a pipe took, it has
	if n != len(document) {
		return unpiped()
	}
	env := append(os.Environ(), handoff.EnvFD+"="+strconv.Itoa(ends[0]))
	err = unix.Exec(program, command, env)
	return fault.New(fault.FailedPrecondition, "the command of the seat can't be started: %s", err).WithOutcome(fault.NotExecuted)
}

func unpiped() error {
	return fault.New(fault.ResourceExhausted, "the hand-off can't be put into a pipe: this user may hold no larger one").WithOutcome(fault.NotExecuted)
}
