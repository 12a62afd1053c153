//go:build linux

package custodian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// supersedePatience bounds how long the end of another holder may take.
const supersedePatience = 60 * time.Second

// Supersede ends whoever holds the seat, without a grace, and returns when that
// is proved: the holder is gone, and its exit proof is there (R67). The caller
// has the seat's lock, and then takes the seat.
func Supersede(dir seatdir.Dir) error {
	ctx, cancel := context.WithTimeout(context.Background(), supersedePatience)
	defer cancel()
	var id seatdir.Ident
	if err := dir.ReadJSON(seatdir.FileIdent, &id); err != nil {
		return fmt.Errorf("finding who holds the seat: %w", err)
	}
	if err := end(ctx, dir, id.Custodian); err != nil {
		return err
	}
	var proof seatdir.Exit
	err := dir.ReadJSON(seatdir.FileExit, &proof)
	if errors.Is(err, os.ErrNotExist) {
		err = fault.New(fault.Unavailable, "the end of seat %s is not proved", dir.ID)
	}
	return err
}

func end(ctx context.Context, dir seatdir.Dir, holder events.Custody) error {
	h, err := identity.Open(holder)
	if errors.Is(err, identity.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.Close()
	// Whatever it answers, only its end and the proof count.
	_, asked := Ask(ctx, dir, holder, Request{Ask: AskStop})
	for !h.WaitExit(20 * time.Millisecond) {
		if ctx.Err() != nil {
			return errors.Join(fault.New(fault.Unavailable, "the holder of seat %s does not end", dir.ID), asked)
		}
	}
	return nil
}

// GiveUp records that a replacement of a seat can never land, though the seat
// may have ended for it: its answer is therefore unknown, and who asks what
// became of it is told that it is excluded.
func GiveUp(dir seatdir.Dir, j *seatdir.Journal, e seatdir.Entry, why error) error {
	e.Standing, e.Facts, e.Fault = seatdir.Excluded, nil, nil
	j.Set(e)
	if err := dir.SaveJournal(j); err != nil {
		return fmt.Errorf("%w; and the journal could not be written: %w", why, err)
	}
	return fault.New(fault.Unavailable, "the seat was not replaced, and may have ended: %s", events.Scrub(why.Error())).WithOutcome(fault.Unknown)
}
