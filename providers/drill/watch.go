package drill

import (
	"context"
	"time"

	"berth/events"
	"berth/events/fault"
)

// watcher is one Watch or one followed log: what changed since it last
// looked, and a bell.
type watcher struct {
	all     bool // ring for mutations too
	bell    chan struct{}
	changed []events.EnvironmentID
	overrun bool // too much changed to remember: everything may have
}

// maxChanged is how many changes are kept for a watcher that does not look;
// beyond it, it is told of every environment.
const maxChanged = 10_000

// recheck is the longest sleep, so that a wall clock that was set is noticed.
const recheck = time.Minute

func (d *Driver) watch(all bool) *watcher {
	w := &watcher{all: all, bell: make(chan struct{}, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watchers[w] = struct{}{}
	return w
}

func (d *Driver) unwatch(w *watcher) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.watchers, w)
}

// wake tells watchers what changed by itself, and rings for those that want
// to know of mutations. All look again when the next moment at which something
// happens is another one than before. Called under the lock.
func (d *Driver) wake(mutated bool) {
	changed := d.m.TakeChanged()
	next, _ := d.m.Next()
	moved := !next.Equal(d.next)
	d.next = next
	for w := range d.watchers {
		if len(changed) == 0 && !moved && !(mutated && w.all) {
			continue
		}
		w.changed = append(w.changed, changed...)
		if len(w.changed) > maxChanged {
			w.changed, w.overrun = nil, true
		}
		select {
		case w.bell <- struct{}{}:
		default:
		}
	}
}

// await sleeps until the bell rings or something is due, and lets it happen.
func (d *Driver) await(ctx context.Context, w *watcher) error {
	t := time.NewTimer(d.untilNext())
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closed:
		return fault.New(fault.Unavailable, "the drill provider was closed")
	case <-w.bell:
	case <-t.C:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.m.Advance(d.now())
	d.wake(false)
	return nil
}

func (d *Driver) untilNext() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.m.Next()
	if !ok {
		return recheck
	}
	return min(max(at.Sub(d.clock()), time.Millisecond), recheck)
}

// Watch tells of expiries, late landings, and environments that vanished or
// were replaced, until ctx ends.
func (d *Driver) Watch(ctx context.Context, fn func(events.EnvironmentID)) error {
	w := d.watch(false)
	defer d.unwatch(w)
	for {
		for _, id := range d.take(w) {
			fn(id)
		}
		if err := d.await(ctx, w); err != nil {
			return err
		}
	}
}

func (d *Driver) take(w *watcher) []events.EnvironmentID {
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := w.changed
	if w.overrun {
		ids = nil
		for id := range d.m.s.Envs {
			ids = append(ids, id)
		}
	}
	w.changed, w.overrun = nil, false
	return ids
}
