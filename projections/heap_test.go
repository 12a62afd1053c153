package projections_test

import (
	"runtime"
	"testing"

	"berth/aggregates"
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
		r, err := sample.Record(c, v.Sequence()+1, [32]byte{})
		if err != nil {
			t.Fatal(err)
		}
		v.Apply(r)
	}
}

func retired(v *projections.Views) int64 {
	n := int64(0)
	v.EachRetired(func(projections.Retired) bool { n++; return true })
	return n
}

// A retired environment costs a few hundred bytes, with a name of its own.
func TestHeapOfRetired(t *testing.T) {
	v, g := projections.NewViews("test"), sample.New(sample.Options{Seed: 1, Names: 10, Owners: 5, Fresh: true, Calm: true})
	// More goals have ended by then than are kept.
	feed(t, v, g, func() bool { return retired(v) >= projections.MaxEndedGoals+100 })
	before, a := retired(v), heap()
	feed(t, v, g, func() bool { return retired(v) >= 4500 })
	b := heap()
	n := retired(v) - before
	per := (b - a) / n
	t.Logf("%d bytes for each of %d", per, n)
	if per > maxRetiredHeap {
		t.Errorf("a retired environment takes %d bytes, more than %d", per, maxRetiredHeap)
	}
	runtime.KeepAlive(v)
}

func TestHeapOfLive(t *testing.T) {
	v, g := projections.NewViews("test"), sample.New(sample.Options{Seed: 1, Names: 1000, Owners: 5, Calm: true, Stay: true})
	a := heap()
	feed(t, v, g, func() bool { return false })
	b := heap()
	n := int64(0)
	v.EachSeat(func(s aggregates.Seat) bool { n++; return true })
	per := (b - a) / n
	t.Logf("%d bytes for each of %d", per, n)
	if n != 1000 || per > maxLiveHeap {
		t.Errorf("a live environment takes %d bytes, more than %d", per, maxLiveHeap)
	}
	runtime.KeepAlive(v)
}
