package projections_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/projections"
	"berth/projections/replay"
	"berth/projections/sample"
)

// patience is for a machine that is busy with other things.
const patience = time.Minute

func running(t *testing.T, log eventlog.Log, v *projections.Views) (*projections.Runner, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r := projections.NewRunner(log, v)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Errorf("the runner ended: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return r, ctx
}

// A runner folds what there is, says so, and goes on; a reader waits for a
// sequence (scenario 79), and what is served equals the log.
func TestRunnerFollows(t *testing.T) {
	log, g := filled(t, sample.Options{Seed: 4, Names: 8, Owners: 2}, 700)
	r, ctx := running(t, log, projections.NewViews("test"))
	select {
	case <-r.Ready():
	case <-ctx.Done():
		t.Fatal("never caught up")
	}
	if !r.CaughtUp() || r.Sequence() < 700 {
		t.Fatalf("caught up at %d", r.Sequence())
	}
	more(t, log, g, 300)
	if err := r.WaitFor(ctx, 1000); err != nil {
		t.Fatal(err)
	}
	rep, err := replay.Verify(ctx, log, r.Clone())
	if err != nil || len(rep.Mismatches) != 0 || rep.AsOf != 1000 || rep.Records == 0 || rep.Events < 1000 || rep.Aggregates == 0 {
		t.Fatalf("%+v %v", rep, err)
	}
	over, cancel := context.WithDeadline(ctx, time.Time{})
	defer cancel()
	if err := r.WaitFor(over, 1001); fault.CodeOf(err) != fault.DeadlineExceeded || fault.From(err).Outcome != fault.NotExecuted {
		t.Fatalf("a sequence that never came: %v", err)
	}
	if err := r.Until(ctx, func(v *projections.Views) bool { return v.Sequence() == 1000 }); err != nil {
		t.Fatal(err)
	}
	if err := r.Until(over, func(*projections.Views) bool { return false }); fault.CodeOf(err) != fault.DeadlineExceeded {
		t.Fatalf("what never comes: %v", err)
	}
}

// A runner that was interrupted at any place goes on where it stood: no gap,
// no repetition.
func TestRunnerGoesOnWhereItStood(t *testing.T) {
	log, _ := filled(t, sample.Options{Seed: 8, Names: 5, Owners: 2}, 600)
	r := projections.NewRunner(&brittle{Log: log, every: 37}, projections.NewViews("test"))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for r.Sequence() < 600 && ctx.Err() == nil {
		if err := r.Run(ctx); !errors.Is(err, errBrittle) {
			t.Fatalf("the runner ended with %v", err)
		}
	}
	want, err := replay.At(ctx, log, "test", replay.Until{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "after interruptions", r.Clone(), want)
}

var errBrittle = errors.New("the connection broke")

// brittle is a log whose following breaks after some records.
type brittle struct {
	*memory.Log
	every int
}

func (b *brittle) Follow(ctx context.Context, after uint64, fn func(events.Record) error, caughtUp func()) error {
	n := 0
	return b.Log.Follow(ctx, after, func(r events.Record) error {
		if n == b.every || r.Sequence == 600 && n > 0 && fn(r) == nil {
			return errBrittle
		}
		n++
		return fn(r)
	}, caughtUp)
}

// A subscriber gets every record that it wants, in order; one that does not
// keep up is told so and holds up nobody.
func TestSubscriptions(t *testing.T) {
	log, g := filled(t, sample.Options{Seed: 6, Names: 4}, 20)
	r, ctx := running(t, log, projections.NewViews("test"))
	seats, err := r.Subscribe(500, func(r events.Record) bool { return r.Boundary.Kind() == events.KindSeat })
	if err != nil {
		t.Fatal(err)
	}
	defer seats.Close()
	slow, err := r.Subscribe(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	more(t, log, g, 300)
	if err := r.WaitFor(ctx, 320); err != nil {
		t.Fatal(err)
	}
	// One more than the fold has published for sure, so that what was given is
	// complete up to here.
	want := map[uint64]bool{}
	if err := log.Scan(ctx, 20, func(r events.Record) error {
		if r.Boundary.Kind() == events.KindSeat {
			want[r.Sequence] = true
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for last := uint64(0); len(want) > 0; {
		select {
		case r := <-seats.C:
			if r.Sequence <= last || r.Boundary.Kind() != events.KindSeat {
				t.Fatalf("%d on %s after %d", r.Sequence, r.Boundary, last)
			}
			last = r.Sequence
			delete(want, last)
		case <-ctx.Done():
			t.Fatalf("%d records never came", len(want))
		}
	}
	n, open := 0, true
	for open {
		if _, open = <-slow.C; open {
			n++
		}
	}
	if last, lost := slow.Lost(); !lost || n != 1 || last == 0 {
		t.Fatalf("the slow one got %d and is lost %v at %d", n, lost, last)
	}
	slow.Close()
}

func TestSubscriptionLimit(t *testing.T) {
	r := projections.NewRunner(memory.New(), projections.NewViews("test"))
	var all []*projections.Subscription
	for range projections.MaxSubscriptions {
		s, err := r.Subscribe(1, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if _, err := r.Subscribe(1, nil); fault.CodeOf(err) != fault.ResourceExhausted {
		t.Fatal(err)
	}
	all[0].Close()
	all[0].Close()
	if _, err := r.Subscribe(1, nil); err != nil {
		t.Fatal(err)
	}
}
