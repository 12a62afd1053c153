//go:build linux

package qemu

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// askPatience bounds one question to a supervisor; deathPatience, the wait
// for a machine whose supervisor was killed.
const (
	askPatience   = 10 * time.Second
	deathPatience = 10 * time.Second
	followPause   = 50 * time.Millisecond
)

// Inspect observes an environment (R64). A tombstone vouches for absence;
// a directory that is not there does not.
func (d *Driver) Inspect(ctx context.Context, id events.EnvironmentID, ref string) (events.Facts, error) {
	dir, j, err := d.known(id, ref)
	if err != nil {
		return events.Facts{}, err
	}
	f, err := d.observe(ctx, dir, j, false)
	if err != nil {
		return events.Facts{}, seen("inspection", id, err)
	}
	return f, nil
}

// Adopt takes up an environment after a restart of the manager: the
// supervisor must be the process of the record's custody, proved by boot id,
// start time, pidfd and the peer of its socket.
func (d *Driver) Adopt(ctx context.Context, id events.EnvironmentID, ref string, custody *events.Custody) (events.Facts, error) {
	f, err := d.Inspect(ctx, id, ref)
	if err == nil && f.Custody != nil && custody != nil && *custody != *f.Custody {
		err = fault.New(fault.Conflict, "environment %s is held by process %d, not by the recorded process %d", id, f.Custody.PID, custody.PID)
	}
	return f, err
}

// deadline is the deadline in force: the file's, else the reservation's.
func (d *Driver) deadline(dir seatdir.Dir, j *seatdir.Journal) (seatdir.Deadline, error) {
	var dl seatdir.Deadline
	err := dir.ReadJSON(seatdir.FileDeadline, &dl)
	if err == nil || !errors.Is(err, os.ErrNotExist) || j.Expires == nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return dl, err
	}
	boot, err := identity.BootID()
	if err != nil {
		return dl, err
	}
	now := d.cfg.Clock() // before the boot-time clock: never early
	return dl.Move(*j.Expires, boot, identity.Boottime(), now), nil
}

// observe says what is true of an environment now. locked says that the
// caller holds its lock.
func (d *Driver) observe(ctx context.Context, dir seatdir.Dir, j *seatdir.Journal, locked bool) (events.Facts, error) {
	f := events.Facts{Ref: j.Ref, ObservedAt: d.now(), Network: "none"}
	switch j.Phase {
	case seatdir.PhaseNone:
		return f, fault.New(fault.NotFound, "this host has no environment %s", dir.ID)
	case seatdir.PhaseDestroyed:
		f.State = events.StateAbsent
		return f, nil
	case seatdir.PhaseDestroying:
		f.State = events.StateUnknown
		return f, nil
	}
	dl, err := d.deadline(dir, j)
	if err != nil {
		return f, err
	}
	f.ExpiresAt = dl.At
	if ended, err := exitFacts(dir, &f); ended || err != nil {
		return f, err
	}
	switch j.Phase {
	case seatdir.PhaseReserved:
		f.State = events.StateReserved
		return f, nil
	case seatdir.PhaseProvisioned:
		f.State = events.StateCreating
		return f, nil
	}
	return d.observeMachine(ctx, dir, f, locked)
}

// exitFacts reads the exit proof, if there is one.
func exitFacts(dir seatdir.Dir, f *events.Facts) (bool, error) {
	var x seatdir.Exit
	err := dir.ReadJSON(seatdir.FileExit, &x)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	f.State, f.ExitCode, f.StoppedAt = events.StateStopped, x.Code, &x.At
	f.Custody, f.Incarnation = nil, ""
	return true, nil
}

// readIdent says who holds the machine. Without the file nobody does: it is
// written before the journal says started, and only a power cut, which ends
// every process, can have lost it.
func readIdent(dir seatdir.Dir) (seatdir.Ident, error) {
	var id seatdir.Ident
	err := dir.ReadJSON(seatdir.FileIdent, &id)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return id, err
}

func (d *Driver) observeMachine(ctx context.Context, dir seatdir.Dir, f events.Facts, locked bool) (events.Facts, error) {
	id, err := readIdent(dir)
	if err != nil {
		return f, err
	}
	h, err := identity.Open(id.Custodian)
	if errors.Is(err, identity.ErrGone) {
		return d.lost(ctx, dir, f, locked)
	}
	if err != nil {
		return f, err
	}
	defer h.Close()
	actx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	resp, err := custodian.Ask(actx, dir, id.Custodian, custodian.Request{Ask: custodian.AskStatus})
	if err != nil {
		// It may be ending: its proof comes before its end.
		if ended, xerr := exitFacts(dir, &f); ended {
			return f, xerr
		}
		if h.WaitExit(100 * time.Millisecond) {
			return d.lost(ctx, dir, f, locked)
		}
		return f, seen("supervisor", dir.ID, err)
	}
	f.State = events.StateRunning
	if resp.Frozen {
		f.State = events.StatePaused
	}
	f.Custody, f.Incarnation = &id.Custodian, custodian.Incarnation(id.Custodian)
	if err := d.watches.ensure(dir.ID, id.Custodian); err != nil && !errors.Is(err, identity.ErrGone) {
		return f, err
	}
	return f, nil
}

// lost settles an environment whose supervisor is gone. The kernel ends QEMU
// with it; that is proved by QEMU's identity, and the proof is kept.
func (d *Driver) lost(ctx context.Context, dir seatdir.Dir, f events.Facts, locked bool) (events.Facts, error) {
	if !locked {
		unlock, err := dir.Lock(ctx)
		if err != nil {
			return f, err
		}
		defer unlock()
	}
	if ended, err := exitFacts(dir, &f); ended || err != nil {
		return f, err
	}
	id, err := readIdent(dir)
	if err != nil {
		return f, err
	}
	if h, err := identity.Open(id.Custodian); err == nil { // a new start came in between
		h.Close()
		return d.observeMachine(ctx, dir, f, true)
	}
	if !dead(ctx, id.Seat) {
		f.State = events.StateUnknown
		return f, nil
	}
	x := seatdir.Exit{Seat: id.Seat, Why: seatdir.EndLost, At: d.now()}
	if err := dir.WriteJSON(seatdir.FileExit, x); err != nil {
		return f, err
	}
	_, err = exitFacts(dir, &f)
	return f, err
}

// dead proves that QEMU has ended, and ends it if it has not.
func dead(ctx context.Context, c events.Custody) bool {
	for end := time.Now().Add(deathPatience); ctx.Err() == nil && time.Now().Before(end); {
		h, err := identity.Open(c)
		if errors.Is(err, identity.ErrGone) {
			return true
		}
		if err != nil {
			return false
		}
		_ = h.Signal(unix.SIGKILL)
		gone := h.WaitExit(50 * time.Millisecond)
		h.Close()
		if gone {
			return true
		}
	}
	return false
}

// Logs writes the kept output from offset: what the guest's terminal gave.
// Output older than what is kept is skipped; the files stay readable after
// the end, until the destroy.
func (d *Driver) Logs(ctx context.Context, id events.EnvironmentID, ref string, from int64, follow bool, w io.Writer) (int64, error) {
	dir, _, err := d.known(id, ref)
	if err != nil {
		return from, err
	}
	if from < 0 {
		return from, fault.New(fault.BadRequest, "offset %d of the output: it is not negative", from)
	}
	for {
		// Whether it lives is asked before reading, so that what it wrote
		// last is read after it was seen dead.
		who, err := readIdent(dir)
		live := false
		if h, oerr := identity.Open(who.Custodian); err == nil && oerr == nil {
			live = true
			h.Close()
		}
		if err != nil {
			return from, seen("logs", id, err)
		}
		if from, err = custodian.ReadOutput(dir, from, w); err != nil {
			return from, seen("logs", id, err)
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
