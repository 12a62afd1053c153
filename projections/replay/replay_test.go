package replay_test

import (
	"context"
	"testing"
	"time"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/projections"
	"berth/projections/replay"
	"berth/projections/sample"
)

func filled(t *testing.T, n int) *memory.Log {
	t.Helper()
	log, g := memory.New(), sample.New(sample.Options{Seed: 13, Names: 6, Owners: 2})
	for range n {
		c, _ := g.Next()
		if _, err := log.Commit(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// A replay ends at the sequence, or before the first commit after the time,
// and any two ways to the same sequence agree.
func TestAt(t *testing.T) {
	ctx := context.Background()
	log := filled(t, 500)
	var middle time.Time
	if err := log.Scan(ctx, 0, func(r events.Record) error {
		if r.Sequence == 250 {
			middle = r.Meta.Time
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		until replay.Until
		least uint64
		most  uint64
	}{{replay.Until{}, 500, 500}, {replay.Until{Sequence: 123}, 123, 123}, {replay.Until{Sequence: 9000}, 500, 500},
		{replay.Until{Time: middle}, 250, 260}, {replay.Until{Time: middle, Sequence: 7}, 7, 7}, {replay.Until{Time: sample.Start.Add(-time.Hour)}, 0, 0}} {
		v, err := replay.At(ctx, log, "test", c.until)
		if err != nil || v.Sequence() < c.least || v.Sequence() > c.most {
			t.Fatalf("%+v gave %d %v", c.until, v.Sequence(), err)
		}
		on, err := replay.From(ctx, log, v, replay.Until{})
		if err != nil {
			t.Fatal(err)
		}
		rep, err := replay.Verify(ctx, log, on)
		if err != nil || len(rep.Mismatches) != 0 || rep.AsOf != 500 {
			t.Fatalf("%+v: %+v %v", c.until, rep, err)
		}
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := replay.At(over, log, "test", replay.Until{}); err == nil {
		t.Error("a replay that was cancelled succeeded")
	}
}

// A difference is named by record and field; a missing record is one too.
func TestCompareNamesRecordAndField(t *testing.T) {
	ctx := context.Background()
	log := filled(t, 400)
	good, err := replay.At(ctx, log, "test", replay.Until{})
	if err != nil {
		t.Fatal(err)
	}
	// The same log with one event left out of the middle of a seat's life.
	bad := projections.NewViews("test")
	var skipped events.Record
	if err := log.Scan(ctx, 0, func(r events.Record) error {
		if _, ok := r.Events[0].(events.DeadlineChanged); ok {
			o, a, _ := r.Boundary.Seat()
			if _, held := good.Seat(o, a); held {
				skipped, r.Events = r, nil
			}
		}
		bad.Apply(r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	found := replay.Compare(bad, good)
	if skipped.Sequence == 0 {
		// This seed has no such event on a held seat: leave the end off instead.
		if bad, err = replay.At(ctx, log, "test", replay.Until{Sequence: 399}); err != nil {
			t.Fatal(err)
		}
		found = replay.Compare(bad, good)
	}
	names := map[string]bool{}
	for _, m := range found {
		names[m.Record+" "+m.Field] = true
	}
	if !names["counts Events"] {
		t.Errorf("found %+v", found)
	}
	empty := replay.Compare(projections.NewViews("test"), good)
	missing := 0
	for _, m := range empty {
		if m.Field == "" && m.Served == "absent" {
			missing++
		}
	}
	if missing == 0 || len(empty) > replay.MaxMismatches {
		t.Errorf("an empty world differs in %d", len(empty))
	}
}
