//go:build linux

package guest

import (
	"bufio"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"berth/providers"
	"berth/providers/qemu/wire"
)

// rig is a guest's door with the port's other end.
type doorRig struct {
	*testing.T
	d   *door
	dir string
	out io.Reader
}

func newDoorRig(t *testing.T) *doorRig {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	_ = theirs.SetReadDeadline(time.Now().Add(30 * time.Second))
	dir := t.TempDir()
	d, err := openDoor(dir, wire.NewWriter(ours))
	if err != nil {
		t.Fatal(err)
	}
	return &doorRig{T: t, d: d, dir: dir, out: bufio.NewReader(theirs)}
}

func (r *doorRig) program() net.Conn {
	r.Helper()
	c, err := net.Dial("unix", filepath.Join(r.dir, providers.DoorSocket))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

func (r *doorRig) said(stream uint64, data string, more bool) {
	r.Helper()
	f, err := wire.Read(r.out)
	if err != nil || f.Do != wire.Door || f.N != 0 || f.Stream != stream || string(f.Data) != data || f.More != more {
		r.Fatalf("%+v %v, want %q on %d", f, err, data, stream)
	}
}

// gives reads all that a program is told until the end of its stream.
func gives(t *testing.T, c net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The manager speaks first, so a stream begins before its program says a word;
// the end of either side is told to the other.
func TestAProgramSpeaksThroughTheDoor(t *testing.T) {
	r := newDoorRig(t)
	c := r.program()
	r.said(1, "", true)
	if _, err := c.Write([]byte("demo\n")); err != nil {
		t.Fatal(err)
	}
	r.said(1, "demo\n", true)
	r.d.deliver(wire.Frame{Stream: 1, Data: []byte("welcome"), More: true})
	r.d.deliver(wire.Frame{Stream: 1})
	if got := gives(t, c); got != "welcome" {
		t.Errorf("%q", got)
	}
	r.said(1, "", false)
	gone := r.program()
	r.said(2, "", true)
	_ = gone.Close()
	r.said(2, "", false)
	r.d.deliver(wire.Frame{Stream: 2, Data: []byte("late"), More: true})
}

// After a restore whoever programs spoke with is not there any more: they are
// told so, and may ask anew.
func TestAllStreamsEnd(t *testing.T) {
	r := newDoorRig(t)
	one := r.program()
	r.said(1, "", true)
	two := r.program()
	r.said(2, "", true)
	r.d.deliver(wire.Frame{})
	if gives(t, one)+gives(t, two) != "" {
		t.Error("something was said")
	}
	for range 2 {
		if f, err := wire.Read(r.out); err != nil || f.More {
			t.Errorf("%+v %v", f, err)
		}
	}
	r.program()
	r.said(3, "", true)
}

func TestTheDoorOfAGuestIsBounded(t *testing.T) {
	r := newDoorRig(t)
	for i := range uint64(wire.MaxDoors) {
		r.program()
		r.said(i+1, "", true)
	}
	if got := gives(t, r.program()); got != "" {
		t.Errorf("one program too many is told %q", got)
	}
	for range wire.MaxDoorChunks + 20 { // beyond what the kernel keeps for it
		r.d.deliver(wire.Frame{Stream: 1, Data: make([]byte, wire.DoorChunk), More: true})
	}
	isOpen := func(id uint64) bool { return r.d.streams.Take(wire.Frame{Stream: id, More: true}) }
	if isOpen(1) || !isOpen(2) {
		t.Error("a program that does not read keeps its stream, or costs another one its own")
	}
}
