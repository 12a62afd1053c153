//go:build linux

package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/seatdir"
)

// Reconcile looks what became of an operation, under the environment's lock:
// whoever was carrying it out has finished or died. It changes nothing.
func (d *Driver) Reconcile(ctx context.Context, op providers.Operation) providers.Finding {
	return d.find(ctx, op, false)
}

// Exclude makes sure that an operation can never land: it takes the lock and
// writes that into the journal, which every later attempt reads first. An
// operation that has landed stays landed.
func (d *Driver) Exclude(ctx context.Context, op providers.Operation) providers.Finding {
	return d.find(ctx, op, true)
}

func (d *Driver) find(ctx context.Context, op providers.Operation, exclude bool) providers.Finding {
	open := func(err error) providers.Finding {
		return providers.Finding{Verdict: providers.Open, Evidence: "the journal could not be asked", Fault: seen("reconciliation", op.Environment, err)}
	}
	op.Material = nil
	if err := checkOperation(op); err != nil {
		return open(err)
	}
	dir := d.machine(op.Environment)
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
	c := &call{d: d, op: op, dir: dir, j: j}
	found := c.finding(ctx)
	if found.Verdict != providers.Open || !exclude || fault.CodeOf(found.Fault) == fault.Conflict {
		return found
	}
	if err := c.record(seatdir.Entry{Standing: seatdir.Excluded}); err != nil {
		return open(err)
	}
	return c.finding(ctx)
}

func (c *call) finding(ctx context.Context) providers.Finding {
	e := c.j.Find(c.op.ID)
	if e != nil {
		if e.Fingerprint != seatdir.Fingerprint(c.op) {
			return providers.Finding{Verdict: providers.Open, Evidence: "the journal has this id for something else",
				Fault: fault.New(fault.Conflict, "operation %s was used for another %s", c.op.ID, e.Verb).WithOutcome(fault.Unknown)}
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
		Fault: fault.New(fault.Unavailable, "operation %s has no result; excluding it settles it", c.op.ID)}
}

// observed looks for the effect of an operation whose result was not
// written: the process that carried it out was killed between the two.
func (c *call) observed(ctx context.Context) (events.Facts, bool) {
	in := func(states ...events.ProviderState) (events.Facts, bool) {
		f, err := c.facts(ctx)
		for _, s := range states {
			if err == nil && f.State == s {
				return f, true
			}
		}
		return f, false
	}
	switch c.op.Verb {
	case events.VerbPause:
		return in(events.StatePaused)
	case events.VerbResume:
		return in(events.StateRunning)
	case events.VerbStop:
		return in(events.StateStopped)
	case events.VerbDestroy:
		return in(events.StateAbsent)
	case events.VerbExtend:
		if dl, err := c.d.deadline(c.dir, c.j); err == nil && dl.Operation == c.op.ID {
			f, err := c.facts(ctx)
			return f, err == nil
		}
	case events.VerbCheckpoint, events.VerbExport:
		var k kept
		if err := c.dir.ReadJSON(keptName(c.op), &k); err == nil && k.Operation == c.op.ID {
			f, err := c.facts(ctx)
			f.Checkpoint, f.File = k.Checkpoint, k.File
			return f, err == nil
		}
	case events.VerbDeleteFile:
		if c.j.Find(c.op.ID) == nil {
			return events.Facts{}, false
		}
		if _, err := os.Lstat(c.exported(c.op.Arguments.FileID)); errors.Is(err, os.ErrNotExist) {
			f, err := c.facts(ctx)
			return f, err == nil
		}
	}
	return events.Facts{}, false
}
