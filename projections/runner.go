package projections

import (
	"context"
	"sync"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
)

// Limits of the runner.
const (
	queueRecords = 1024 // between the reader and the fold
	foldAtOnce   = 256  // records folded under one lock
)

// Runner keeps one Views at the tip of a log. Everything but Run may be
// called from any goroutine at any time.
type Runner struct {
	log eventlog.Log

	mu     sync.RWMutex // of views
	views  *Views
	moved  chan struct{} // closed and replaced when views moved
	caught chan struct{} // closed when the tip at the start was folded

	subscribers subscribers
}

// NewRunner follows log from where v stands: a fresh Views, or one of a
// snapshot. The runner owns v from here on.
func NewRunner(log eventlog.Log, v *Views) *Runner {
	return &Runner{log: log, views: v, moved: make(chan struct{}), caught: make(chan struct{}), subscribers: subscribers{all: map[*Subscription]struct{}{}}}
}

// item is a record, or (caughtUp) the word that all that was durable when the
// following began has been given.
type item struct {
	record   events.Record
	caughtUp bool
}

// Run folds until ctx ends, which is not an error, or the log fails. It may be
// run again after a failure and goes on where it stood. Reading and folding
// are two goroutines, so that one decodes while the other folds.
func (r *Runner) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := make(chan item, queueRecords)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.drain(queue)
	}()
	give := func(i item) error {
		select {
		case queue <- i:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := r.log.Follow(ctx, r.Sequence(),
		func(rec events.Record) error { return give(item{record: rec}) },
		func() { _ = give(item{caughtUp: true}) })
	// What was read is folded before Run returns, so that the next Run does
	// not race with it.
	close(queue)
	<-done
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (r *Runner) drain(queue <-chan item) {
	batch := make([]item, 0, foldAtOnce)
	for first := range queue {
		batch = append(batch[:0], first)
		for more := true; more && len(batch) < foldAtOnce; {
			select {
			case i, ok := <-queue:
				if more = ok; ok {
					batch = append(batch, i)
				}
			default:
				more = false
			}
		}
		r.apply(batch)
		clear(batch)
	}
}

func (r *Runner) apply(batch []item) {
	r.mu.Lock()
	from := r.views.Sequence()
	caught := false
	for _, i := range batch {
		if i.caughtUp {
			caught = true
			continue
		}
		r.views.Apply(i.record)
	}
	moved := r.moved
	r.moved = make(chan struct{})
	r.mu.Unlock()
	close(moved)
	if caught && !r.CaughtUp() {
		close(r.caught)
	}
	for _, i := range batch {
		if !i.caughtUp && i.record.Sequence > from {
			r.subscribers.publish(i.record)
		}
	}
}

// Read calls f with the views, which must not be kept, changed or waited in.
func (r *Runner) Read(f func(*Views)) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f(r.views)
}

// Sequence is the last folded sequence.
func (r *Runner) Sequence() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.views.Sequence()
}

// CaughtUp says that everything that was durable when Run began is folded.
func (r *Runner) CaughtUp() bool {
	select {
	case <-r.caught:
		return true
	default:
		return false
	}
}

// Ready is closed when CaughtUp becomes true.
func (r *Runner) Ready() <-chan struct{} { return r.caught }

// WaitFor returns when sequence has been folded (minSequence, scenario 79). It
// refuses, not-executed, with what ended ctx when it ends before.
func (r *Runner) WaitFor(ctx context.Context, sequence uint64) error {
	for {
		r.mu.RLock()
		at, moved := r.views.Sequence(), r.moved
		r.mu.RUnlock()
		if at >= sequence {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fault.Ended(ctx.Err(), "sequence %d is not folded yet: the projections stand at %d", sequence, at).
				WithOutcome(fault.NotExecuted).WithHint("ask again, or with a smaller minimum sequence")
		}
	}
}

// Until returns when f says true of the views: at once, or after a change. It
// refuses like WaitFor when ctx ends before.
func (r *Runner) Until(ctx context.Context, f func(*Views) bool) error {
	for {
		r.mu.RLock()
		ok, at, moved := f(r.views), r.views.Sequence(), r.moved
		r.mu.RUnlock()
		if ok {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fault.Ended(ctx.Err(), "what was waited for is not so at sequence %d", at).WithOutcome(fault.NotExecuted)
		}
	}
}
