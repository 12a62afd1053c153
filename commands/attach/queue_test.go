package attach

import (
	"testing"

	"berth/terminal"
)

// Input that a seat does not read is bounded in frames and in bytes; what is
// refused takes no room.
func TestInputThatWaitsIsBounded(t *testing.T) {
	x := &session{in: make(chan terminal.Frame, queued)}
	part := terminal.Frame{Kind: terminal.KindData, Data: make([]byte, queuedBytes/4)}
	for n := range 4 {
		if !x.queue(part) {
			t.Fatalf("part %d of what may wait is refused", n)
		}
	}
	one := terminal.Frame{Kind: terminal.KindData, Data: []byte("x")}
	if x.queue(one) || x.held.Load() != queuedBytes {
		t.Fatalf("a byte too many is taken, or keeps room: %d", x.held.Load())
	}
	x = &session{in: make(chan terminal.Frame, queued)}
	for n := range queued {
		if !x.queue(one) {
			t.Fatalf("frame %d is refused", n)
		}
	}
	if x.queue(one) || x.held.Load() != queued {
		t.Fatalf("a frame too many is taken, or keeps room: %d", x.held.Load())
	}
}
