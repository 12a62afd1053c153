//go:build linux

package machine

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth/providers"
	"berth/providers/qemu/wire"
)

const patience = 30 * time.Second

// heard is what the guest is told.
type heard struct {
	t  *testing.T
	in chan wire.Frame
}

// tell keeps a copy: what is told is the caller's again when it returns.
func (h heard) tell(f wire.Frame) error {
	f.Data = bytes.Clone(f.Data)
	h.in <- f
	return nil
}

func (h heard) next() wire.Frame {
	h.t.Helper()
	select {
	case f := <-h.in:
		return f
	case <-time.After(patience):
		h.t.Fatal("the guest is told nothing")
		return wire.Frame{}
	}
}

func (h heard) ended(stream uint64) {
	h.t.Helper()
	if f := h.next(); f.Stream != stream || f.More || len(f.Data) > 0 {
		h.t.Fatalf("told %+v, want the end of %d", f, stream)
	}
}

// manager is a socket that is answered by f.
func manager(t *testing.T, f func(net.Conn)) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, providers.DoorSocket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f(c)
		}
	}()
	return dir
}

func said(stream uint64, s string) wire.Frame {
	return wire.Frame{Do: wire.Door, Stream: stream, Data: []byte(s), More: true}
}

// isOpen: a frame without data changes nothing.
func isOpen(d *doors, id uint64) bool { return d.streams.Take(wire.Frame{Stream: id, More: true}) }

// open is how many streams are, of all the numbers that are used here.
func open(d *doors) (n int) {
	for id := range uint64(128) {
		if isOpen(d, id) {
			n++
		}
	}
	return n
}

// What a program in the guest says reaches the manager as it is, and back; each
// side ends a stream, and a number may be used again after that.
func TestTheDoorPassesOnWhatIsSaid(t *testing.T) {
	h := heard{t, make(chan wire.Frame, 8)}
	ended := make(chan error, 1)
	d := newDoors(manager(t, func(c net.Conn) {
		defer c.Close()
		if _, err := c.Write([]byte("who?\n")); err != nil {
			return
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			ended <- err
			return
		}
		_, _ = c.Write([]byte("welcome, " + line))
	}), h.tell, nil)
	for range 2 {
		d.take(said(1, ""))
		if f := h.next(); string(f.Data) != "who?\n" || f.Stream != 1 || !f.More {
			t.Fatalf("%+v", f)
		}
		d.take(said(1, "de"))
		d.take(said(1, "mo\n"))
		if f := h.next(); string(f.Data) != "welcome, demo\n" {
			t.Fatalf("%q", f.Data)
		}
		h.ended(1)
	}
	d.take(said(2, ""))
	h.next()
	d.take(wire.Frame{Do: wire.Door, Stream: 2})
	h.ended(2)
	if err := <-ended; err == nil {
		t.Error("the manager was not told that the program is gone")
	}
	if d.take(wire.Frame{Do: wire.Door, Stream: 9}); open(d) != 0 {
		t.Errorf("%d streams are open", open(d))
	}
}

// A guest may say what it likes: no manager, too many streams and more than
// anybody reads end a stream, and nothing else.
func TestTheDoorIsBounded(t *testing.T) {
	h := heard{t, make(chan wire.Frame, wire.MaxDoors+8)}
	for _, dir := range []string{"", t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		newDoors(dir, h.tell, nil).take(said(1, ""))
		h.ended(1)
	}
	release := make(chan struct{})
	d := newDoors(manager(t, func(c net.Conn) { <-release; _ = c.Close() }), h.tell, nil)
	for i := range uint64(wire.MaxDoors) {
		d.take(said(i+1, ""))
	}
	d.take(said(100, ""))
	h.ended(100)
	chunk := string(make([]byte, wire.DoorChunk))
	for range 10 * wire.MaxDoorChunks { // far more than the kernel's own buffers
		d.take(said(1, chunk))
		if !isOpen(d, 1) {
			break
		}
	}
	if isOpen(d, 1) || open(d) != wire.MaxDoors-1 {
		t.Errorf("a manager that does not read leaves %d streams", open(d))
	}
	close(release)
	for range wire.MaxDoors {
		h.next()
	}
}

// A paused machine is told nothing until it goes on: half a frame would be its end.
func TestTheDoorWaitsForAPausedMachine(t *testing.T) {
	s := newSupervisor(t.TempDir())
	ours, theirs := net.Pipe()
	defer theirs.Close()
	p := newPeer(ours, 1, func([]byte) {}, func() {}, s.doors)
	defer ours.Close()
	s.Frozen = true
	done := make(chan error, 1)
	go func() { done <- s.tell(p, said(1, "x")) }()
	if err := theirs.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Read(theirs); !os.IsTimeout(err) {
		t.Fatalf("a paused machine is told something: %v", err)
	}
	if err := theirs.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	s.act.Lock()
	s.setFrozen(false)
	s.act.Unlock()
	if f, err := wire.Read(theirs); err != nil || string(f.Data) != "x" {
		t.Errorf("%+v %v", f, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.act.Lock()
	s.setFrozen(true)
	s.act.Unlock()
	go func() { done <- s.tell(p, said(1, "y")) }()
	s.Mu.Lock()
	s.Ending = true
	s.Mu.Unlock()
	s.thawed.Broadcast()
	if err := <-done; err == nil {
		t.Error("a machine that ends was told something")
	}
}
