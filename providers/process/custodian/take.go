//go:build linux

package custodian

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// lockPatience is how long a supervisor waits for its seat's lock.
const lockPatience = 60 * time.Second

// take holds the lock while it decides and starts: whoever has the lock next
// finds the operation landed, refused, or never to be started (decision 16).
func (p *Post) take() (*events.Facts, error) {
	if err := unix.Chdir(p.Dir.Path); err != nil {
		return nil, fmt.Errorf("entering the seat's directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	unlock, err := p.Dir.Lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("taking the seat's lock: %w", err)
	}
	defer unlock()
	j, err := p.Dir.LoadJournal()
	if err != nil {
		return nil, err
	}
	p.Dir.ID = j.Environment
	o, err := p.seat.Order()
	if err != nil {
		return nil, err
	}
	e := j.Find(o.Operation)
	switch {
	case e == nil || e.Fingerprint != o.Fingerprint:
		return nil, fault.New(fault.Conflict, "start %s is not in the journal", o.Operation)
	case e.Standing == seatdir.Landed:
		return e.Facts, nil
	case e.Standing != seatdir.Begun:
		return nil, fault.New(fault.FailedPrecondition, "start %s was fenced off before it began", o.Operation)
	}
	if o.Beside {
		return p.takeBeside(j, *e, o)
	}
	hold := p.Dir.HoldLife
	if o.Replace {
		if err := Supersede(p.Dir); err != nil {
			return nil, p.refuse(j, *e, o, err)
		}
		hold = func() (func(), bool, error) { return p.Dir.TakeLife(ctx) }
	}
	life, held, err := hold()
	if err != nil || !held {
		return nil, fault.New(fault.Conflict, "another supervisor holds seat %s", p.Dir.ID).WithOutcome(fault.Unknown)
	}
	p.life = life
	facts, err := p.launch(j.Ref, o)
	if err != nil {
		p.clear()
		return nil, p.refuse(j, *e, o, err)
	}
	j.Phase = seatdir.PhaseStarted
	j.Set(seatdir.Entry{Operation: e.Operation, Verb: e.Verb, Fingerprint: e.Fingerprint, Standing: seatdir.Landed, Facts: facts})
	if err := p.Dir.SaveJournal(j); err != nil {
		p.clear()
		return nil, fmt.Errorf("recording the start: %w", err)
	}
	if o.Replace {
		_ = p.seat.Settle(true) // what stays is dropped by the next replacement, and by the end
	}
	return facts, nil
}

// refuse settles a start that failed. A replacement may have ended the seat
// that was there, so that it was not without effect, and it can never land.
func (p *Post) refuse(j *seatdir.Journal, e seatdir.Entry, o Order, why error) error {
	if o.Replace {
		if err := p.seat.Settle(false); err != nil {
			return fmt.Errorf("%w; and what was there could not be put back: %w", why, err)
		}
		return GiveUp(p.Dir, j, e, why)
	}
	f := fault.From(why).WithOutcome(fault.NotExecuted)
	e.Standing, e.Facts, e.Fault = seatdir.Refused, nil, f
	j.Set(e)
	if err := p.Dir.SaveJournal(j); err != nil {
		return fmt.Errorf("%w; and the journal could not be written: %w", why, err)
	}
	return f
}

// lifetime is the deadline, and a context that ends with it: what is still
// starting then never runs.
func (p *Post) lifetime() (dl seatdir.Deadline, ctx context.Context, cancel func(), err error) {
	if err := p.Dir.ReadJSON(seatdir.FileDeadline, &dl); err != nil && !errors.Is(err, os.ErrNotExist) {
		return dl, nil, nil, err
	}
	boot, err := identity.BootID()
	if err != nil {
		return dl, nil, nil, err
	}
	left, ok := dl.Left(boot, identity.Boottime(), time.Now())
	switch {
	case !ok:
		return dl, context.Background(), func() {}, nil
	case left <= 0:
		return dl, nil, nil, fault.New(fault.Expired, "the lifetime of %s ended at %s", p.Dir.ID, dl.At.Format(time.RFC3339))
	}
	ctx, cancel = context.WithTimeout(context.Background(), left)
	return dl, ctx, cancel, nil
}

// launch starts the seat and everything around it.
func (p *Post) launch(ref string, o Order) (*events.Facts, error) {
	dl, ctx, cancel, err := p.lifetime()
	if err != nil {
		return nil, err
	}
	defer cancel()
	if p.out, err = newOutput(p.Dir); err != nil {
		return nil, err
	}
	if err := p.Drop(seatdir.FileSocket, seatdir.FileExit, seatdir.FileReady); err != nil {
		return nil, err
	}
	if err := p.listen(seatdir.FileSocket); err != nil {
		return nil, err
	}
	p.Sign = newSign(p.Dir, o.Ready)
	p.Sign.watch(p.out)
	if p.Ident, err = p.seat.Launch(ctx); err != nil {
		return nil, err
	}
	if p.Ident.Custodian, err = identity.Of(os.Getpid()); err != nil {
		return nil, err
	}
	if err := p.Dir.WriteBefore(seatdir.FileIdent, p.Ident); err != nil {
		return nil, err
	}
	return p.facts(ref, o, dl), nil
}

// listen opens the control socket. Its name is relative, because the full path
// may be longer than a socket's may be, and is not removed with it: another
// holder may have it by then.
func (p *Post) listen(name string) error {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return err
	}
	ln.SetUnlinkOnClose(false)
	p.ln = ln
	return nil
}

// facts are what is true of a seat that has just begun.
func (p *Post) facts(ref string, o Order, dl seatdir.Deadline) *events.Facts {
	return &events.Facts{
		Ref: ref, State: events.StateRunning, Network: o.Network, ExpiresAt: dl.At,
		Incarnation: Incarnation(p.Ident.Custodian), ObservedAt: events.MillisUTC(time.Now()), Custody: &p.Ident.Custodian,
	}
}

// Drop removes files of an earlier start from the seat's directory.
func (p *Post) Drop(names ...string) error {
	for _, name := range names {
		if err := os.Remove(p.Dir.File(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// clear leaves nothing of a start that failed.
func (p *Post) clear() {
	p.seat.Clear()
	if p.ln != nil {
		_ = p.ln.Close()
	}
}
