package plane

import (
	"context"
	"sync"

	"berth/events"
	"berth/events/fault"
)

// keyed lets one request at a time work on a goal, so that the same goal id
// from many clients at once is checked against the name and the headroom once.
// Between instances the goal's create-only commit decides.
type keyed struct {
	mu   sync.Mutex
	busy map[events.Boundary]*turn
}

// turn is held by whoever has taken its one token; waiting counts the others.
type turn struct {
	token   chan struct{}
	waiting int
}

// lock waits for the turn on b until ctx ends, and returns what gives it back.
func (k *keyed) lock(ctx context.Context, b events.Boundary) (unlock func(), err error) {
	k.mu.Lock()
	if k.busy == nil {
		k.busy = map[events.Boundary]*turn{}
	}
	t := k.busy[b]
	if t == nil {
		t = &turn{token: make(chan struct{}, 1)}
		k.busy[b] = t
	}
	t.waiting++
	k.mu.Unlock()
	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if t.waiting--; t.waiting == 0 {
			delete(k.busy, b)
		}
	}
	select {
	case t.token <- struct{}{}:
		return func() { <-t.token; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, fault.Ended(ctx.Err(), "another request with this goal id is being handled").WithOutcome(fault.NotExecuted)
	}
}
