package memory

import (
	"context"
	"slices"
	"sort"

	"berth/events"
	"berth/events/eventlog"
)

// Load implements eventlog.Log.
func (l *Log) Load(ctx context.Context, b events.Boundary, after uint64) ([]events.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.line(b)
	if of == nil || of.last.Sequence <= after {
		return nil, nil
	}
	from := sort.Search(len(of.at), func(i int) bool { return l.records[of.at[i]].Sequence > after })
	if !of.odd {
		return of.from(from, l.records), nil
	}
	out := make([]events.Record, 0, len(of.at)-from)
	for _, i := range of.at[from:] {
		out = append(out, seen(l.records, i))
	}
	eventlog.CheckChain(out)
	return out, nil
}

// from is the line from that record on, which readers share: whoever appends to
// what he was given gets his own.
func (of *line) from(first int, records []*events.Record) []events.Record {
	of.loaded = slices.Grow(of.loaded, len(of.at)-len(of.loaded))
	for _, i := range of.at[len(of.loaded):] {
		of.loaded = append(of.loaded, *records[i])
	}
	return slices.Clip(of.loaded[first:])
}

// Follow implements eventlog.Log.
func (l *Log) Follow(ctx context.Context, after uint64, fn func(events.Record) error, caughtUp func()) error {
	goal := uint64(len(l.view()))
	for {
		records, grown := l.wait()
		for after < uint64(len(records)) {
			if caughtUp != nil && after >= goal {
				caughtUp()
				caughtUp = nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := fn(seen(records, int(after))); err != nil {
				return err
			}
			after++
		}
		if caughtUp != nil && after >= goal {
			caughtUp()
			caughtUp = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-grown:
		}
	}
}

// Scan implements eventlog.Log.
func (l *Log) Scan(ctx context.Context, after uint64, fn func(events.Record) error) error {
	records := l.view()
	for ; after < uint64(len(records)); after++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fn(seen(records, int(after))); err != nil {
			return err
		}
	}
	return nil
}

// Tip implements eventlog.Log.
func (l *Log) Tip(ctx context.Context) (uint64, error) {
	records := l.view()
	return uint64(len(records)), ctx.Err()
}

// seen is record i as a reader sees it: a member of an atomic publish that is
// not all there is torn.
func seen(records []*events.Record, i int) events.Record {
	r := *records[i]
	if r.Batch == nil {
		return r
	}
	last := eventlog.LastMember(r)
	if last > uint64(len(records)) || !eventlog.SameBatch(*records[last-1], r.Batch, r.Batch.Count-1) {
		return eventlog.Tear(r)
	}
	return r
}

// view is what is stored now. The slice is append-only, so it may be read
// without the lock.
func (l *Log) view() []*events.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.records
}

// wait is view, and a channel that closes when there is more.
func (l *Log) wait() ([]*events.Record, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grown == nil {
		l.grown = make(chan struct{})
	}
	return l.records, l.grown
}
