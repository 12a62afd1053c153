package bench

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"berth/events"
	"berth/events/eventlog/stream"
	"berth/events/fault"
	"berth/internal/embedded"
	"berth/projections"
	"berth/projections/replay"
)

// heldPart is how many of the events' lives live side by side in a replayed
// log: 10,000 for a million events.
const heldPart = 100

// measureReplay measures a rebuild of every projection from the log beside a
// raw ordered consumer that only counts, then a start from a snapshot.
func measureReplay(ctx context.Context, o Options) ([]Row, error) {
	s, err := embedded.Start(ctx, embedded.Options{StoreDir: o.Dir})
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	nc, err := s.Connect()
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	log, err := stream.Open(ctx, nc, stream.Config{Space: space, Create: true})
	if err != nil {
		return nil, err
	}
	defer log.Close()
	o.Progress("replay: filling a log")
	f := newFiller(max(o.Events/heldPart, 10))
	if err := f.fill(ctx, nc, o.Events); err != nil {
		return nil, err
	}
	o.Progress("replay: rebuilding, and counting beside it")
	var v *projections.Views
	raw, ours, err := alternate(o.Rounds, func() error {
		runtime.GC()
		return count(ctx, nc, f.commits)
	}, func() (err error) {
		v = nil
		runtime.GC()
		v, err = replay.At(ctx, log, space, replay.Until{})
		return err
	})
	if err != nil {
		return nil, err
	}
	if got := v.Counts(); got.Events != f.events || len(v.Quarantined()) > 0 {
		return nil, fault.New(fault.Internal, "the replay folded %d of %d events and quarantined %d boundaries", got.Events, f.events, len(v.Quarantined()))
	}
	n := float64(f.events)
	rows := []Row{
		beside("replay-fold", n/ours.Seconds(), "events/s", n/raw.Seconds()).atLeast(0.6).
			noted("%d events on %d boundaries, %d environments live at the end", f.events, v.Counts().Boundaries, v.Held()),
	}
	more, err := snapshots(o, v)
	return append(rows, more...), err
}

// count is the raw side: an ordered consumer that only counts.
func count(ctx context.Context, nc *nats.Conn, total uint64) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	c, err := js.OrderedConsumer(ctx, events.StreamName(space), jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	n, done := uint64(0), make(chan struct{})
	cc, err := c.Consume(func(jetstream.Msg) {
		if n++; n == total {
			close(done)
		}
	}, jetstream.PullMaxMessages(5000))
	if err != nil {
		return err
	}
	defer cc.Stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func snapshots(o Options, v *projections.Views) ([]Row, error) {
	path := filepath.Join(o.Dir, "views.snapshot")
	save, err := repeated(o.Rounds, func() error { return projections.Save(path, "bench", v) })
	if err != nil {
		return nil, err
	}
	load, err := repeated(o.Rounds, func() error {
		_, err := projections.Load(path, "bench", space)
		return err
	})
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return []Row{
		alone("replay-snapshot-save", millis(save), "ms"),
		alone("replay-snapshot-load", millis(load), "ms"),
		alone("replay-snapshot-size", float64(info.Size())/(1<<20), "MiB"),
	}, nil
}

// repeated is the median time of something without a raw side.
func repeated(rounds int, f func() error) (time.Duration, error) {
	var ds []time.Duration
	for range rounds {
		runtime.GC()
		start := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		ds = append(ds, time.Since(start))
	}
	return median(ds), nil
}
