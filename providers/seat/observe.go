//go:build linux

package seat

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers/kept"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// askPatience bounds one question to a holder.
const askPatience = 10 * time.Second

// deathPatience bounds the wait for a seat whose holder was killed.
const deathPatience = 10 * time.Second

// Inspect observes an environment (R64). A tombstone vouches for absence;
// a directory that is not there does not.
func (d *Base) Inspect(ctx context.Context, id events.EnvironmentID, ref string) (events.Facts, error) {
	dir, j, err := d.known(id, ref)
	if err != nil {
		return events.Facts{}, err
	}
	f, err := d.observe(ctx, dir, j, false, status)
	if err != nil {
		return events.Facts{}, kept.Seen("inspection", id, err)
	}
	return f, nil
}

// Adopt takes up an environment after a restart of the manager: the holder
// must be the process of the record's custody, proved by boot id, start time,
// pidfd and the peer of its socket.
func (d *Base) Adopt(ctx context.Context, id events.EnvironmentID, ref string, custody *events.Custody) (events.Facts, error) {
	f, err := d.Inspect(ctx, id, ref)
	if err == nil && f.Custody != nil && custody != nil && *custody != *f.Custody {
		err = fault.New(fault.Conflict, "environment %s is held by process %d, not by the recorded process %d", id, f.Custody.PID, custody.PID)
	}
	return f, err
}

// deadline is the deadline in force: the file's, else the reservation's.
func (d *Base) deadline(dir seatdir.Dir, j *seatdir.Journal) (seatdir.Deadline, error) {
	var dl seatdir.Deadline
	err := dir.ReadJSON(seatdir.FileDeadline, &dl)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return dl, err
	}
	if j.Expires == nil {
		return dl, nil
	}
	boot, err := identity.BootID()
	if err != nil {
		return dl, err
	}
	now := d.Clock() // before the boot-time clock: never early
	return dl.Move(*j.Expires, boot, identity.Boottime(), now), nil
}

// status is the question that changes nothing.
var status = custodian.Request{Ask: custodian.AskStatus}

// observe says what is true of an environment now, after what is asked of its
// holder, if one runs. locked says that the caller holds its lock.
func (d *Base) observe(ctx context.Context, dir seatdir.Dir, j *seatdir.Journal, locked bool, ask custodian.Request) (events.Facts, error) {
	f := events.Facts{Ref: j.Ref, ObservedAt: d.Now()}
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
	f.Network = d.networkOf(j)
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
	if f, err = d.observeSeat(ctx, dir, f, locked, ask); err == nil && f.Custody != nil && f.Ready == nil && j.Plan.Sign() != nil {
		d.awaitSign(dir, *f.Custody)
	}
	return f, err
}

// networkOf is the network that was resolved at the reservation. A journal of
// an earlier program has none; the plan then says the same.
func (d *Base) networkOf(j *seatdir.Journal) string {
	return cmp.Or(j.Network, d.kind.Network(j.Plan))
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
	var r events.Readiness
	if err := dir.ReadJSON(seatdir.FileReady, &r); err == nil {
		f.Ready = &r // it was, before it ended
	} else if !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	f.State, f.ExitCode, f.StoppedAt = events.StateStopped, x.Code, &x.At
	f.Custody, f.Incarnation = nil, ""
	return true, nil
}

// ReadIdent says who holds the seat. Without the file nobody does: it is
// written before the journal says started, and only a power cut, which ends
// every process, can have lost it.
func ReadIdent(dir seatdir.Dir) (seatdir.Ident, error) {
	var id seatdir.Ident
	err := dir.ReadJSON(seatdir.FileIdent, &id)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return id, err
}

func (d *Base) observeSeat(ctx context.Context, dir seatdir.Dir, f events.Facts, locked bool, ask custodian.Request) (events.Facts, error) {
	id, err := ReadIdent(dir)
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
	actx, cancel := ctx, func() {}
	if !ask.Change {
		actx, cancel = context.WithTimeout(ctx, askPatience)
	}
	defer cancel()
	resp, err := custodian.Ask(actx, dir, id.Custodian, ask)
	if ask.Change && err != nil && fault.From(err).Outcome == fault.NotExecuted {
		return f, err
	}
	if err != nil {
		// It may be ending: its proof comes before its end.
		if ended, xerr := exitFacts(dir, &f); ended {
			return f, xerr
		}
		gone := h.WaitExit(100 * time.Millisecond)
		if now, ierr := ReadIdent(dir); ierr == nil && now.Custodian != id.Custodian { // replaced in between
			return d.observeSeat(ctx, dir, f, locked, ask)
		}
		if gone {
			return d.lost(ctx, dir, f, locked)
		}
		return f, kept.Seen(d.kind.Holder, dir.ID, err)
	}
	if resp.Standing {
		return d.replacing(ctx, dir, f, locked)
	}
	f.State, f.Ready = stateOf(resp), resp.Ready
	if seen := d.kind.Sees(id); seen != "" {
		f.Network = seen // also when it is not the recorded one (R25)
	}
	f.Custody, f.Incarnation = &id.Custodian, custodian.Incarnation(id.Custodian)
	// A start whose answer was lost is watched from its first observation on.
	if err := d.watches.ensure(dir.ID, id.Custodian); err != nil && !errors.Is(err, identity.ErrGone) {
		return f, err
	}
	return f, nil
}

// replacing observes a seat whose place is being taken when that is decided:
// whoever takes it has the lock until then, and where it died of it, the seat that
// stands still finds out what counts.
func (d *Base) replacing(ctx context.Context, dir seatdir.Dir, f events.Facts, locked bool) (events.Facts, error) {
	if !locked {
		unlock, err := dir.Lock(ctx)
		if err != nil {
			return f, err
		}
		defer unlock()
	}
	select {
	case <-ctx.Done():
		return f, ctx.Err()
	case <-time.After(5 * time.Millisecond):
	}
	return d.observeSeat(ctx, dir, f, true, status)
}

func stateOf(r custodian.Response) events.ProviderState {
	if r.Frozen {
		return events.StatePaused
	}
	return events.StateRunning
}

// lost settles an environment whose holder is gone. If there is no exit
// proof, the seat must be dead with its holder; that is proved by its
// identity, and the proof is kept.
func (d *Base) lost(ctx context.Context, dir seatdir.Dir, f events.Facts, locked bool) (events.Facts, error) {
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
	id, err := ReadIdent(dir)
	if err != nil {
		return f, err
	}
	if h, err := identity.Open(id.Custodian); err == nil { // a new start came in between
		h.Close()
		return d.observeSeat(ctx, dir, f, true, status)
	}
	if !d.dead(ctx, dir, id) {
		f.State = events.StateUnknown
		return f, nil
	}
	x := seatdir.Exit{Seat: id.Seat, Why: seatdir.EndLost, At: d.Now()}
	if err := dir.WriteJSON(seatdir.FileExit, x); err != nil {
		return f, err
	}
	_ = dir.SweepGroups("", groupPatience) // what stays goes with the destroy
	_, err = exitFacts(dir, &f)
	return f, err
}

// dead proves that nothing of the seat runs. The kernel kills a seat with its
// holder; what a frozen group or a daemon of an unisolated seat holds back
// is ended here, each process by its proved identity.
func (d *Base) dead(ctx context.Context, dir seatdir.Dir, id seatdir.Ident) bool {
	boot, err := identity.BootID()
	if err != nil {
		return false
	}
	if id.Seat.BootID != boot {
		return true
	}
	mark := events.EnvEnvironment + "=" + string(dir.ID)
	for end := time.Now().Add(deathPatience); ; {
		h, err := identity.Open(id.Seat)
		gone := errors.Is(err, identity.ErrGone)
		if err == nil {
			_ = h.Signal(unix.SIGKILL)
			gone = h.WaitExit(50 * time.Millisecond)
			h.Close()
		}
		id.Group.KillAll()
		left := identity.WithEnvironment(mark)
		for _, p := range left {
			_ = identity.Signal(p, unix.SIGKILL)
		}
		if gone && len(left) == 0 && (id.Group.Name == "" || len(id.Group.Processes()) == 0) {
			return true
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
}
