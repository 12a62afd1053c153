package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"berth/events"
	"berth/events/eventlog/barrier"
	"berth/events/eventlog/stream"
	"berth/events/fault"
	"berth/internal/embedded"
	"berth/internal/ids"
)

const (
	writers     = 256 // concurrent commits and publishers
	perWriter   = 40  // commits of each, at the default number of samples
	rawStream   = "RAW"
	rawSubject  = "raw.a"
	warmUps     = 20
	diskPerPart = 20_000 // events, at least, that disk is measured with
)

// rig is an embedded server with a raw stream beside the log.
type rig struct {
	srv *embedded.Server
	nc  *nats.Conn
	js  jetstream.JetStream
}

func newRig(ctx context.Context, dir string, always bool) (*rig, error) {
	s, err := embedded.Start(ctx, embedded.Options{StoreDir: dir, SyncAlways: always})
	if err != nil {
		return nil, err
	}
	r := &rig{srv: s}
	if r.nc, err = s.Connect(); err == nil {
		r.js, err = rawSide(ctx, r.nc)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// rawSide makes the stream that raw publishes go to.
func rawSide(ctx context.Context, nc *nats.Conn) (jetstream.JetStream, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: rawStream, Subjects: []string{"raw.>"}, Storage: jetstream.FileStorage, Compression: jetstream.S2Compression,
	})
	return js, err
}

func (r *rig) close() {
	if r.nc != nil {
		r.nc.Close()
	}
	r.srv.Stop()
}

// measureLog measures commits beside publishes, and what the log takes on disk.
func measureLog(ctx context.Context, o Options) ([]Row, error) {
	var rows []Row
	for _, f := range []func(context.Context, Options) (Row, error){single, concurrent, disk} {
		row, err := f(ctx, o)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// single is one commit after another, of what lives are made of, beside raw
// publishes of the same bytes.
func single(ctx context.Context, o Options) (Row, error) {
	o.Progress("log: single commits, strict")
	r, err := newRig(ctx, filepath.Join(o.Dir, "strict"), true)
	if err != nil {
		return Row{}, err
	}
	defer r.close()
	log, err := stream.Open(ctx, r.nc, stream.Config{Space: space, Create: true})
	if err != nil {
		return Row{}, err
	}
	defer log.Close()
	f := newFiller(100)
	var c events.Commit
	var body []byte
	var rs, os []time.Duration
	raw := func() error {
		return timed(&rs, func() error { _, err := r.js.Publish(ctx, rawSubject, body); return err })
	}
	ours := func() error { return timed(&os, func() error { _, err := log.Commit(ctx, c); return err }) }
	for n := range warmUps + o.Samples {
		if c, body, err = f.next(); err != nil {
			return Row{}, err
		}
		sides := []func() error{raw, ours}
		for i := range sides { // in turn, and each begins every other time
			if err := sides[(i+n)%2](); err != nil {
				return Row{}, err
			}
		}
	}
	rs, os = rs[warmUps:], os[warmUps:]
	return beside("commit-single-p50", micros(median(os)), "us", micros(median(rs))).atMost(1.3).
		noted("profile strict, commits of 1-4 events beside a publish of the same bytes"), nil
}

// concurrent is many commits at once in the group profile, beside as many
// publishers whose every message is synced by itself.
func concurrent(ctx context.Context, o Options) (Row, error) {
	o.Progress("log: 256 commits at once, group")
	always, err := newRig(ctx, filepath.Join(o.Dir, "always"), true)
	if err != nil {
		return Row{}, err
	}
	defer always.close()
	dir := filepath.Join(o.Dir, "group")
	group, err := newRig(ctx, dir, false)
	if err != nil {
		return Row{}, err
	}
	defer group.close()
	log, closeLog, err := openGroup(ctx, dir, group)
	if err != nil {
		return Row{}, err
	}
	defer closeLog()
	each := max(perWriter*o.Samples/DefaultSamples, 1)
	w := newWriters(log)
	body, _, err := events.Encode(w.commit(0), events.Hash{}, nil)
	if err != nil {
		return Row{}, err
	}
	raw, ours, err := alternate(o.Rounds, func() error {
		return together(each, func(int) error { _, err := always.js.Publish(ctx, rawSubject, body); return err })
	}, func() error {
		return together(each, func(n int) error { return w.write(ctx, n) })
	})
	if err != nil {
		return Row{}, err
	}
	n := float64(writers * each)
	return beside("commit-256-rate", n/ours.Seconds(), "events/s", n/raw.Seconds()).atLeast(4).
		noted("profile group beside 256 publishers under always; %d events a round", int(n)), nil
}

func openGroup(ctx context.Context, dir string, r *rig) (*stream.Log, func(), error) {
	log, err := stream.Open(ctx, r.nc, stream.Config{Space: space, Create: true})
	if err != nil {
		return nil, nil, err
	}
	if err := log.Close(); err != nil {
		return nil, nil, err
	}
	b, err := barrier.Open(dir, r.srv.StreamDir("$G", events.StreamName(space)))
	if err != nil {
		return nil, nil, err
	}
	if log, err = stream.Open(ctx, r.nc, stream.Config{Space: space, Barrier: b}); err != nil {
		b.Close()
		return nil, nil, err
	}
	return log, func() { log.Close(); b.Close() }, nil
}

// together runs f so often in each of the writers.
func together(each int, f func(writer int) error) error {
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for w := range writers {
		wg.Go(func() {
			for range each {
				if err := f(w); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	wg.Wait()
	if e := failed.Load(); e != nil {
		return *e
	}
	return nil
}

// committers are independent boundaries, one for each writer.
type committers struct {
	log  *stream.Log
	ids  events.IDs
	last [writers]uint64
	uid  events.UID
}

func newWriters(log *stream.Log) *committers {
	g := ids.New()
	return &committers{log: log, ids: g, uid: events.UID(g.Token())}
}

func (w *committers) commit(n int) events.Commit {
	return events.Commit{
		Boundary: events.SeatBoundary("local", events.Alias(fmt.Sprintf("w%d", n))), Expect: w.last[n],
		Meta: events.Meta{
			ID: events.EventID(w.ids.UUID()), Time: events.MillisUTC(time.Now()), Command: events.CommandID(w.ids.UUID()),
			Caller: events.Caller{Owner: "local", Actor: "operator", UID: w.uid}, Writer: events.Writer{Instance: events.InstanceID(w.uid), Epoch: 1},
		},
		Events: []events.Event{events.SlotTerminalizing{UID: w.uid, Reason: "retired"}},
	}
}

func (w *committers) write(ctx context.Context, n int) error {
	r, err := w.log.Commit(ctx, w.commit(n))
	w.last[n] = r.Sequence
	return err
}

// disk is what a log of whole lives takes, in closed blocks and the open one.
func disk(ctx context.Context, o Options) (Row, error) {
	o.Progress("log: disk of whole lives")
	r, err := newRig(ctx, filepath.Join(o.Dir, "disk"), false)
	if err != nil {
		return Row{}, err
	}
	closed := false
	defer func() {
		if !closed {
			r.close()
		}
	}()
	log, err := stream.Open(ctx, r.nc, stream.Config{Space: space, Create: true})
	if err != nil {
		return Row{}, err
	}
	defer log.Close()
	f := newFiller(100)
	if err := f.fill(ctx, r.nc, max(o.Events, min(diskPerPart, o.Samples*50))); err != nil {
		return Row{}, err
	}
	r.close()
	closed = true
	n, err := blockBytes(r.srv.StreamDir("$G", events.StreamName(space)))
	if err != nil {
		return Row{}, err
	}
	if f.events == 0 || n == 0 {
		return Row{}, fault.New(fault.Internal, "no block of %d events was found", f.events)
	}
	return alone("disk-per-event", float64(n)/float64(f.events), "bytes").atMost(300).
		noted("%d events of %d retired lives, in %d commits", f.events, f.retired, f.commits), nil
}
