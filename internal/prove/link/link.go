// Package link is a TCP connection that a test can cut and mend, for programs
// that should find their way back.
package link

import (
	"io"
	"net"
	"sync"
)

// Link passes connections on until it is cut. Many may use it.
type Link struct {
	ln   net.Listener
	to   string
	busy sync.WaitGroup

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
}

// New is a link to an address, host:port, with a loopback address of its own.
func New(to string) (*Link, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{ln: ln, to: to, open: map[net.Conn]bool{}}
	l.busy.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			l.busy.Go(func() { l.pass(c) })
		}
	})
	return l, nil
}

// Addr is where the link begins, host:port.
func (l *Link) Addr() string { return l.ln.Addr().String() }

// Cut ends every connection, and refuses new ones until Mend.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	for c := range l.open {
		_ = c.Close()
	}
	clear(l.open)
}

// Mend lets new connections pass again.
func (l *Link) Mend() { l.mu.Lock(); defer l.mu.Unlock(); l.isCut = false }

// Close cuts it for good, and returns when nothing of it is left.
func (l *Link) Close() {
	_ = l.ln.Close()
	l.Cut()
	l.busy.Wait()
}

// keep takes a connection in, unless the link is cut.
func (l *Link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		_ = c.Close()
		return false
	}
	l.open[c] = true
	return true
}

func (l *Link) pass(near net.Conn) {
	if !l.keep(near) {
		return
	}
	defer near.Close()
	far, err := net.Dial("tcp", l.to)
	if err != nil || !l.keep(far) {
		return
	}
	defer far.Close()
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(far, near); _ = far.Close() }()
	_, _ = io.Copy(near, far)
	_ = near.Close()
	<-done
}
