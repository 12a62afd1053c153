//go:build linux

package seat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"

	"berth/events"
	"berth/events/fault"
	"berth/internal/until"
	"berth/providers"
	"berth/providers/kept"
	"berth/providers/process/seatdir"
)

// restore puts the seat back to one of its checkpoints, with the launch that it
// was started with. The file is verified and everything is laid ready while the
// seat goes on as it is, so that what can't be done is refused with nothing
// executed. Then a new holder takes the place of the one that is there: it
// outlives this process, and records what became of it (decision 16).
func (c *Call) restore(ctx context.Context, release func()) providers.Outcome {
	begun := c.J.Find(c.Op.ID) != nil // a call of this id was cut off before
	s, err := c.prepared(ctx)
	switch {
	case err == nil:
		return c.hold(ctx, release, s)
	case begun:
		return providers.UnknownWith(kept.Seen("restore", c.Op.Environment, err))
	}
	return c.finish(events.Facts{}, kept.Seen("restore", c.Op.Environment, err).WithOutcome(fault.NotExecuted))
}

func (c *Call) prepared(ctx context.Context) (any, error) {
	f, cp, err := c.d.OpenCheckpoint(ctx, c.Dir, c.Op.Arguments.CheckpointID)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := c.settle(); err != nil {
		return nil, err
	}
	return c.d.kind.Restore(ctx, c, cp, f)
}

// OpenCheckpoint opens the file of a checkpoint of an environment at its beginning,
// after it was read whole and held against its length and its digest: one that
// was changed since is never begun from (R37).
func (d *Base) OpenCheckpoint(ctx context.Context, dir seatdir.Dir, id string) (*os.File, events.Checkpoint, error) {
	var k seatdir.Kept
	if err := LoadKept(dir, id, &k); err != nil {
		return nil, events.Checkpoint{}, err
	}
	if k.Checkpoint == nil {
		return nil, events.Checkpoint{}, fault.New(fault.NotFound, "environment %s has no checkpoint %q", dir.ID, id)
	}
	f, err := os.Open(d.Captured(dir, id))
	if errors.Is(err, os.ErrNotExist) {
		err = damaged(*k.Checkpoint, "its file is gone")
	}
	if err != nil {
		return nil, *k.Checkpoint, err
	}
	if err = verify(ctx, f, *k.Checkpoint); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
	}
	return f, *k.Checkpoint, err
}

// settle ends what a restore that was cut off left behind.
func (c *Call) settle() error {
	if c.d.kind.Settle == nil {
		return nil
	}
	return c.d.kind.Settle(c)
}

func damaged(cp events.Checkpoint, why string) error {
	return fault.New(fault.FailedPrecondition, "checkpoint %s is damaged: %s", cp.ID, why)
}

func verify(ctx context.Context, f io.Reader, want events.Checkpoint) error {
	h := sha256.New()
	n, err := io.Copy(h, until.Reader(ctx, io.LimitReader(f, want.ByteLength+1)))
	switch sum := hex.EncodeToString(h.Sum(nil)); {
	case err != nil:
		return err
	case n != want.ByteLength:
		return damaged(want, "it does not have its length any more")
	case sum != want.SHA256:
		return damaged(want, "its SHA-256 is "+sum+" and should be "+want.SHA256)
	}
	return nil
}
