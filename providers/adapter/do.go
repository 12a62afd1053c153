package adapter

import (
	"context"
	"slices"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/kept"
)

// Do runs one mutation. The same id again gives the same answer (R27, R86),
// with other arguments it is a conflict, and a lower epoch of the same
// instance is refused. What was sent once is never sent again.
func (d *Driver) Do(ctx context.Context, op providers.Operation) providers.Outcome {
	if err := d.check(op); err != nil {
		return providers.RefusedWith(fault.From(err))
	}
	unlock, err := d.lock(ctx, op.Environment)
	if err != nil {
		return providers.UnknownWith(kept.Seen(string(op.Verb), op.Environment, err))
	}
	answer := make(chan providers.Outcome, 1)
	// Goes on after ctx: an answer that is only slow must not become a lost one.
	go func() {
		defer unlock()
		work, cancel := context.WithTimeout(d.base, CallLimit)
		defer cancel()
		answer <- d.run(work, op)
	}()
	select {
	case out := <-answer:
		return out
	case <-ctx.Done():
		return providers.UnknownWith(kept.Seen(string(op.Verb), op.Environment, ctx.Err()))
	}
}

func (d *Driver) check(op providers.Operation) error {
	if _, err := events.ParseEnvironmentID(string(op.Environment)); err != nil {
		return err
	}
	if _, err := events.ParseOperationID(string(op.ID)); err != nil {
		return err
	}
	if !slices.Contains(events.Verbs, op.Verb) || !d.b.Supports(op.Verb) {
		return fault.New(fault.Unimplemented, "the %s provider has no verb %q (R89)", d.Name(), op.Verb)
	}
	return nil
}

func (d *Driver) run(ctx context.Context, op providers.Operation) providers.Outcome {
	r, err := d.s.load(op.Environment)
	if err != nil {
		return providers.UnknownWith(kept.Seen("journal", op.Environment, err))
	}
	c := &Call{Op: op, Record: r, d: d, was: r.Phase}
	if out, ok := c.settled(ctx); ok {
		return out
	}
	if err := c.refusal(ctx); err != nil {
		// Nothing was sent: whatever failed, it is a refusal.
		return c.finish(events.Facts{}, kept.Seen(string(op.Verb), op.Environment, err).WithOutcome(fault.NotExecuted))
	}
	if op.Verb == events.VerbReserve {
		r.Alias, r.Plan = op.Alias, op.Plan
	}
	if op.Verb == events.VerbDestroy && r.Ref != "" && r.Phase != PhaseDestroyed {
		r.Phase = PhaseDestroying
	}
	if err := c.record(Entry{Standing: Begun}); err != nil {
		return providers.UnknownWith(kept.Seen("journal", op.Environment, err))
	}
	return c.finish(c.carry(ctx))
}

func (c *Call) carry(ctx context.Context) (events.Facts, error) {
	switch c.Op.Verb {
	case events.VerbCheckpoint:
		return c.checkpoint(ctx)
	case events.VerbExport:
		return c.export(ctx)
	case events.VerbDeleteFile:
		return c.deleteFile(ctx)
	case events.VerbDestroy:
		if c.Record.Ref == "" || c.was == PhaseDestroyed { // nothing was ever sent, or all of it is gone
			return events.Facts{State: events.StateAbsent, ObservedAt: millis(c.d.clock)}, nil
		}
	}
	f, err := c.d.b.Carry(ctx, c)
	return c.complete(f), err
}

func (c *Call) complete(f events.Facts) events.Facts {
	if c.Op.Verb != events.VerbReserve {
		f.Ref = c.Record.Ref
	}
	if c.Op.Verb == events.VerbProvision && f.State == events.StateReserved {
		f.State = events.StateCreating
	}
	f.ObservedAt = millis(c.d.clock)
	return f
}

// settled answers what is already known of this id.
func (c *Call) settled(ctx context.Context) (providers.Outcome, bool) {
	e := c.Entry()
	if e != nil && e.Fingerprint != fingerprint(c.Op) {
		return providers.RefusedWith(fault.New(fault.Conflict, "operation %s was already used for another %s", c.Op.ID, e.Verb)), true
	}
	if w := c.Record.Writer; c.Op.Writer.Instance == w.Instance && c.Op.Writer.Epoch < w.Epoch {
		return providers.RefusedWith(fault.New(fault.Expired, "epoch %d of instance %s is over: epoch %d has written here", c.Op.Writer.Epoch, w.Instance, w.Epoch)), true
	}
	if e == nil {
		return providers.Outcome{}, false
	}
	switch e.Standing {
	case Landed:
		return providers.DoneWith(*e.Facts), true
	case Refused:
		return providers.RefusedWith(e.Fault), true
	case Excluded:
		return providers.RefusedWith(fault.New(fault.FailedPrecondition, "operation %s was excluded and can never be carried out", c.Op.ID)), true
	}
	f := c.finding(ctx)
	switch f.Verdict {
	case providers.Landed:
		return providers.DoneWith(f.Facts), true
	case providers.Excluded:
		return providers.RefusedWith(fault.New(fault.FailedPrecondition, "operation %s ended without effect: %s", c.Op.ID, f.Evidence)), true
	}
	return providers.UnknownWith(f.Fault), true
}

// finish records the result, so that it is found again under this id.
func (c *Call) finish(f events.Facts, err error) providers.Outcome {
	if err != nil {
		e := providers.ScrubFault(kept.Seen(string(c.Op.Verb), c.Op.Environment, err), c.Op.Material)
		if e.Outcome != fault.NotExecuted {
			return providers.UnknownWith(e)
		}
		if c.Op.Verb == events.VerbDestroy && c.Record.Phase == PhaseDestroying {
			c.Record.Phase = c.was // it goes on as it was
		}
		if rerr := c.record(Entry{Standing: Refused, Fault: e}); rerr != nil {
			return providers.UnknownWith(kept.Seen("journal", c.Op.Environment, rerr))
		}
		return providers.RefusedWith(e)
	}
	if rerr := c.land(f); rerr != nil {
		return providers.UnknownWith(kept.Seen("journal", c.Op.Environment, rerr))
	}
	return providers.DoneWith(f)
}

func (c *Call) land(f events.Facts) error {
	c.Record.advance(c.Op.Verb, f)
	if err := c.record(Entry{Standing: Landed, Facts: &f}); err != nil {
		return err
	}
	if c.Op.Verb == events.VerbDestroy {
		return c.d.dropFiles(c.Op.Environment)
	}
	return nil
}

func (c *Call) record(e Entry) error {
	e.Operation, e.Verb, e.Fingerprint = c.Op.ID, c.Op.Verb, fingerprint(c.Op)
	if old := c.Entry(); old != nil {
		e.Before = old.Before
	}
	if w := c.Op.Writer; w.Instance != c.Record.Writer.Instance || w.Epoch > c.Record.Writer.Epoch {
		c.Record.Writer = w
	}
	c.Record.set(e)
	return c.d.s.save(c.Record)
}

var allowed = map[events.Verb][]events.ProviderState{
	events.VerbProvision:  {events.StateReserved},
	events.VerbStart:      {events.StateCreating, events.StateStopped},
	events.VerbPause:      {events.StateRunning},
	events.VerbResume:     {events.StatePaused},
	events.VerbStop:       {events.StateReserved, events.StateCreating, events.StateRunning, events.StatePaused, events.StateStopped, events.StateFailed},
	events.VerbCheckpoint: {events.StateRunning, events.StatePaused, events.StateStopped},
}

// refusal is why the verb can't be sent, or nil. The end is always allowed,
// also of what was never made.
func (c *Call) refusal(ctx context.Context) error {
	v, id, r := c.Op.Verb, c.Op.Environment, c.Record
	if open := r.unsettled(events.VerbReserve); open != "" && r.Ref == "" {
		return fault.New(fault.FailedPrecondition, "environment %s: reserve %s was sent and not answered; it has to be settled first", id, open)
	}
	switch {
	case r.Phase == PhaseNone && v == events.VerbReserve, r.Phase == PhaseNone && v == events.VerbDestroy && c.Op.Ref == "":
		return nil
	case r.Phase == PhaseNone:
		return fault.New(fault.NotFound, "the journal of provider %s has no environment %s", c.d.Name(), id)
	case c.Op.Ref != "" && c.Op.Ref != r.Ref:
		return fault.New(fault.Conflict, "environment %s is %s here, not the reference of the operation", id, r.Ref)
	case v == events.VerbDestroy:
		return nil
	case r.Phase == PhaseDestroyed || r.Phase == PhaseDestroying:
		return fault.New(fault.Expired, "environment %s was destroyed; its id is never used again", id)
	case v == events.VerbReserve:
		return fault.New(fault.AlreadyExists, "environment %s is already reserved by another operation", id)
	case len(r.Operations) >= MaxOperations && v != events.VerbStop:
		return fault.New(fault.ResourceExhausted, "environment %s has seen %d operations, the most there can be", id, MaxOperations)
	case v == events.VerbExport || v == events.VerbDeleteFile:
		return nil
	}
	f, err := c.d.observe(ctx, r)
	if err != nil {
		return err
	}
	if !slices.Contains(allowed[v], f.State) {
		return fault.New(fault.FailedPrecondition, "environment %s can't %s: it is %s", id, v, f.State)
	}
	return nil
}
