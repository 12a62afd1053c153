//go:build linux

package qemu

import (
	"context"
	"errors"
	"sync"
	"time"

	"berth/events"
	"berth/providers/process/identity"
)

// exitPoll is how often a watch that waits for an exit looks whether it is
// still wanted.
const exitPoll = 250 * time.Millisecond

// watches wait for the end of supervisors, with one goroutine each: there are
// at most MaxMachines.
type watches struct {
	mu     sync.Mutex
	seats  map[events.EnvironmentID]events.Custody
	subs   map[chan events.EnvironmentID]struct{}
	closed chan struct{}
	once   sync.Once
	busy   sync.WaitGroup
}

func newWatches() *watches {
	return &watches{seats: map[events.EnvironmentID]events.Custody{}, subs: map[chan events.EnvironmentID]struct{}{}, closed: make(chan struct{})}
}

// ensure watches the supervisor of an environment, once; ErrGone: it has
// ended already.
func (w *watches) ensure(id events.EnvironmentID, c events.Custody) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.closed:
		return nil
	default:
	}
	if w.seats[id] == c {
		return nil
	}
	h, err := identity.Open(c)
	if errors.Is(err, identity.ErrGone) {
		w.tell(id) // it ended before it could be watched: nobody else will
	}
	if err != nil {
		return err
	}
	w.seats[id] = c
	w.busy.Go(func() {
		defer h.Close()
		for !h.WaitExit(exitPoll) {
			select {
			case <-w.closed:
				return
			default:
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.seats[id] == c {
			delete(w.seats, id)
		}
		w.tell(id)
	})
	return nil
}

// tell passes an end on to every subscriber. The caller holds mu.
func (w *watches) tell(id events.EnvironmentID) {
	for sub := range w.subs {
		select {
		case sub <- id:
		default: // a subscriber that far behind polls everything anyway
		}
	}
}

func (w *watches) close() error {
	w.once.Do(func() {
		w.mu.Lock()
		close(w.closed)
		w.mu.Unlock()
	})
	w.busy.Wait()
	return nil
}

// Watch calls fn when a supervisor of a started or adopted environment has
// ended: its command exited, it expired or was lost. Inspect says which.
func (d *Driver) Watch(ctx context.Context, fn func(events.EnvironmentID)) error {
	sub := make(chan events.EnvironmentID, 4*MaxMachines)
	d.watches.mu.Lock()
	d.watches.subs[sub] = struct{}{}
	d.watches.mu.Unlock()
	defer func() {
		d.watches.mu.Lock()
		delete(d.watches.subs, sub)
		d.watches.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.watches.closed:
			return nil
		case id := <-sub:
			fn(id)
		}
	}
}
