package sagas

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
)

// Limits of the shelf.
const (
	// MaxRounds is how often a decision is made again because its boundary
	// moved; then the conflict is returned.
	MaxRounds = 16
	// MaxSettles is how often a commit whose fate is unknown is given again
	// under the same id; then unavailable is returned, with outcome unknown.
	MaxSettles = 4
	settleWait = 100 * time.Millisecond
)

// pages is a bounded cache of folds of one kind, least recently used out
// first. Its locks are an optimisation: what fences a decision is the
// compare-and-append (law 3).
type pages[T any] struct {
	log    eventlog.Log
	empty  func(events.Boundary) T
	fold   func(*T, *events.Record)                // in place
	source func(events.Boundary) (T, uint64, bool) // another fold to begin from, may be nil
	most   int

	mu    sync.Mutex
	pages map[events.Boundary]*list.Element
	used  *list.List // of *page[T], most recently used first
}

// page is one boundary folded to seq.
type page[T any] struct {
	at    events.Boundary
	known atomic.Uint64 // highest sequence heard of; above seq, the fold is old

	lock   chan struct{} // one place: held while loading and deciding
	loaded bool
	state  T
	seq    uint64
	own    events.Record // the last commit from here
}

func (p *pages[T]) page(b events.Boundary, create bool) *page[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.pages[b]; ok {
		p.used.MoveToFront(e)
		return e.Value.(*page[T])
	}
	if !create {
		return nil
	}
	n := &page[T]{at: b, lock: make(chan struct{}, 1)}
	p.pages[b] = p.used.PushFront(n)
	for p.used.Len() > p.most {
		last := p.used.Back()
		p.used.Remove(last)
		delete(p.pages, last.Value.(*page[T]).at)
	}
	return n
}

// reload folds what the log has beyond the page, and says whether the commit
// with that id is among it. The page is held.
func (p *pages[T]) reload(ctx context.Context, g *page[T], id events.EventID) (own events.Record, found bool, err error) {
	if !g.loaded {
		g.state, g.seq = p.empty(g.at), 0
		if p.source != nil {
			if s, seq, ok := p.source(g.at); ok {
				g.state, g.seq = s, seq
			}
		}
	}
	rs, err := p.log.Load(ctx, g.at, g.seq)
	if err != nil {
		return own, false, unreadable(ctx, g.at, err)
	}
	for i := range rs {
		r := &rs[i]
		p.fold(&g.state, r)
		g.seq = r.Sequence
		if id != "" && r.Meta.ID == id {
			own, found = *r, true
		}
	}
	g.loaded = true
	return own, found, nil
}

func unreadable(ctx context.Context, b events.Boundary, err error) error {
	if ctx.Err() != nil {
		return fault.Ended(ctx.Err(), "%s was not read: %s", b, ctx.Err()).WithOutcome(fault.NotExecuted)
	}
	return fault.New(fault.Unavailable, "%s can't be read: %s", b, fault.From(err).Message).WithOutcome(fault.NotExecuted)
}

// cached is the fold as far as this process has heard; it loads only what is
// not there or known to be old.
func (p *pages[T]) cached(ctx context.Context, b events.Boundary) (T, uint64, error) {
	g := p.page(b, true)
	if err := g.hold(ctx); err != nil {
		var zero T
		return zero, 0, err
	}
	defer g.release()
	if !g.fresh() {
		if _, _, err := p.reload(ctx, g, ""); err != nil {
			var zero T
			return zero, 0, err
		}
	}
	return g.state, g.seq, nil
}

func (g *page[T]) fresh() bool { return g.loaded && g.known.Load() <= g.seq }

// current is the fold with every commit that was acknowledged before the call.
func (p *pages[T]) current(ctx context.Context, b events.Boundary) (T, uint64, error) {
	g := p.page(b, true)
	if err := g.hold(ctx); err != nil {
		var zero T
		return zero, 0, err
	}
	defer g.release()
	if _, _, err := p.reload(ctx, g, ""); err != nil {
		var zero T
		return zero, 0, err
	}
	return g.state, g.seq, nil
}

// absorb takes in a record of a follow. It never waits for a decision that is
// being made on that boundary: the page is then known to be old.
func (p *pages[T]) absorb(r *events.Record) {
	g := p.page(r.Boundary, false)
	if g == nil {
		return
	}
	for {
		k := g.known.Load()
		if k >= r.Sequence || g.known.CompareAndSwap(k, r.Sequence) {
			break
		}
	}
	select {
	case g.lock <- struct{}{}:
		g.take(p.fold, r)
		g.release()
	default:
	}
}

// hold waits for the page until ctx ends. A page that is free is taken even
// then: what is read or committed next looks at ctx by itself.
func (g *page[T]) hold(ctx context.Context) error {
	select {
	case g.lock <- struct{}{}:
		return nil
	default:
	}
	select {
	case g.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.Ended(ctx.Err(), "another decision on %s is still being made", g.at).WithOutcome(fault.NotExecuted)
	}
}

func (g *page[T]) release() { <-g.lock }

func (g *page[T]) take(fold func(*T, *events.Record), r *events.Record) {
	if g.loaded && r.Previous == g.seq && r.Sequence > g.seq {
		fold(&g.state, r)
		g.seq = r.Sequence
	}
}

// decide loads, asks f and commits at the sequence that f's answer was made
// on. lax lets an answer that appends nothing rest on the cached fold, for
// callers that are asked again when the boundary moves (the engine).
func (p *pages[T]) decide(ctx context.Context, b events.Boundary, meta events.Meta, lax bool, f func(T) ([]events.Event, error)) (T, events.Record, error) {
	var zero T
	g := p.page(b, true)
	if err := g.hold(ctx); err != nil {
		return zero, events.Record{}, err
	}
	defer g.release()
	current := false
	if !g.fresh() {
		if _, _, err := p.reload(ctx, g, ""); err != nil {
			return zero, events.Record{}, err
		}
		current = true
	}
	var last error
	for range MaxRounds {
		es, err := f(g.state)
		if err != nil || len(es) == 0 {
			seq := g.seq
			if !current && !lax {
				if _, _, err := p.reload(ctx, g, ""); err != nil {
					return zero, events.Record{}, err
				}
				current = true
			}
			if g.seq != seq {
				continue // decision 8: the answer was made on an old fold
			}
			return g.state, events.Record{}, err
		}
		r, err := p.commit(ctx, events.Commit{Boundary: b, Expect: g.seq, Meta: meta, Events: es})
		switch {
		case err == nil:
			g.own = r
			if g.take(p.fold, &g.own); g.seq == r.Sequence {
				return g.state, r, nil
			}
			return p.after(ctx, g, r)
		case fault.CodeOf(err) != fault.Conflict:
			return zero, events.Record{}, err
		}
		own, found, rerr := p.reload(ctx, g, meta.ID)
		switch {
		case rerr != nil && fault.From(rerr).Outcome == fault.Unknown:
			return zero, events.Record{}, rerr
		case rerr != nil:
			return zero, events.Record{}, err
		case found:
			return g.state, own, nil // stored by an attempt whose answer was lost
		}
		last, current = err, true
	}
	return zero, events.Record{}, last
}

// after is the answer of a commit whose record did not follow the fold
// directly: it is loaded again.
func (p *pages[T]) after(ctx context.Context, g *page[T], r events.Record) (T, events.Record, error) {
	before := g.state
	g.loaded = false
	if _, _, err := p.reload(ctx, g, ""); err != nil {
		// The commit is stored; only this process does not know the fold.
		p.fold(&before, &r)
		return before, r, nil
	}
	return g.state, r, nil
}

// commit settles a lost acknowledgement by giving the same commit again: the
// log answers an id that it has with the stored record.
func (p *pages[T]) commit(ctx context.Context, c events.Commit) (events.Record, error) {
	var last error
	for i := range MaxSettles {
		r, err := p.log.Commit(ctx, c)
		e := fault.From(err)
		switch {
		case err == nil:
			return r, nil
		case last != nil && e.Code == fault.Conflict:
			return events.Record{}, err // decide looks whether it was ours
		case e.Outcome != fault.Unknown:
			if last != nil {
				return events.Record{}, last // an earlier attempt may be stored
			}
			return events.Record{}, err
		}
		last = err
		select {
		case <-ctx.Done():
			return events.Record{}, last
		case <-time.After(settleWait << i):
		}
	}
	return events.Record{}, last
}
