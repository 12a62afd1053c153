package powercut

import (
	"context"
	"fmt"
	"sync"
	"time"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/internal/prove/loopdisk"
)

const workers = 6

// told is what clients were told before the power was cut.
type told struct {
	mu     sync.Mutex
	shut   bool // nothing counts any more: the cut comes
	moved  chan struct{}
	events map[string]events.EventID // by sequence and index
	goals  map[events.GoalID]told1
	writes map[events.CommandID]uint64 // sequence of what was answered to a write
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// told1 is what is known of one goal.
type told1 struct {
	uid   events.UID
	state events.GoalState // empty: it did not end yet
}

func (a *told) note(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shut {
		return
	}
	f()
	close(a.moved)
	a.moved = make(chan struct{})
}

// load lets clients work, each on names of its own, and one follow the log.
func (u *up) load(round int) *told {
	ctx, cancel := context.WithCancel(context.Background())
	a := &told{moved: make(chan struct{}), events: map[string]events.EventID{}, goals: map[events.GoalID]told1{},
		writes: map[events.CommandID]uint64{}, cancel: cancel}
	for n := range workers {
		a.wg.Go(func() {
			for life := 0; u.life(ctx, a, fmt.Sprintf("r%d-w%d-n%d", round, n, life), life) == nil; life++ {
			}
		})
	}
	a.wg.Go(func() {
		_, _ = u.client.Events(ctx, 1, true, func(e commands.CloudEvent) error {
			a.note(func() { a.events[fmt.Sprintf("%s.%d", e.Sequence, e.Index)] = e.ID })
			return ctx.Err()
		})
	})
	return a
}

// life takes one environment through what can be done with it; every second
// one is retired, the others stay.
func (u *up) life(ctx context.Context, a *told, name string, n int) error {
	r, err := client.Call(ctx, u.client, commands.Spawn, commands.SpawnInput{Name: name, Provider: "drill", Command: []string{"true"}, TTL: "2h"})
	if err != nil {
		return err
	}
	a.note(func() { a.goals[r.GoalID] = told1{uid: r.UID} })
	g, err := u.client.WaitGoal(ctx, r.GoalID)
	if err != nil {
		return err
	}
	a.note(func() { a.goals[r.GoalID] = told1{r.UID, g.State} })
	seat := commands.SeatInput{Named: commands.Named{Name: name}}
	steps := []func() (commands.WriteResult, error){
		func() (commands.WriteResult, error) { return client.Call(ctx, u.client, commands.Pause, seat) },
		func() (commands.WriteResult, error) { return client.Call(ctx, u.client, commands.Resume, seat) },
		func() (commands.WriteResult, error) {
			return client.Call(ctx, u.client, commands.Extend, commands.ExtendInput{Named: seat.Named, By: "15m"})
		},
	}
	if n%2 == 0 {
		steps = append(steps, func() (commands.WriteResult, error) {
			return client.Call(ctx, u.client, commands.Retire, commands.RetireInput{Named: seat.Named})
		})
	}
	for _, step := range steps {
		w, err := step()
		if err != nil {
			return err
		}
		a.note(func() { a.writes[w.Command] = w.Sequence })
		if w.Verb == events.VerbPause || w.Verb == events.VerbResume {
			if _, err := u.client.WaitOperation(ctx, events.Alias(name), r.UID, w.Operation, w.Sequence); err != nil {
				return err
			}
		}
	}
	if n%2 == 0 {
		_, err = u.client.WaitStatus(ctx, events.Alias(name), r.UID, 0, aggregates.StatusRetired)
	}
	return err
}

// enough waits until so many events were seen, then shuts the book.
func (a *told) enough(p *place, least int) {
	p.Helper()
	late := time.After(loopdisk.Within)
	for {
		a.mu.Lock()
		n, moved := len(a.events), a.moved
		if n >= least && len(a.goals) > 0 && len(a.writes) > 0 {
			a.shut = true
		}
		shut := a.shut
		a.mu.Unlock()
		if shut {
			return
		}
		select {
		case <-moved:
		case <-late:
			p.Fatalf("only %d events were seen within %s", n, loopdisk.Within)
		}
	}
}

// end lets the clients end; their manager is dead.
func (a *told) end() {
	a.cancel()
	a.wg.Wait()
}
