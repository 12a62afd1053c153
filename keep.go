package berth

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"berth/aggregates/instance"
	"berth/events"
	"berth/projections"
)

// How often things are kept.
const (
	checkpointEvery = 5 * time.Second
	snapshotEvery   = 50_000 // records
	signEvery       = time.Hour
	// restFor bounds the reading of what was committed last.
	restFor = 5 * time.Second
	// keepExports is how long an accepted export can be downloaded again.
	keepExports = 24 * time.Hour
)

// keeper keeps the chain of the whole stream, follows it for the engine, and
// saves snapshots of the views.
type keeper struct {
	*chain
	m        *Manager
	snapshot uint64 // sequence of the last one
}

func (k *keeper) identity() string {
	name, created := k.m.log.Identity()
	return name + " " + created.UTC().Format(time.RFC3339Nano)
}

// follow feeds the chain and the engine with every durable record, until ctx
// ends.
func (k *keeper) follow(ctx context.Context) error {
	return k.m.log.Follow(ctx, k.at(), func(r events.Record) error {
		if err := k.add(r); err != nil {
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
	if err := k.write(); err != nil {
		k.m.logger.Error("the checkpoint was not written", "error", err)
		return
	}
	if at := k.m.runner.Sequence(); at >= k.snapshot+after && at > 0 {
		if err := projections.Save(k.m.dir.File(snapshotFile), k.identity(), k.m.runner.Clone()); err != nil {
			k.m.logger.Error("the snapshot was not written", "error", err)
			return
		}
		k.snapshot = at
	}
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
	k.record(ctx, k.end(k.m.writer.Epoch))
	if tip, err := k.m.log.Tip(ctx); err == nil {
		if err := k.m.runner.WaitFor(ctx, tip); err != nil {
			k.m.logger.Warn("the last records were not folded before the stop", "error", err)
		}
	}
}

// rest leaves what the next start begins with, once nothing of this one works
// any more: a checkpoint of the very last record, and a snapshot.
func (k *keeper) rest() {
	ctx, cancel := context.WithTimeout(context.Background(), restFor)
	defer cancel()
	if err := k.catchUp(ctx); err != nil {
		k.m.logger.Warn("the checkpoint does not have the last records", "error", err)
	}
	k.once(1)
}
