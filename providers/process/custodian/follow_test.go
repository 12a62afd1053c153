//go:build linux

package custodian

import (
	"io"
	"net"
	"testing"
	"time"

	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/seatdir"
)

// Readers never take the last connection: a stop finds one.
func TestReadersLeaveRoomForAStop(t *testing.T) {
	if MaxFollowers >= maxConnections {
		t.Fatalf("%d readers of %d connections", MaxFollowers, maxConnections)
	}
	o, err := newOutput(seatdir.Dir{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	var last func()
	for range MaxFollowers {
		if last, err = o.enter(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.enter(); fault.CodeOf(err) != fault.ResourceExhausted || fault.From(err).Outcome != fault.NotExecuted {
		t.Fatalf("one too many: %v", err)
	}
	last()
	if _, err := o.enter(); err != nil {
		t.Fatalf("after one left: %v", err)
	}
}

// A reader that leaves an idle seat is let go at once: connections are bounded,
// and as many as there may be would keep a stop out.
func TestAReaderThatLeavesAnIdleSeatIsLetGo(t *testing.T) {
	o, err := newOutput(seatdir.Dir{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	for name, c := range map[string]struct {
		serve func(*follower) error
		first func(io.Reader) error // what shows that it is served
	}{
		"view": {o.view, func(r io.Reader) error { _, err := providers.ReadPart(r); return err }},
		"logs": {func(f *follower) error { return o.copyTo(f, 0) }, func(r io.Reader) error { _, err := io.ReadFull(r, make([]byte, 3)); return err }},
	} {
		if _, err := o.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
		here, there := net.Pipe()
		done := make(chan error, 1)
		go func() { done <- o.follow(there, c.serve) }()
		if err := c.first(here); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = here.Close()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%s: a reader that left still holds its connection", name)
		}
	}
}
