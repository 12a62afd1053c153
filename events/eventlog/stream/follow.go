package stream

import (
	"context"
	"errors"
	"time"

	"berth/events"
	"berth/events/eventlog"
)

// Sizes of the pipeline between the consumer and the caller.
const (
	pullMessages  = 5000
	chunkRecords  = 256
	chunksWaiting = 8
	// tornPatience is how long the rest of an atomic publish at the very end of
	// the log is waited for before the leader is asked. It is no guess: the
	// server isolates that read from a batch that it is storing, so the answer
	// holds for good.
	tornPatience = 200 * time.Millisecond
)

// Load implements eventlog.Log.
func (l *Log) Load(ctx context.Context, b events.Boundary, after uint64) ([]events.Record, error) {
	if _, err := events.ParseBoundary(string(b)); err != nil {
		return nil, err
	}
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if !l.leader { // otherwise each of its requests is bounded
		bounded, cancel = context.WithTimeout(ctx, l.cfg.Timeout)
	}
	defer cancel()
	rs, err := l.load(bounded, b, after)
	if err != nil {
		return nil, l.unreadable(ctx, string(b), err)
	}
	for i, r := range rs {
		if r.Batch == nil {
			continue
		}
		ok, err := l.complete(bounded, r)
		if err != nil {
			return nil, l.unreadable(ctx, string(b), err)
		}
		if !ok {
			rs[i] = l.tear(r)
		}
	}
	if n := len(rs); n > 0 {
		if err := l.durable(ctx, rs[n-1].Sequence); err != nil {
			return nil, l.unreadable(ctx, string(b), err)
		}
		l.heads.put(rs[n-1])
	}
	return rs, nil
}

func (l *Log) load(ctx context.Context, b events.Boundary, after uint64) (rs []events.Record, err error) {
	if l.leader {
		rs, err = l.loadLeader(ctx, b, after)
	} else {
		rs, err = l.loadDirect(ctx, b, after)
	}
	eventlog.CheckChain(rs)
	return rs, err
}

func (l *Log) tear(r events.Record) events.Record {
	l.cfg.Log.Warn("a member of an incomplete atomic publish is ignored; it was never acknowledged",
		"boundary", string(r.Boundary), "sequence", r.Sequence, "batch", r.Batch.ID, "index", r.Batch.Index, "count", r.Batch.Count)
	return eventlog.Tear(r)
}

// Tip implements eventlog.Log.
func (l *Log) Tip(ctx context.Context) (uint64, error) {
	bounded, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	s, err := l.js.Stream(bounded, l.name)
	if err == nil {
		tip := s.CachedInfo().State.LastSeq
		if tip == 0 {
			return 0, nil
		}
		if err = l.durable(ctx, tip); err == nil {
			return tip, nil
		}
	}
	return 0, l.unreadable(ctx, "the end", err)
}

// errScanned ends the Follow of a Scan.
var errScanned = errors.New("scanned")

// Scan implements eventlog.Log.
func (l *Log) Scan(ctx context.Context, after uint64, fn func(events.Record) error) error {
	tip, err := l.Tip(ctx)
	if err != nil || after >= tip {
		return err
	}
	err = l.follow(ctx, after, tip, func(r events.Record) error {
		if err := fn(r); err != nil {
			return err
		}
		if r.Sequence >= tip {
			return errScanned
		}
		return nil
	}, nil)
	if err == errScanned {
		return nil
	}
	return err
}

// Follow implements eventlog.Log.
func (l *Log) Follow(ctx context.Context, after uint64, fn func(events.Record) error, caughtUp func()) error {
	tip, err := l.Tip(ctx)
	if err != nil {
		return err
	}
	return l.follow(ctx, after, tip, fn, caughtUp)
}

// follow gives records until fn or ctx ends it; caughtUp is called once tip
// has been given.
func (l *Log) follow(ctx context.Context, after, tip uint64, fn func(events.Record) error, caughtUp func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &pump{log: l, out: make(chan []events.Record, chunksWaiting), lost: make(chan error, 1), at: after}
	go p.run(ctx)
	a := assembler{log: l, fn: fn, at: after}
	w := watch{pump: p, at: after, tip: tip}
	for {
		if caughtUp != nil && a.at >= tip {
			caughtUp()
			caughtUp = nil
		}
		var late <-chan time.Time
		if len(a.held) > 0 {
			late = time.After(tornPatience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			if err := a.giveUp(ctx); err != nil {
				return err
			}
		case err := <-p.lost:
			return err
		case <-w.late():
			if err := w.ask(ctx); err != nil {
				return err
			}
		case chunk := <-p.out:
			w.moved(chunk[len(chunk)-1].Sequence)
			if err := l.durable(ctx, chunk[len(chunk)-1].Sequence); err != nil {
				return l.unreadable(ctx, "the tail", err)
			}
			for _, r := range chunk {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := a.add(ctx, r); err != nil {
					return err
				}
				if caughtUp != nil && a.at >= tip {
					caughtUp()
					caughtUp = nil
				}
			}
		}
	}
}
