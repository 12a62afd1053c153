//go:build linux

package custodian

import (
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// MaxGrace is the longest time that a stop may leave before the kill.
const MaxGrace = 10 * time.Minute

// freeze stops the whole tree, or lets it go on, for as many holds more. Memory
// stays as it is. A change refuses to do what was done already.
func (c *custodian) freeze(frozen, change bool, holds int) error {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if c.Ending {
		return fault.New(fault.FailedPrecondition, "the seat has ended or is ending")
	}
	if change && c.Paused() == frozen {
		return Unchanged(frozen)
	}
	err := c.setFrozen(frozen)
	if err == nil {
		c.holds += holds
	}
	return err
}

// letGo ends a hold when the other side is gone.
func (c *custodian) letGo(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Time{})
	_, _ = io.Copy(io.Discard, conn)
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if c.holds--; c.holds == 0 && !c.Ending {
		_ = c.setFrozen(false)
	}
}

// Unchanged refuses a freeze or a thaw that would change nothing.
func Unchanged(frozen bool) error {
	is := "running"
	if frozen {
		is = "paused"
	}
	return fault.New(fault.FailedPrecondition, "the seat is %s already", is).WithOutcome(fault.NotExecuted)
}

// setFrozen needs Mu.
func (c *custodian) setFrozen(frozen bool) error {
	if c.Frozen == frozen {
		return nil
	}
	if c.start.Group.CanFreeze() {
		if err := c.start.Group.Freeze(frozen); err != nil {
			return err
		}
	} else {
		c.signalAll(frozen)
	}
	c.Frozen = frozen
	return nil
}

// signalAll freezes without control groups: a process that was forked while
// its parent was being stopped is found by the next round.
func (c *custodian) signalAll(stop bool) {
	sig := unix.SIGCONT
	if stop {
		sig = unix.SIGSTOP
	}
	seen := map[events.Custody]bool{}
	for again := true; again; {
		again = false
		for _, p := range identity.Descendants(os.Getpid()) {
			if !seen[p] {
				seen[p], again = true, true
				_ = identity.Signal(p, sig)
			}
		}
	}
}

// stop asks the tree to end (SIGTERM), waits for the grace, kills what is
// left, and returns when the proof is written.
func (c *custodian) stop(grace time.Duration) error {
	c.Mu.Lock()
	_ = c.setFrozen(false) // a frozen process can't hear; the kill reaches it anyway
	if !c.Ending {
		c.Why = seatdir.EndStopped
	}
	c.Mu.Unlock()
	if grace > 0 {
		c.terminate(time.Now().Add(min(grace, MaxGrace)))
	}
	c.Kill()
	<-c.Done
	return nil
}

// terminate returns when every process that was asked has ended, or at end.
//
// The first process of a pid namespace is spared a signal's default action.
// If it has no handler for SIGTERM, that action is what it asked for: it is
// killed as soon as the others, which would die with it, have had their time.
//
// A shell that somebody types into ignores SIGTERM, and ends when its terminal
// hangs up: what ignores the one is sent SIGHUP instead.
func (c *custodian) terminate(end time.Time) {
	var asked []events.Custody
	for _, p := range identity.Descendants(os.Getpid()) {
		spared := p == c.Ident.Seat && c.start.Seat.Isolated && identity.DiesByDefault(p.PID, unix.SIGTERM)
		sig := unix.SIGTERM
		if identity.Ignores(p.PID, sig) {
			sig = unix.SIGHUP
		}
		if identity.Signal(p, sig) == nil && !spared {
			asked = append(asked, p)
		}
	}
	for len(asked) > 0 && time.Now().Before(end) {
		p, err := identity.Open(asked[0])
		if err != nil {
			asked = asked[1:]
			continue
		}
		if p.WaitExit(min(time.Until(end), 100*time.Millisecond)) {
			asked = asked[1:]
		}
		p.Close()
	}
}
