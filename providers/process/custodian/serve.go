//go:build linux

package custodian

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// MaxGrace is the longest time that a stop may leave before the kill.
const MaxGrace = 10 * time.Minute

// maxConnections bounds the connections that are open at a time.
const maxConnections = 64

// requestPatience is how long a peer may take to send its request.
const requestPatience = 30 * time.Second

// deadlineCheck is how often the deadline is looked at though no timer of it
// is due: a suspended machine stops timers and not the boot-time clock.
const deadlineCheck = time.Minute

func (c *custodian) serve() {
	defer close(c.served)
	slots := make(chan struct{}, maxConnections)
	for {
		conn, err := c.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		select {
		case slots <- struct{}{}:
			c.busy.Add(1)
			go func() {
				defer c.busy.Done()
				defer func() { <-slots }()
				c.answer(conn.(*net.UnixConn))
			}()
		default:
			_ = conn.Close()
		}
	}
}

func (c *custodian) answer(conn *net.UnixConn) {
	defer conn.Close()
	// The socket is 0600; this holds where the filesystem does not keep modes.
	if cred, err := peer(conn); err != nil || int(cred.Uid) != os.Getuid() && cred.Uid != 0 {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(requestPatience))
	line, err := readLine(bufio.NewReader(conn), MaxRequest)
	if err != nil {
		return
	}
	var r Request
	resp, leave := Response{}, func() {}
	err = json.Unmarshal(line, &r)
	switch {
	case err != nil:
		err = fault.New(fault.BadRequest, "not a request: %s", err)
	case r.Ask == AskAttach || r.Ask == AskView:
		leave, err = c.out.enter()
	default:
		err = c.do(r, &resp)
	}
	defer leave()
	if err != nil {
		resp.Fault = fault.From(err)
	}
	first, next := c.out.span()
	resp.From, resp.Next = max(first, r.From), next
	c.mu.Lock()
	if r.Ask == AskHold && resp.Fault == nil {
		c.holds++
	}
	resp.Frozen = c.frozen && c.holds == 0 // a capture is not a pause
	c.mu.Unlock()
	resp.Ready = c.sign.now()
	b, err := json.Marshal(resp)
	if err == nil {
		_, err = conn.Write(append(b, '\n'))
	}
	switch {
	case resp.Fault != nil:
	case r.Ask == AskHold:
		_ = conn.SetReadDeadline(time.Time{})
		_, _ = io.Copy(io.Discard, conn) // until the other side is gone
		c.mu.Lock()
		if c.holds--; c.holds == 0 && !c.ending {
			_ = c.setFrozen(false)
		}
		c.mu.Unlock()
	case r.Ask == AskAttach && err == nil:
		_ = c.out.follow(conn, func(f *follower) error { return c.out.copyTo(f, resp.From) })
	case r.Ask == AskView && err == nil:
		_ = c.out.follow(conn, c.out.view)
	}
}

func (c *custodian) do(r Request, resp *Response) error {
	switch r.Ask {
	case AskStatus:
		return nil
	case AskFreeze, AskHold:
		return c.freeze(true, r.Change)
	case AskThaw:
		return c.freeze(false, r.Change)
	case AskStop:
		return c.stop(r.Grace)
	case AskDeadline:
		select {
		case c.wake <- struct{}{}:
		default:
		}
		return nil
	case AskReady:
		select {
		case <-c.sign.given:
		case <-c.done:
		}
		return nil
	case AskInput:
		return c.typeIn(r.Data, resp)
	case AskResize:
		return c.resize(providers.Size{Rows: r.Rows, Cols: r.Cols})
	}
	return fault.New(fault.Unimplemented, "a custodian does not know %q", r.Ask)
}

// freeze stops the whole tree, or lets it go on. Memory stays as it is. A change
// refuses to do what was done already.
func (c *custodian) freeze(frozen, change bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		return fault.New(fault.FailedPrecondition, "the seat has ended or is ending")
	}
	if change && (c.frozen && c.holds == 0) == frozen {
		return Unchanged(frozen)
	}
	return c.setFrozen(frozen)
}

// Unchanged refuses a freeze or a thaw that would change nothing.
func Unchanged(frozen bool) error {
	is := "running"
	if frozen {
		is = "paused"
	}
	return fault.New(fault.FailedPrecondition, "the seat is %s already", is).WithOutcome(fault.NotExecuted)
}

// setFrozen needs c.mu.
func (c *custodian) setFrozen(frozen bool) error {
	if c.frozen == frozen {
		return nil
	}
	if c.start.Group.CanFreeze() {
		if err := c.start.Group.Freeze(frozen); err != nil {
			return err
		}
	} else {
		c.signalAll(frozen)
	}
	c.frozen = frozen
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
	c.mu.Lock()
	_ = c.setFrozen(false) // a frozen process can't hear; the kill reaches it anyway
	if !c.ending {
		c.why = seatdir.EndStopped
	}
	c.mu.Unlock()
	if grace > 0 {
		c.terminate(time.Now().Add(min(grace, MaxGrace)))
	}
	c.killSeat()
	<-c.done
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
		spared := p == c.ident.Seat && c.start.Seat.Isolated && identity.DiesByDefault(p.PID, unix.SIGTERM)
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

// killSeat ends the tree; keep sees the seat's end and does the rest.
func (c *custodian) killSeat() {
	select {
	case <-c.done:
	default:
		c.killTree()
	}
}

// slack keeps the end from being seen before its time on a wall clock that
// runs a little slower than the boot-time clock.
const slack = 20 * time.Millisecond

// watchDeadline ends the seat when its lifetime is over, whoever else lives.
func (c *custodian) watchDeadline() {
	for {
		wait := deadlineCheck
		var d seatdir.Deadline
		boot, err := identity.BootID()
		if err == nil {
			err = c.dir.ReadJSON(seatdir.FileDeadline, &d)
		}
		if err == nil {
			if left, ok := d.Left(boot, identity.Boottime(), time.Now()); ok && left <= -slack {
				c.mu.Lock()
				if !c.ending && c.why == seatdir.EndExited {
					c.why = seatdir.EndExpired
				}
				c.mu.Unlock()
				c.killSeat()
				wait = 100 * time.Millisecond // until keep has seen it
			} else if ok {
				wait = min(wait, left+slack)
			}
		}
		select {
		case <-c.wake:
		case <-time.After(wait):
		case <-c.done:
			return
		}
	}
}
