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
	"berth/projections/sample"
)

// Defaults and limits of ReplayOptions.
const (
	DefaultReplayEvents = 1_000_000
	MaxReplayEvents     = 20_000_000
	replayHeld          = 10_000 // seats that live side by side
	replayRuns          = 3
	publishWindow       = 4096
)

// ReplayOptions says how large the log is. Lives are whole (claim to
// retirement) and each has a name of its own: three boundaries for every 34
// events or so, as many as 100,000 for a million.
type ReplayOptions struct {
	Dir    string // for the server's files; must exist and be empty
	Events int    // at least; zero is DefaultReplayEvents
	Held   int    // seats that live side by side; zero is 10,000
	Runs   int    // of which the best counts on both sides; zero is 3
}

// Replay measures a rebuild of every projection from the log beside a raw
// ordered consumer that only counts, then a start from a snapshot.
func Replay(ctx context.Context, o ReplayOptions) ([]Row, error) {
	o = o.defaults()
	if o.Events < 1 || o.Events > MaxReplayEvents {
		return nil, fault.New(fault.BadRequest, "replay of %d events is not possible: 1 to %d", o.Events, MaxReplayEvents)
	}
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
	log, err := stream.Open(ctx, nc, stream.Config{Space: "bench", Create: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	size, err := fillLog(ctx, nc, o)
	if err != nil {
		return nil, err
	}
	raw, err := best(o.Runs, func() error { return count(ctx, nc, size.commits) })
	if err != nil {
		return nil, err
	}
	var v *projections.Views
	ours, err := best(o.Runs, func() (err error) {
		v, err = replay.At(ctx, log, "bench", replay.Until{})
		return err
	})
	if err != nil {
		return nil, err
	}
	if got := v.Counts(); got.Events != size.events || len(v.Quarantined()) > 0 {
		return nil, fault.New(fault.Internal, "the replay folded %d of %d events and quarantined %d boundaries", got.Events, size.events, len(v.Quarantined()))
	}
	rows := []Row{
		rate("replay-fold", float64(size.events)/ours.Seconds(), "events/s", float64(size.events)/raw.Seconds()),
		{Name: "replay-boundaries", Value: float64(v.Counts().Boundaries), Unit: "boundaries"},
	}
	more, err := snapshots(o, v)
	return append(rows, more...), err
}

func (o ReplayOptions) defaults() ReplayOptions {
	if o.Events == 0 {
		o.Events = DefaultReplayEvents
	}
	if o.Held == 0 {
		o.Held = replayHeld
	}
	if o.Runs == 0 {
		o.Runs = replayRuns
	}
	return o
}

// best is the shortest wall time of some runs: what else the machine does
// only ever adds to it.
func best(runs int, f func() error) (time.Duration, error) {
	var least time.Duration
	for range runs {
		runtime.GC()
		start := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		if d := time.Since(start); least == 0 || d < least {
			least = d
		}
	}
	return least, nil
}

type logSize struct{ commits, events uint64 }

// fillLog writes sample lives with their hash chains, as fast as the server
// takes them: how they came into the log is not what is measured.
func fillLog(ctx context.Context, nc *nats.Conn, o ReplayOptions) (logSize, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(publishWindow))
	if err != nil {
		return logSize{}, err
	}
	g := sample.New(sample.Options{Seed: 1, Names: o.Held, Owners: 100, Calm: true, Fresh: true})
	chain := map[events.Boundary]events.Hash{}
	var size logSize
	for size.events < uint64(o.Events) {
		c, _ := g.Next() // lives that are followed by others never end
		body, h, err := events.Encode(c, chain[c.Boundary], nil)
		if err != nil {
			return size, err
		}
		chain[c.Boundary] = h
		if _, err := js.PublishAsync(c.Boundary.Subject("bench"), body); err != nil {
			return size, fault.New(fault.Unavailable, "the log can't be filled: %s", err)
		}
		size.commits++
		size.events += uint64(len(c.Events))
	}
	select {
	case <-js.PublishAsyncComplete():
		return size, nil
	case <-ctx.Done():
		return size, ctx.Err()
	}
}

// count is the raw side: an ordered consumer that only counts.
func count(ctx context.Context, nc *nats.Conn, total uint64) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	c, err := js.OrderedConsumer(ctx, events.StreamName("bench"), jetstream.OrderedConsumerConfig{})
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

func snapshots(o ReplayOptions, v *projections.Views) ([]Row, error) {
	path := filepath.Join(o.Dir, "views.snapshot")
	save, err := best(o.Runs, func() error { return projections.Save(path, "bench", v) })
	if err != nil {
		return nil, err
	}
	load, err := best(o.Runs, func() error {
		_, err := projections.Load(path, "bench", "bench")
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
		{Name: "replay-snapshot-save", Value: save.Seconds() * 1000, Unit: "ms"},
		{Name: "replay-snapshot-load", Value: load.Seconds() * 1000, Unit: "ms"},
		{Name: "replay-snapshot-size", Value: float64(info.Size()) / (1 << 20), Unit: "MiB"},
		{Name: "replay-held", Value: float64(v.Held()), Unit: "environments"},
		{Name: "replay-ended", Value: float64(v.Ended()), Unit: "environments"},
	}, nil
}
