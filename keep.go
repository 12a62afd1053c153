package berth

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"berth/aggregates/instance"
	"berth/events"
	"berth/events/eventlog"
	"berth/events/eventlog/checkpoint"
	"berth/events/eventlog/verify"
	"berth/projections"
)

// How often things are kept.
const (
	checkpointEvery = 5 * time.Second
	snapshotEvery   = 50_000 // records
	signEvery       = time.Hour
	// keepExports is how long an accepted export can be downloaded again.
	keepExports = 24 * time.Hour
)

// keeper follows the whole stream's chain, writes the synced checkpoint that
// tells a missing log from a new one, signs the chain, and saves snapshots of
// the views.
type keeper struct {
	m    *Manager
	lost *checkpoint.Checkpoint // what was remembered, where its loss is accepted

	mu       sync.Mutex
	tracker  checkpoint.Tracker
	written  uint64
	signed   uint64
	snapshot uint64
}

func (k *keeper) identity() string {
	name, created := k.m.log.Identity()
	return name + " " + created.UTC().Format(time.RFC3339Nano)
}

// begin takes up the chain at a verified checkpoint. The first one is written
// at once: from then on a missing log is a loss.
func (k *keeper) begin(c checkpoint.Checkpoint) error {
	k.tracker = checkpoint.Tracker{Sequence: c.Sequence, Record: c.Record, Chain: c.Chain}
	k.written = c.Sequence
	if c.Stream == "" && k.lost == nil {
		return checkpoint.Write(k.m.dir.Path, k.tracker.Of(k.m.log))
	}
	return nil
}

// admitLoss records an accepted loss of history as an event, once.
func (k *keeper) admitLoss(ctx context.Context) error {
	if k.lost == nil {
		return nil
	}
	return acceptLoss(ctx, k.m.log, k.m.opts.Space, k.m.meta(), *k.lost, k.m.opts.AcceptHistoryLoss)
}

// acceptLoss records that an operator goes on with a log that is shorter than
// what its directory remembers, and why.
func acceptLoss(ctx context.Context, log eventlog.Log, space events.Space, meta events.Meta, lost checkpoint.Checkpoint, reason string) error {
	tip, err := log.Tip(ctx)
	if err != nil {
		return err
	}
	b := events.SpaceBoundary(space)
	rs, err := log.Load(ctx, b, 0)
	if err != nil {
		return err
	}
	var last uint64
	if len(rs) > 0 {
		last = rs[len(rs)-1].Sequence
	}
	_, err = log.Commit(ctx, events.Commit{Boundary: b, Expect: last, Meta: meta, Events: []events.Event{events.HistoryLossAccepted{
		By: meta.Caller, Reason: reason, Remembered: lost.Sequence, Found: tip,
	}}})
	return err
}

// follow feeds the chain and the engine with every durable record, until ctx
// ends.
func (k *keeper) follow(ctx context.Context) error {
	k.mu.Lock()
	from := k.tracker.Sequence
	k.mu.Unlock()
	return k.m.log.Follow(ctx, from, func(r events.Record) error {
		k.mu.Lock()
		err := k.tracker.Add(r)
		k.mu.Unlock()
		if err != nil {
			return err
		}
		k.m.engine.Absorb(r)
		return nil
	}, nil)
}

// keep writes checkpoints, snapshots and signatures until ctx ends.
func (k *keeper) keep(ctx context.Context) error {
	tick := time.NewTicker(checkpointEvery)
	defer tick.Stop()
	signed, observed := time.Now(), time.Now()
	k.sweep(k.m.dir.File(exportsDir), signed.Add(-keepExports)) // a manager may never run for signEvery
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		k.once(snapshotEvery)
		if d, ok := k.m.clock.Skew(); ok {
			k.record(ctx, func(instance.State) ([]events.Event, error) {
				return []events.Event{events.ClockSkewed{Instance: k.m.writer.Instance, By: d}}, nil
			})
		}
		if time.Since(observed) >= factsEvery {
			observed = time.Now()
			k.observe(ctx)
		}
		if time.Since(signed) >= signEvery {
			signed = time.Now()
			k.record(ctx, k.sign)
			k.sweep(k.m.dir.File(exportsDir), time.Now().Add(-keepExports))
		}
	}
}

// once writes the checkpoint if it moved, and a snapshot if at least `after`
// records were folded since the last.
func (k *keeper) once(after uint64) {
	k.mu.Lock()
	c, moved := k.tracker.Of(k.m.log), k.tracker.Sequence > k.written
	k.mu.Unlock()
	if moved {
		if err := checkpoint.Write(k.m.dir.Path, c); err != nil {
			k.m.logger.Error("the checkpoint was not written", "error", err)
			return
		}
		k.written = c.Sequence
	}
	if at := k.m.runner.Sequence(); at >= k.snapshot+after && at > 0 {
		if err := projections.Save(k.m.dir.File(snapshotFile), k.identity(), k.m.runner.Clone()); err != nil {
			k.m.logger.Error("the snapshot was not written", "error", err)
			return
		}
		k.snapshot = at
	}
}

// sign is the signed chain of everything up to the tracker, if it moved.
func (k *keeper) sign(instance.State) ([]events.Event, error) {
	k.mu.Lock()
	through, chain := k.tracker.Sequence, k.tracker.Chain
	k.mu.Unlock()
	if through <= k.signed+1 { // the last signature is itself a record
		return nil, nil
	}
	e, err := verify.Sign(k.m.dir.Key, k.m.writer.Instance, through, chain)
	if err != nil {
		return nil, err
	}
	k.signed = through
	return []events.Event{e}, nil
}

// sweep removes accepted exports that nobody fetched for a day.
func (k *keeper) sweep(dir string, before time.Time) {
	files, err := os.ReadDir(dir)
	if err != nil {
		k.m.logger.Error("the exports can't be listed", "error", err)
		return
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || !info.ModTime().Before(before) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
			k.m.logger.Error("an old export was not removed", "error", err)
		}
	}
}

func (k *keeper) record(ctx context.Context, f func(instance.State) ([]events.Event, error)) {
	if _, _, err := k.m.shelf.DecideInstance(ctx, k.m.writer.Instance, k.m.meta(), f); err != nil && ctx.Err() == nil {
		k.m.logger.Error("a fact of this instance was not recorded", "error", err)
	}
}

// stop signs the chain and records the end of the epoch, then keeps what
// makes the next start quick.
func (k *keeper) stop(ctx context.Context) {
	k.record(ctx, func(s instance.State) ([]events.Event, error) {
		signed, err := k.sign(s)
		if err != nil {
			return nil, err
		}
		end, err := s.Stop(k.m.writer.Epoch)
		return append(signed, end...), err
	})
	if tip, err := k.m.log.Tip(ctx); err == nil {
		if err := k.m.runner.WaitFor(ctx, tip); err != nil {
			k.m.logger.Warn("the last records were not folded before the stop", "error", err)
		}
	}
}
