//go:build linux

package seat

import (
	"context"
	"errors"
	"io"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers/kept"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// followPause is how often a follower looks for more output.
const followPause = 50 * time.Millisecond

// Logs writes the kept output from offset: what the seat's terminal received,
// as it was. Output older than what is kept is skipped; the files stay
// readable after the seat's end, until the destroy.
func (d *Base) Logs(ctx context.Context, id events.EnvironmentID, ref string, from int64, follow bool, w io.Writer) (int64, error) {
	dir, _, err := d.known(id, ref)
	if err != nil {
		return from, err
	}
	if from < 0 {
		return from, fault.New(fault.BadRequest, "offset %d of the output: it is not negative", from)
	}
	for {
		// Whether the seat lives is asked before reading, so that what it
		// wrote last is read after it was seen dead.
		live, err := alive(dir)
		if err != nil {
			return from, kept.Seen("logs", id, err)
		}
		if from, err = custodian.ReadOutput(dir, from, w); err != nil {
			return from, kept.Seen("logs", id, err)
		}
		if !follow || !live {
			return from, nil
		}
		select {
		case <-ctx.Done():
			return from, nil
		case <-time.After(followPause):
		}
	}
}

func alive(dir seatdir.Dir) (bool, error) {
	id, err := ReadIdent(dir)
	if err != nil {
		return false, err
	}
	h, err := identity.Open(id.Custodian)
	if errors.Is(err, identity.ErrGone) {
		return false, nil // also what was never started
	}
	if err != nil {
		return false, err
	}
	h.Close()
	return true, nil
}
