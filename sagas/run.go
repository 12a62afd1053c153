package sagas

import (
	"context"
	"time"

	"berth/aggregates"
	"berth/events"
	"berth/providers"
)

// Run decides and acts until ctx ends; then it cancels the calls that are in
// flight, waits for its goroutines and returns ctx's error. It is called once.
func (e *Engine) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, e.kill)
	defer stop()
	for range e.o.Workers {
		e.wg.Go(e.work)
	}
	for _, name := range e.o.Drivers.Names() {
		if p, err := e.o.Drivers.Get(name); err == nil && p.Watcher != nil {
			e.wg.Go(func() { e.watch(p) })
		}
	}
	e.ring()
	e.wg.Wait()
	return ctx.Err()
}

// kill ends everything at once, as the end of the process would.
func (e *Engine) kill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dead = true
	e.cancel()
	e.changed.Broadcast()
}

// hook passes a point; false if the process died there, or before.
func (e *Engine) hook(point string) bool {
	if e.o.Hook != nil && e.o.Hook(point) != nil {
		e.kill()
	}
	return e.calls.Err() == nil
}

// Drain stops beginning anything and waits until what is in flight is
// answered and recorded, or ctx ends. What is then still open is found by the
// next start and reconciled; environments go on.
func (e *Engine) Drain(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.changed.Broadcast()
	})
	defer stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.draining = true
	for (e.inFlight > 0 || e.busy > 0 || len(e.queue) > 0) && ctx.Err() == nil && !e.dead {
		e.changed.Wait()
	}
}

// ring sleeps until the next wake time, again and again.
func (e *Engine) ring() {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		wait, any := e.due(e.o.Now())
		var at <-chan time.Time
		if any {
			t.Reset(max(wait, 0))
			at = t.C
		}
		select {
		case <-e.calls.Done():
			return
		case <-e.alarm:
		case <-at:
		}
	}
}

func (e *Engine) work() {
	for {
		ent := e.take()
		if ent == nil {
			return
		}
		if ent.kind == events.KindGoal {
			e.stepGoal(ent)
		} else {
			e.stepSeat(ent)
		}
		e.finish(ent)
	}
}

// take waits for an entry that wants a decision; nil at the end.
func (e *Engine) take() *entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) == 0 && !e.dead {
		e.changed.Wait()
	}
	if e.dead {
		return nil
	}
	ent := e.queue[0]
	e.queue[0] = nil
	e.queue = e.queue[1:]
	ent.queued, ent.busy = false, true
	e.busy++
	return ent
}

// finish gives the entry back: its place in the lane too, unless a call runs.
func (e *Engine) finish(ent *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ent.busy = false
	e.busy--
	if !ent.inFlight {
		e.leave(ent)
	}
	if ent.again {
		ent.again = false
		if e.entries[ent.at] == ent {
			e.enqueue(ent)
		}
	}
	if e.busy == 0 && len(e.queue) == 0 {
		e.changed.Broadcast()
	}
}

// post brings an answer to the entry. last says that its call is over.
func (e *Engine) post(ent *entry, in input, last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if last {
		ent.inFlight = false
		e.inFlight--
	}
	if e.dead {
		e.changed.Broadcast()
		return
	}
	if e.entries[ent.at] == nil {
		e.entries[ent.at] = ent // it was forgotten while the answer was on its way
	} else if e.entries[ent.at] != ent {
		ent = e.entries[ent.at]
	}
	if in != nil {
		ent.inbox = append(ent.inbox, in)
	}
	e.enqueue(ent)
}

// launch runs f beside the workers, with a context that ends after limit, and
// posts what it returns.
func (e *Engine) launch(ent *entry, limit time.Duration, f func(ctx context.Context) input) {
	e.mu.Lock()
	ent.inFlight = true
	e.inFlight++
	e.mu.Unlock()
	e.wg.Go(func() {
		ctx, cancel := context.WithTimeout(e.calls, limit)
		defer cancel()
		e.post(ent, f(ctx), true)
	})
}

// watch has a provider tell which of its environments changed by themselves.
func (e *Engine) watch(p providers.Entry) {
	for n := 0; e.calls.Err() == nil; n++ {
		err := e.watching(p)
		if e.calls.Err() != nil {
			return
		}
		e.o.Logger.Warn("watching a provider ended; trying again", "provider", p.Name, "error", err)
		select {
		case <-e.calls.Done():
		case <-time.After(Backoff(n, e.o.Jitter())):
		}
	}
}

func (e *Engine) watching(p providers.Entry) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicFault(p.Name, "watch")
		}
	}()
	return p.Watcher.Watch(e.calls, e.noticed)
}

// noticed marks an environment that changed by itself.
func (e *Engine) noticed(id events.EnvironmentID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ent := e.environments[id]; ent != nil && e.entries[ent.at] == ent {
		ent.observe = true
		e.enqueue(ent)
	}
}

// remember updates what Stats and the watchers need of a seat.
func (e *Engine) remember(ent *entry, s aggregates.Seat) {
	env := s.Environment
	if ent.environment != env.ID && e.environments[ent.environment] == ent {
		delete(e.environments, ent.environment)
	}
	if ent.environment = env.ID; env.ID != "" && !env.WrittenOff {
		e.environments[env.ID] = ent
	}
	op := env.Operation
	ent.open = op != nil
	ent.uncertain = uncertain(&View{Seat: s})
	ent.stuck = op != nil && op.Stuck
}
