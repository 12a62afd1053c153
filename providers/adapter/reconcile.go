package adapter

import (
	"context"
	"slices"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/kept"
)

// local are the verbs whose effect is on this host only: once nobody carries
// them out any more, one without a result can't land.
var local = []events.Verb{events.VerbCheckpoint, events.VerbExport, events.VerbDeleteFile}

// Reconcile observes what became of an operation, when whoever carries it out
// here has an answer or has given up. It sends nothing that changes anything.
func (d *Driver) Reconcile(ctx context.Context, op providers.Operation) providers.Finding {
	return d.find(ctx, op, false)
}

// Exclude makes an id that was never sent impossible, by the journal. One that
// was sent is excluded only if the backend has a fence for it.
func (d *Driver) Exclude(ctx context.Context, op providers.Operation) providers.Finding {
	return d.find(ctx, op, true)
}

func (d *Driver) find(ctx context.Context, op providers.Operation, exclude bool) providers.Finding {
	op.Material = nil
	if err := d.check(op); err != nil {
		return open("the operation is not one of this provider", op, err)
	}
	unlock, err := d.lock(ctx, op.Environment)
	if err != nil {
		return open("it is still under way", op, err)
	}
	defer unlock()
	r, err := d.s.load(op.Environment)
	if err != nil {
		return open("the journal could not be read", op, err)
	}
	c := &Call{Op: op, Record: r, d: d}
	f := c.finding(ctx)
	if f.Verdict != providers.Open || !exclude || fault.CodeOf(f.Fault) == fault.Conflict {
		return f
	}
	return c.exclude(ctx)
}

func open(evidence string, op providers.Operation, err error) providers.Finding {
	return providers.Finding{Verdict: providers.Open, Evidence: evidence, Fault: kept.Seen("reconciliation", op.Environment, err)}
}

func (c *Call) exclude(ctx context.Context) providers.Finding {
	evidence := "it was never sent, and the journal fences its id"
	if c.Entry() != nil {
		var err error
		if evidence, err = c.d.b.Fence(ctx, c); err != nil {
			return open("it was sent and not answered", c.Op, err)
		}
	}
	if err := c.record(Entry{Standing: Excluded, Fault: fault.New(fault.FailedPrecondition, "%s", evidence)}); err != nil {
		return open("the journal could not be written", c.Op, err)
	}
	return c.finding(ctx)
}

// finding is what is known of the operation, and what can be observed of it.
func (c *Call) finding(ctx context.Context) providers.Finding {
	e := c.Entry()
	switch {
	case e == nil:
		return open("it never arrived here", c.Op, fault.New(fault.Unavailable, "operation %s was not sent from here; excluding it makes that final", c.Op.ID))
	case e.Fingerprint != fingerprint(c.Op):
		return open("the journal has this id for something else", c.Op, fault.New(fault.Conflict, "operation %s was used for another %s", c.Op.ID, e.Verb))
	case e.Standing == Landed:
		return providers.Finding{Verdict: providers.Landed, Facts: *e.Facts, Evidence: "the journal has the provider's answer"}
	case e.Standing == Refused:
		return providers.Finding{Verdict: providers.Excluded, Evidence: "it was refused before anything was executed (" + string(e.Fault.Code) + ")"}
	case e.Standing == Excluded:
		return providers.Finding{Verdict: providers.Excluded, Evidence: e.Fault.Message}
	case slices.Contains(local, c.Op.Verb):
		return providers.Finding{Verdict: providers.Excluded, Evidence: "its work is on this host, and it ended there without a result"}
	}
	f, proved, evidence, err := c.d.b.Landed(ctx, c)
	if err != nil {
		return open("the provider could not be asked", c.Op, err)
	}
	if !proved {
		return open(evidence, c.Op, fault.New(fault.Unavailable, "operation %s was sent and not answered: %s", c.Op.ID, evidence))
	}
	f = c.complete(f)
	if err := c.land(f); err != nil {
		return open("the journal could not be written", c.Op, err)
	}
	return providers.Finding{Verdict: providers.Landed, Facts: f, Evidence: evidence}
}
