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
	"berth/providers"
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
		return providers.UnknownWith(seen("restore", c.Op.Environment, err))
	}
	return c.finish(events.Facts{}, seen("restore", c.Op.Environment, err).WithOutcome(fault.NotExecuted))
}

func (c *Call) prepared(ctx context.Context) (any, error) {
	var k seatdir.Kept
	if err := LoadKept(c.Dir, c.Op.Arguments.CheckpointID, &k); err != nil {
		return nil, err
	}
	if k.Checkpoint == nil {
		return nil, fault.New(fault.NotFound, "environment %s has no checkpoint %q", c.Op.Environment, c.Op.Arguments.CheckpointID)
	}
	if err := verify(ctx, c.Captured(k.Checkpoint.ID), *k.Checkpoint); err != nil {
		return nil, err
	}
	if err := c.settle(); err != nil {
		return nil, err
	}
	return c.d.kind.Restore(ctx, c, *k.Checkpoint)
}

// settle ends what a restore that was cut off left behind.
func (c *Call) settle() error {
	if c.d.kind.Settle == nil {
		return nil
	}
	return c.d.kind.Settle(c)
}

// verify reads a captured file whole and holds it against its checkpoint: one
// that was changed since is never begun from (R37).
func verify(ctx context.Context, from string, want events.Checkpoint) error {
	damaged := func(why string) error {
		return fault.New(fault.FailedPrecondition, "checkpoint %s is damaged: %s", want.ID, why)
	}
	f, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return damaged("its file is gone")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, NewReader(ctx, io.LimitReader(f, want.ByteLength+1)))
	switch sum := hex.EncodeToString(h.Sum(nil)); {
	case err != nil:
		return err
	case n != want.ByteLength:
		return damaged("it does not have its length any more")
	case sum != want.SHA256:
		return damaged("its SHA-256 is " + sum + " and should be " + want.SHA256)
	}
	return nil
}
