//go:build linux

package custodian

import (
	"io"
	"net"
	"time"

	"berth/events/fault"
)

// MaxFollowers is how many read one seat's output at a time: fewer than there
// may be connections to its supervisor, so that a stop always finds one.
const MaxFollowers = 48

// follower is somebody who reads what the seat writes, as it comes.
type follower struct {
	io.Writer
	gone bool // guarded by the output's lock
}

// enter counts a follower, before it is told that it is one. A full house
// refuses with resource-exhausted.
func (o *output) enter() (leave func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.followers >= MaxFollowers {
		return func() {}, fault.New(fault.ResourceExhausted, "%d read the output of this seat already, the most there may be", MaxFollowers).WithOutcome(fault.NotExecuted)
	}
	o.followers++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.followers--
	}, nil
}

// follow serves a follower until the output ends or the peer is gone. An idle
// seat writes nothing by which the latter would show, and connections are
// bounded: those of readers that left must not keep a stop out. conn is closed.
func (o *output) follow(conn net.Conn, serve func(*follower) error) error {
	_ = conn.SetReadDeadline(time.Time{}) // a reader says nothing for as long as it likes
	f, left := &follower{Writer: conn}, make(chan struct{})
	go func() {
		defer close(left)
		_, _ = io.Copy(io.Discard, conn)
		o.mu.Lock()
		defer o.mu.Unlock()
		f.gone = true
		o.wake()
	}()
	err := serve(f)
	_ = conn.Close()
	<-left
	return err
}
