package projections_test

import (
	"runtime"
	"testing"

	"berth/events"
	"berth/projections"
	"berth/projections/sample"
)

// Heap per environment (the manager's whole bar is 400 bytes for a retired
// one and 4 KiB for a live one).
const (
	maxRetiredHeap = 400
	maxLiveHeap    = 4096
)

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// feed folds commits of g until stop says so, keeping nothing else.
func feed(t *testing.T, v *projections.Views, g *sample.Generator, stop func() bool) {
	t.Helper()
	for {
		c, ok := g.Next()
		if !ok || v.Sequence()%512 == 0 && stop() {
			return
		}
		if c.Boundary.Kind() != events.KindSeat {
			continue // goals are bounded, and uids are counted only
		}
		r, err := sample.Record(c, v.Sequence()+1, [32]byte{})
		if err != nil {
			t.Fatal(err)
		}
		v.Apply(r)
	}
}

// build is views that hold what stop wants; the generator is gone with it.
func build(t *testing.T, o sample.Options, stop func(*projections.Views) bool) *projections.Views {
	v, g := projections.NewViews("test"), sample.New(o)
	feed(t, v, g, func() bool { return stop(v) })
	return v
}

// cost is what the views keep alive.
func cost(v **projections.Views) int64 {
	with := heap()
	runtime.KeepAlive(*v)
	*v = nil
	return with - heap()
}

// A retired environment costs a few hundred bytes, with a name of its own.
func TestHeapOfRetired(t *testing.T) {
	if raced {
		t.Skip("the race detector's memory would be counted")
	}
	var bytes, ended [2]int64
	// Both have as many names freed as keep their commands.
	for i, n := range []int{projections.MaxRecent + 50, 3000} {
		v := build(t, sample.Options{Seed: 1, Names: 10, Owners: 5, Fresh: true, Calm: true}, func(v *projections.Views) bool { return v.Ended() >= n })
		ended[i] = int64(v.Ended())
		bytes[i] = cost(&v)
	}
	n := ended[1] - ended[0]
	per := (bytes[1] - bytes[0]) / n
	t.Logf("%d bytes for each of %d", per, n)
	if per > maxRetiredHeap {
		t.Errorf("a retired environment takes %d bytes, more than %d", per, maxRetiredHeap)
	}
}

func TestHeapOfLive(t *testing.T) {
	if raced {
		t.Skip("the race detector's memory would be counted")
	}
	v := build(t, sample.Options{Seed: 1, Names: 1000, Owners: 5, Calm: true, Stay: true}, func(*projections.Views) bool { return false })
	n := int64(v.Held())
	per := cost(&v) / n
	t.Logf("%d bytes for each of %d", per, n)
	if per > maxLiveHeap {
		t.Errorf("a live environment takes %d bytes, more than %d", per, maxLiveHeap)
	}
}
