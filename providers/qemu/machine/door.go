//go:build linux

package machine

import (
	"context"
	"net"

	"berth/internal/socket"
	"berth/providers"
	"berth/providers/qemu/wire"
)

// doors are the streams between programs in a guest and the manager that keeps
// its door on this host. Nothing of them is understood here, and nothing lasts:
// a stream whose manager is not there ends.
type doors struct {
	dir  string                 // of the manager's socket; empty: there is none
	tell func(wire.Frame) error // to the guest; waits while it is paused
	gone <-chan struct{}        // closed when the guest says nothing any more

	streams wire.Streams
}

func newDoors(dir string, tell func(wire.Frame) error, gone <-chan struct{}) *doors {
	return &doors{dir: dir, tell: tell, gone: gone}
}

// take is what the guest says to one stream, or the end of it. The first frame
// of a number begins it. It waits for nobody.
func (d *doors) take(f wire.Frame) {
	if d.streams.Take(f) || !f.More {
		return
	}
	if d.dir == "" {
		go d.end(f.Stream)
		return
	}
	in, ok := d.streams.Begin(f.Stream)
	if !ok {
		go d.end(f.Stream)
		return
	}
	go d.serve(f.Stream, in)
	d.streams.Take(f)
}

// serve is one stream, from its first frame to its end.
func (d *doors) serve(id uint64, in <-chan []byte) {
	defer d.end(id)
	path, done, err := socket.Through(d.dir, providers.DoorSocket)
	if err != nil {
		return
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return
	}
	defer c.Close()
	go func() {
		defer c.Close() // which ends the reading below
		for {
			select {
			case b, more := <-in:
				if !more {
					return
				}
				if _, err := c.Write(b); err != nil {
					return
				}
			case <-d.gone:
				return
			}
		}
	}()
	buf := make([]byte, wire.DoorChunk)
	for {
		n, err := c.Read(buf)
		if n > 0 && d.tell(wire.Frame{Do: wire.Door, Stream: id, Data: buf[:n], More: true}) != nil || err != nil {
			return
		}
	}
}

// end forgets a stream and tells the guest that it is over.
func (d *doors) end(id uint64) {
	d.streams.End(id)
	_ = d.tell(wire.Frame{Do: wire.Door, Stream: id}) // a guest that can't be told has no streams
}

// doors takes the streams of one guest.
func (s *supervisor) doors(p *peer) func(wire.Frame) {
	return newDoors(s.start.Door, func(f wire.Frame) error { return s.tell(p, f) }, p.broken).take
}

// tell sends one frame of a stream when the machine is not paused: one that
// stands still reads nothing, and half a frame would be its end.
func (s *supervisor) tell(p *peer, f wire.Frame) error {
	s.act.Lock()
	defer s.act.Unlock()
	for s.Frozen && !s.ending() {
		s.thawed.Wait()
	}
	if s.ending() {
		return errEnding
	}
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	return p.send(ctx, f, nil)
}
