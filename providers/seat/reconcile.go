//go:build linux

package seat

import (
	"context"
	"errors"
	"fmt"
	"os"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/kept"
	"berth/providers/process/seatdir"
)

// Reconcile looks what became of an operation, under the environment's lock:
// whoever was carrying it out has finished or died. It changes nothing.
func (d *Base) Reconcile(ctx context.Context, op providers.Operation) providers.Finding {
	return d.find(ctx, op, false)
}

// Exclude makes sure that an operation can never land: it takes the lock and
// writes that into the journal, which every later attempt reads first. An
// operation that has landed stays landed.
func (d *Base) Exclude(ctx context.Context, op providers.Operation) providers.Finding {
	return d.find(ctx, op, true)
}

func (d *Base) find(ctx context.Context, op providers.Operation, exclude bool) providers.Finding {
	open := func(err error) providers.Finding {
		return providers.Finding{Verdict: providers.Open, Evidence: "the journal could not be asked", Fault: kept.Seen("reconciliation", op.Environment, err)}
	}
	op.Material = nil
	if err := d.checkOperation(op); err != nil {
		return open(err)
	}
	dir := d.Seat(op.Environment)
	there, err := dir.Exists()
	if err == nil && !there {
		if !exclude {
			return providers.Finding{Verdict: providers.Open, Evidence: "this host has no directory of the environment",
				Fault: fault.New(fault.Unavailable, "operation %s has not arrived here; excluding it makes that final", op.ID)}
		}
		err = dir.Make()
	}
	if err != nil {
		return open(err)
	}
	unlock, err := dir.Lock(ctx)
	if err != nil {
		return open(err)
	}
	defer unlock()
	j, err := dir.LoadJournal()
	if err != nil {
		return open(err)
	}
	c := &Call{d: d, Op: op, Dir: dir, J: j}
	found := c.finding(ctx)
	if found.Verdict != providers.Open || !exclude || fault.CodeOf(found.Fault) == fault.Conflict {
		return found
	}
	if op.Verb == events.VerbRestore { // half of one is undone before it is called excluded
		if err := c.settle(); err != nil {
			return open(err)
		}
	}
	if err := c.record(seatdir.Entry{Standing: seatdir.Excluded}); err != nil {
		return open(err)
	}
	return c.finding(ctx)
}

func (c *Call) finding(ctx context.Context) providers.Finding {
	e := c.J.Find(c.Op.ID)
	if e != nil {
		if e.Fingerprint != seatdir.Fingerprint(c.Op) {
			return providers.Finding{Verdict: providers.Open, Evidence: "the journal has this id for something else",
				Fault: fault.New(fault.Conflict, "operation %s was used for another %s", c.Op.ID, e.Verb).WithOutcome(fault.Unknown)}
		}
		switch e.Standing {
		case seatdir.Landed:
			return providers.Finding{Verdict: providers.Landed, Facts: *e.Facts, Evidence: "the environment's journal has the result"}
		case seatdir.Refused:
			return providers.Finding{Verdict: providers.Excluded, Evidence: fmt.Sprintf("it was refused before anything was executed (%s)", e.Fault.Code)}
		case seatdir.Excluded:
			return providers.Finding{Verdict: providers.Excluded, Evidence: "the environment's journal fences this id"}
		}
	}
	if f, ok := c.observed(ctx); ok {
		return providers.Finding{Verdict: providers.Landed, Facts: f, Evidence: "its effect is there"}
	}
	return providers.Finding{Verdict: providers.Open, Evidence: "the journal has no result of it",
		Fault: fault.New(fault.Unavailable, "operation %s has no result; excluding it settles it", c.Op.ID)}
}

// observed looks for the effect of an operation whose result was not
// written: the process that carried it out was killed between the two.
func (c *Call) observed(ctx context.Context) (events.Facts, bool) {
	in := func(states ...events.ProviderState) (events.Facts, bool) {
		f, err := c.Facts(ctx)
		for _, s := range states {
			if err == nil && f.State == s {
				return f, true
			}
		}
		return f, false
	}
	switch c.Op.Verb {
	case events.VerbPause:
		return in(events.StatePaused)
	case events.VerbResume:
		return in(events.StateRunning)
	case events.VerbStop:
		return in(events.StateStopped)
	case events.VerbDestroy:
		return in(events.StateAbsent)
	case events.VerbExtend:
		if dl, err := c.d.deadline(c.Dir, c.J); err == nil && dl.Operation == c.Op.ID {
			f, err := c.Facts(ctx)
			return f, err == nil
		}
	case events.VerbCheckpoint, events.VerbExport:
		var k seatdir.Kept
		if err := c.Dir.ReadJSON(keptName(c.Op), &k); err == nil && k.Operation == c.Op.ID {
			f, err := c.Facts(ctx)
			f.Checkpoint, f.File = k.Checkpoint, k.File
			return f, err == nil
		}
	case events.VerbDeleteFile:
		if c.J.Find(c.Op.ID) == nil {
			return events.Facts{}, false
		}
		if _, err := os.Lstat(c.exported(c.Op.Arguments.FileID)); errors.Is(err, os.ErrNotExist) {
			f, err := c.Facts(ctx)
			return f, err == nil
		}
	}
	return events.Facts{}, false
}
