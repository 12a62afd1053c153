package hosted

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers/hosted/wire"
)

// How Watch goes on when nobody answers, and how often it has everything
// looked at when the provider does not tell of changes.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 15 * time.Second
	lookEvery  = 15 * time.Second
)

// Watch tells of changes by long polls, until ctx ends. What may have been
// missed (the provider restarted, or was away for long) makes it tell of every
// environment that this driver heard of.
func (d *Driver) Watch(ctx context.Context, fn func(events.EnvironmentID)) error {
	cursor, pause, missed := "", firstPause, false
	for ctx.Err() == nil {
		c, err := d.poll(ctx, cursor)
		switch {
		case ctx.Err() != nil:
		case err != nil && err.Code == fault.Unimplemented:
			sleep(ctx, lookEvery)
			d.everything(fn)
		case err != nil:
			missed = missed || cursor == ""
			sleep(ctx, pause/2+rand.N(pause/2)) // not all managers at once
			pause = min(2*pause, lastPause)
		default:
			if c.Reset || missed {
				d.everything(fn)
			}
			for _, id := range c.Environments {
				fn(id)
			}
			cursor, pause, missed = c.Cursor, firstPause, false
		}
	}
	return ctx.Err()
}

func (d *Driver) poll(ctx context.Context, cursor string) (wire.Changes, *fault.Error) {
	ctx, cancel := context.WithTimeout(ctx, wire.MaxPoll+wire.DefaultDeadline)
	defer cancel()
	c, err := ask[wire.Changes](ctx, d, wire.PathChanges, wire.ChangesAfter{After: cursor, WaitMs: wire.MaxPoll.Milliseconds()})
	if err == nil && c.Cursor == "" {
		err = d.link.broken("has no cursor")
	}
	return c, fault.From(err)
}

func (d *Driver) everything(fn func(events.EnvironmentID)) {
	d.mu.Lock()
	ids := slices.Sorted(maps.Keys(d.known))
	d.mu.Unlock()
	for _, id := range ids {
		fn(id)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
