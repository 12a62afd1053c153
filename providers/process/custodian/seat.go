//go:build linux

package custodian

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/identity"
	"berth/providers/process/sign"
	"berth/providers/process/stage"
)

// The terminal's size until somebody attaches and says otherwise.
const (
	defaultRows = 40
	defaultCols = 120
)

// stagePatience bounds how long the stage may take to build a root.
const stagePatience = 60 * time.Second

// endPatience bounds how long removing an emptied control group may take.
const endPatience = 10 * time.Second

// startSeat makes the terminal and the control group, starts the stage in
// both, waits until the seat's command is executing, and tells who that is.
func (c *custodian) startSeat() (seat events.Custody, err error) {
	s := c.start
	if s.Group.Name != "" {
		_ = s.Group.Remove(endPatience) // of an earlier start that was cut off
		if err := s.Group.Create(s.Limits); err != nil {
			return seat, fault.New(fault.FailedPrecondition, "limits: %s", err)
		}
	}
	master, slave, err := openTerminal()
	if err != nil {
		return seat, fault.New(fault.FailedPrecondition, "terminal: %s", err)
	}
	defer slave.Close()
	defer func() {
		if err != nil {
			_ = master.Close()
		}
	}()
	if err := setSize(master, providers.Size{Rows: defaultRows, Cols: defaultCols}); err != nil {
		return seat, err
	}
	if s.IDBase != 0 && s.Seat.Isolated {
		if err := slave.Chown(s.IDBase, s.IDBase); err != nil {
			return seat, err
		}
	}
	pid, said, err := c.stage(slave)
	if err != nil {
		return seat, err
	}
	if seat, err = identity.Of(pid); err != nil {
		return seat, err
	}
	c.listen(said, seat.PID)
	c.master, c.out.nudge = master, c.nudge
	go func() {
		defer close(c.drain)
		drain(c.out, master)
	}()
	return seat, nil
}

// listen begins to look for the sign of the seat whose first process is pid;
// said is the seat's descriptor, if that is its sign.
func (c *custodian) listen(said *os.File, pid int) {
	if said == nil {
		close(c.heard)
		if c.Sign.Is(events.SignPort) {
			go func() {
				if sign.Port(pid, c.start.Seat.Ready.Port, c.Done) {
					c.Sign.Give()
				}
			}()
		}
		return
	}
	go func() {
		defer close(c.heard)
		defer said.Close()
		if sign.Line(said) {
			c.Sign.Give()
		}
	}()
}

// stage starts the stage, puts it into its control group, gives it its
// orders, and returns its pid when the command runs, and the descriptor on
// which the seat says that it is ready, if that is its sign.
func (c *custodian) stage(slave *os.File) (pid int, said *os.File, err error) {
	if r := c.start.Seat.Ready; r == nil || r.Kind != events.SignFD {
		pid, err = c.runStage(slave, nil)
		return pid, nil, err
	}
	said, says, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer says.Close()
	if pid, err = c.runStage(slave, says); err != nil {
		_ = said.Close()
		return 0, nil, err
	}
	return pid, said, nil
}

// runStage is stage with the seat's end of that descriptor, or nil.
func (c *custodian) runStage(slave, says *os.File) (int, error) {
	orders, err := json.Marshal(c.start.Seat)
	if err != nil {
		return 0, err
	}
	or, ow, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer or.Close()
	defer ow.Close()
	sr, sw, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer sr.Close()
	defer sw.Close()
	// Through /proc: the program's path may be closed to the seat's user.
	cmd := exec.Command("/proc/self/exe", stage.Role)
	cmd.Env = []string{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.ExtraFiles = []*os.File{or, sw}
	if says != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, says)
	}
	cmd.SysProcAttr = stage.Attributes(c.start.Seat, c.start.IDBase)
	if err := cmd.Start(); err != nil {
		return 0, fault.New(fault.FailedPrecondition, "namespaces: %s", err).WithHint("berth doctor shows what this host offers")
	}
	_, _ = or.Close(), sw.Close()
	pid := cmd.Process.Pid
	fail := func(err error) (int, error) {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
		return 0, err
	}
	if c.start.Group.Name != "" {
		if err := c.start.Group.Add(pid); err != nil {
			return fail(fault.New(fault.FailedPrecondition, "limits: %s", err))
		}
	}
	if _, err := ow.Write(orders); err != nil {
		return fail(fmt.Errorf("giving the seat its orders: %w", err))
	}
	_ = ow.Close()
	_ = sr.SetReadDeadline(time.Now().Add(stagePatience))
	said, err := io.ReadAll(io.LimitReader(sr, 4096))
	if err != nil {
		return fail(fmt.Errorf("waiting for the seat: %w", err))
	}
	if len(said) > 0 {
		return fail(fault.New(fault.FailedPrecondition, "seat: %s", strings.TrimSpace(string(said))))
	}
	return pid, nil
}

// await reaps until the seat has ended, and gives its exit code.
func (c *custodian) await() int {
	var ws unix.WaitStatus
	for {
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid == c.Ident.Seat.PID {
			return exitCode(ws)
		}
	}
}

func exitCode(ws unix.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// reap waits for every child, killing what still runs, until none is left. As
// a subreaper this process inherits every orphan of the seat.
func (c *custodian) reap() {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return
		case err == nil && pid > 0:
			continue
		case err == nil:
			c.killTree()
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// killTree sends SIGKILL to every process of the seat.
func (c *custodian) killTree() {
	c.start.Group.KillAll()
	for _, p := range identity.Descendants(os.Getpid()) {
		_ = identity.Signal(p, unix.SIGKILL)
	}
}
