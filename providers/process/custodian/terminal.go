//go:build linux

package custodian

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"berth/events/fault"
	"berth/providers"
)

// typePatience is how long a terminal may take to take an input: a program
// that does not read fills its queue of 4 KiB.
const typePatience = 5 * time.Second

// typeIn types into the seat's terminal. What the terminal took is told also
// when it did not take all.
func (c *custodian) typeIn(data []byte, resp *Response) error {
	if len(data) > MaxInput {
		return fault.New(fault.BadRequest, "input of %d bytes: at most %d at a time", len(data), MaxInput)
	}
	c.Mu.Lock()
	frozen, ending := c.Paused(), c.Ending
	c.Mu.Unlock()
	switch {
	case ending:
		return fault.New(fault.FailedPrecondition, "the seat has ended or is ending").WithOutcome(fault.NotExecuted)
	case frozen:
		return fault.New(fault.FailedPrecondition, "the seat is paused; resume it first").WithOutcome(fault.NotExecuted)
	}
	c.typing.Lock()
	defer c.typing.Unlock()
	if err := c.master.SetWriteDeadline(time.Now().Add(typePatience)); err != nil {
		return fault.New(fault.Internal, "the terminal: %s", err).WithOutcome(fault.NotExecuted)
	}
	n, err := c.master.Write(data)
	resp.Delivered = n
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault.New(fault.DeadlineExceeded, "the seat does not read its terminal: %d of %d bytes were taken", n, len(data)).WithOutcome(fault.Unknown)
	}
	if err != nil {
		return fault.New(fault.Unavailable, "the terminal took %d of %d bytes: %s", n, len(data), err).WithOutcome(fault.Unknown)
	}
	return nil
}

// resize changes the terminal and tells those who look at it.
func (c *custodian) resize(s providers.Size) error {
	if err := s.Check(); err != nil {
		return err
	}
	return c.out.resize(s, func(s providers.Size) error { return setSize(c.master, s) })
}

// nudge gives the terminal another size and its own back: a program that owns
// the whole screen then paints all of it. The screen's lock is held.
func (c *custodian) nudge() {
	c.out.mu.Lock()
	s := c.out.size
	c.out.mu.Unlock()
	other := s
	if other.Rows++; other.Check() != nil {
		other.Rows -= 2
	}
	_ = errors.Join(setSize(c.master, other), setSize(c.master, s))
}

// openTerminal makes a terminal. Its master is not blocking, so that an input
// that nobody reads has a deadline and is not waited for for ever.
func openTerminal() (master, slave *os.File, err error) {
	opened, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer opened.Close()
	fd, err := unix.FcntlInt(opened.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		_ = slave.Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), opened.Name()), slave, nil
}

// HasTerminals opens a terminal to find out whether this host gives any (R11).
func HasTerminals() bool {
	master, slave, err := openTerminal()
	if err != nil {
		return false
	}
	_, _ = master.Close(), slave.Close()
	return true
}

// drainBytes bounds what is taken from a terminal at a time. One read gives at
// most 4 KiB.
const drainBytes = 64 << 10

// drain gives all that a terminal has to w, until the last slave is closed.
// What has gathered is given at once: a flood in pieces of 4 KiB would cost
// everybody who takes them much more than the copying.
func drain(w io.Writer, master *os.File) {
	raw, err := master.SyscallConn()
	buf := make([]byte, drainBytes)
	for err == nil {
		n := 0
		var last error
		err = raw.Read(func(fd uintptr) bool {
			for n < len(buf) {
				var m int
				m, last = unix.Read(int(fd), buf[n:])
				if last == unix.EINTR {
					continue
				}
				if m <= 0 {
					return last != unix.EAGAIN || n > 0
				}
				n += m
			}
			return true
		})
		_, _ = w.Write(buf[:n])
		if err == nil && last != nil && last != unix.EAGAIN || n == 0 {
			return // EIO: the end
		}
	}
}

// setSize goes by the raw connection: File.Fd would make it block again.
func setSize(master *os.File, s providers.Size) error {
	raw, err := master.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: s.Rows, Col: s.Cols})
	})
	return errors.Join(err, set)
}
