//go:build linux

package identity

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
)

// ErrGone says that the process of a custody has ended: proved, not guessed.
var ErrGone = errors.New("the process has ended")

var bootID = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
})

// BootID is the id of this start of the machine.
func BootID() (string, error) { return bootID() }

// StartTime is field 22 of /proc/PID/stat, in clock ticks, and the state
// letter. The command's name may hold anything, so fields count from the last ")".
func StartTime(pid int) (start uint64, state byte, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return 0, 0, fmt.Errorf("/proc/%d/stat is not readable as a stat line", pid)
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 {
		return 0, 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(f))
	}
	start, err = strconv.ParseUint(f[19], 10, 64)
	return start, f[0][0], err
}

// Of is the custody of a living process of this boot.
func Of(pid int) (events.Custody, error) {
	boot, err := BootID()
	if err != nil {
		return events.Custody{}, err
	}
	start, _, err := StartTime(pid)
	return events.Custody{BootID: boot, PID: pid, StartTime: start}, err
}

// Handle is a pidfd whose process was proved to be the one of a custody. A
// signal through it can't reach another process that took the pid.
type Handle struct{ fd int }

// Open proves that the process of c is alive and returns a handle on it.
// ErrGone is proof that it has ended: another boot, no such pid, a pid that
// now belongs to a process with another start time, or a zombie.
func Open(c events.Custody) (*Handle, error) {
	boot, err := BootID()
	if err != nil {
		return nil, fmt.Errorf("reading the boot id: %w", err)
	}
	if c.PID <= 0 || c.BootID != boot {
		return nil, ErrGone
	}
	// The pidfd first: what is compared next then can't be another process.
	fd, err := unix.PidfdOpen(c.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("pidfd_open of %d: %w", c.PID, err)
	}
	h := &Handle{fd}
	start, state, err := StartTime(c.PID)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ESRCH):
		h.Close()
		return nil, ErrGone
	case err != nil:
		h.Close()
		return nil, err
	case start != c.StartTime || state == 'Z' || state == 'X' || h.exited(0):
		h.Close()
		return nil, ErrGone
	}
	return h, nil
}

// FD is the pidfd, for polling; it stays owned by h.
func (h *Handle) FD() int { return h.fd }

// Close releases the handle.
func (h *Handle) Close() { _ = unix.Close(h.fd) }

// Signal sends a signal to exactly this process; ErrGone when it has ended.
func (h *Handle) Signal(s unix.Signal) error {
	err := unix.PidfdSendSignal(h.fd, s, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}

// Signal sends a signal to the process of c and to no other.
func Signal(c events.Custody, s unix.Signal) error {
	h, err := Open(c)
	if err != nil {
		return err
	}
	defer h.Close()
	return h.Signal(s)
}

// WaitExit waits until the process has ended, at most d; false: it lives.
func (h *Handle) WaitExit(d time.Duration) bool {
	end := time.Now().Add(d)
	for {
		left := time.Until(end)
		if h.exited(max(left, 0)) {
			return true
		}
		if left <= 0 {
			return false
		}
	}
}

func (h *Handle) exited(d time.Duration) bool {
	p := []unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, int(d.Milliseconds()))
	return err == nil && n > 0
}

// Boottime is the time since the machine started, suspended time included.
// Setting the wall clock does not move it.
func Boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("identity: no boot-time clock: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
