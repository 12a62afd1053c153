//go:build linux

package seat

import (
	"context"
	"sync"

	"berth/events"
	"berth/providers/process/custodian"
	"berth/providers/process/seatdir"
)

// asking are the environments whose holders are being asked to tell when
// their seats are ready: one question at a time for each.
type asking struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	about  map[events.EnvironmentID]bool
}

func newAsking() *asking {
	ctx, cancel := context.WithCancel(context.Background())
	return &asking{ctx: ctx, cancel: cancel, about: map[events.EnvironmentID]bool{}}
}

// stop ends every question; the seats go on.
func (a *asking) stop() {
	a.mu.Lock()
	a.cancel() // with the lock, so that none is begun behind it
	a.mu.Unlock()
	a.wg.Wait()
}

// begin says that the environment is asked about from here on, by the caller;
// false if it is already, or nothing is asked any more.
func (a *asking) begin(id events.EnvironmentID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.about[id] || a.ctx.Err() != nil {
		return false
	}
	a.about[id] = true
	a.wg.Add(1)
	return true
}

func (a *asking) end(id events.EnvironmentID) {
	a.mu.Lock()
	delete(a.about, id)
	a.mu.Unlock()
	a.wg.Done()
}

// awaitSign has those who watch told when the seat has shown that it is ready.
// A question that breaks off costs time only: the seat is looked at anyway.
func (d *Base) awaitSign(dir seatdir.Dir, holder events.Custody) {
	if !d.asking.begin(dir.ID) {
		return
	}
	go func() {
		defer d.asking.end(dir.ID)
		resp, err := custodian.Ask(d.asking.ctx, dir, holder, custodian.Request{Ask: custodian.AskReady})
		if err != nil || resp.Ready == nil {
			return // its end is told by its end
		}
		d.watches.mu.Lock()
		defer d.watches.mu.Unlock()
		d.watches.tell(dir.ID)
	}()
}
