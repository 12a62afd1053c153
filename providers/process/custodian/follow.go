//go:build linux

package custodian

import (
	"io"
	"net"
	"time"
)

// follower is somebody who reads what the seat writes, as it comes.
type follower struct {
	io.Writer
	gone bool // guarded by the output's lock
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
		o.more.Broadcast()
	}()
	err := serve(f)
	_ = conn.Close()
	<-left
	return err
}
