package stream

import (
	"context"

	"berth/events"
	"berth/events/eventlog"
)

// assembler gives records on, and holds back those of an atomic publish until
// all of it is there (decision 3).
type assembler struct {
	log  *Log
	fn   func(events.Record) error
	at   uint64 // last sequence given
	held []events.Record
}

func (a *assembler) add(ctx context.Context, r events.Record) error {
	if n := len(a.held); n > 0 {
		if !eventlog.SameBatch(r, a.held[0].Batch, a.held[n-1].Batch.Index+1) {
			if err := a.tear(); err != nil {
				return err
			}
		}
	}
	if r.Batch == nil {
		return a.give(r)
	}
	if len(a.held) == 0 && r.Batch.Index > 0 {
		return a.middle(ctx, r)
	}
	a.held = append(a.held, r)
	if len(a.held) < r.Batch.Count {
		return nil
	}
	return a.flush(func(r events.Record) events.Record { return r })
}

// middle gives a member whose first ones are before where following began, or
// missing.
func (a *assembler) middle(ctx context.Context, r events.Record) error {
	whole, err := a.log.complete(ctx, r)
	if err != nil {
		return err
	}
	if !whole {
		r = a.log.tear(r)
	}
	return a.give(r)
}

// giveUp tears what is held, unless its last member has been stored after all.
func (a *assembler) giveUp(ctx context.Context) error {
	whole, err := a.log.complete(ctx, a.held[0])
	if err != nil || whole {
		return nil // asked again after the next wait
	}
	return a.tear()
}

func (a *assembler) tear() error { return a.flush(a.log.tear) }

func (a *assembler) flush(change func(events.Record) events.Record) error {
	held := a.held
	a.held = nil
	for _, r := range held {
		if err := a.give(change(r)); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembler) give(r events.Record) error {
	if err := a.fn(r); err != nil {
		return err
	}
	a.at = r.Sequence
	return nil
}
