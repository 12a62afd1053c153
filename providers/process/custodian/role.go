//go:build linux

package custodian

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/seatdir"
)

// Role is the first argument that makes the program a custodian.
const Role = "__custodian"

// custodian keeps a seat that is a tree of processes.
type custodian struct {
	*Post
	start  seatdir.Start
	master *os.File
	heard  chan struct{} // closed when nothing more comes by the descriptor
	drain  chan struct{} // closed when the terminal gave its last byte
	holds  int           // connections that keep it frozen for a capture; needs Mu
	typing sync.Mutex    // one input at a time, so that none is torn by another
}

// Main runs the role, as Post.Run says.
func Main(path string) int {
	p := NewPost(path)
	return p.Run(&custodian{Post: p, drain: make(chan struct{}), heard: make(chan struct{})})
}

// Order implements Seat.
func (c *custodian) Order() (Order, error) {
	err := c.Dir.ReadJSON(seatdir.FileStart, &c.start)
	return Order{Operation: c.start.Operation, Fingerprint: c.start.Fingerprint, Replace: c.start.Replace, Network: c.start.Seat.Network, Ready: c.start.Seat.Ready}, err
}

// Launch implements Seat: a replacement begins with the home that was put
// together for it.
func (c *custodian) Launch(context.Context) (id seatdir.Ident, err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return id, fmt.Errorf("becoming a subreaper: %w", err)
	}
	if c.start.Replace {
		if err := c.Dir.TakeHome(); err != nil {
			return id, err
		}
	}
	id.Group = c.start.Group
	id.Seat, err = c.startSeat()
	return id, err
}

// Settle implements Seat: the home stays that belongs to what runs.
func (c *custodian) Settle(landed bool) error { return c.Dir.SettleHome(landed) }

// Do implements Seat.
func (c *custodian) Do(r Request, resp *Response) (func(net.Conn), error) {
	switch r.Ask {
	case AskFreeze:
		return nil, c.freeze(true, r.Change, 0)
	case AskThaw:
		return nil, c.freeze(false, r.Change, 0)
	case AskHold:
		return c.letGo, c.freeze(true, r.Change, 1)
	case AskStop:
		return nil, c.stop(r.Grace)
	case AskInput:
		return nil, c.typeIn(r.Data, resp)
	case AskResize:
		return nil, c.resize(providers.Size{Rows: r.Rows, Cols: r.Cols})
	}
	return nil, fault.New(fault.Unimplemented, "a custodian does not know %q", r.Ask)
}

// Paused implements Seat. A capture is not a pause.
func (c *custodian) Paused() bool { return c.Frozen && c.holds == 0 }

// Kill implements Seat.
func (c *custodian) Kill() {
	select {
	case <-c.Done:
	default:
		c.killTree()
	}
}

// Clear implements Seat.
func (c *custodian) Clear() {
	c.killTree()
	c.reap()
	if c.start.Group.Name != "" {
		_ = c.start.Group.Remove(endPatience)
	}
}

// Keep implements Seat: it reaps until the seat has ended, and ends what is left
// of its tree. Only when every process is gone is an exit proved (R67).
func (c *custodian) Keep() *int {
	code := c.await()
	c.Mu.Lock()
	c.Ending = true
	c.Mu.Unlock()
	c.killTree()
	c.reap()
	patience := time.After(endPatience)
	for _, last := range []chan struct{}{c.drain, c.heard} { // what it said before its end counts
		select {
		case <-last:
		case <-patience:
		}
	}
	return &code
}
