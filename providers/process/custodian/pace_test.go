//go:build linux

package custodian

import (
	"sync/atomic"
	"testing"
	"time"

	"berth/providers/process/seatdir"
)

// Scenario 62: a seat that is faster than all who look waits for the quickest
// of them and for nobody else; and for nobody once that takes too long.
func TestTheQuickestViewSetsThePace(t *testing.T) {
	o, err := newOutput(seatdir.Dir{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	quick, slow, fresh := o.begin(), o.begin(), o.begin()
	o.reached(quick, 0, true)
	o.reached(slow, 0, true)
	o.pacer.most, o.pacer.left = time.Hour, time.Hour
	write := func() { _, _ = o.Write(make([]byte, RingBytes)) }
	write() // fits
	var moved atomic.Bool
	done := make(chan bool)
	go func() { write(); done <- moved.Load() }()
	moved.Store(true)
	o.reached(quick, RingBytes, false)
	select {
	case waited := <-done:
		if !waited {
			t.Fatal("the quickest view was not waited for")
		}
	case <-time.After(time.Minute):
		t.Fatal("a slow view holds up the seat")
	}

	o.pacer.most = time.Nanosecond
	write()
	if quick.counted || slow.counted || fresh.counted {
		t.Fatal("who was too slow is still waited for")
	}
	o.pacer.most, o.pacer.left = time.Hour, time.Hour
	write() // waits for nobody
	o.reached(slow, o.total, true)
	if !slow.counted {
		t.Fatal("nobody waits for a view that has a repaint")
	}
	o.leave(slow)
	write()
	write()
}

// The end of the output, and of the view, ends the waiting.
func TestNothingHoldsUpTheEnd(t *testing.T) {
	for name, end := range map[string]func(*output, *looking){
		"closed": func(o *output, _ *looking) { o.close() },
		"left":   func(o *output, l *looking) { o.leave(l) },
	} {
		o, err := newOutput(seatdir.Dir{Path: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		l := o.begin()
		o.reached(l, 0, true)
		o.pacer.most, o.pacer.left = time.Hour, time.Hour
		done := make(chan struct{})
		go func() { defer close(done); _, _ = o.Write(make([]byte, RingBytes+1)) }()
		end(o, l)
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%s: it still waits", name)
		}
		o.close()
	}
}
