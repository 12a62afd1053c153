//go:build linux

package qemu

import (
	"context"
	"slices"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/seatdir"
)

// call is one mutation under way, with the lock held.
type call struct {
	d   *Driver
	op  providers.Operation
	dir seatdir.Dir
	j   *seatdir.Journal
}

// effects carry a verb out and return its facts. A fault whose outcome is
// not-executed is a refusal; any other error leaves the outcome unknown.
var effects = map[events.Verb]func(*call, context.Context) (events.Facts, error){
	events.VerbReserve:    (*call).reserve,
	events.VerbProvision:  (*call).provision,
	events.VerbPause:      (*call).pause,
	events.VerbResume:     (*call).resume,
	events.VerbExtend:     (*call).extend,
	events.VerbCheckpoint: (*call).checkpoint,
	events.VerbExport:     (*call).export,
	events.VerbDeleteFile: (*call).deleteFile,
	events.VerbStop:       (*call).stop,
	events.VerbDestroy:    (*call).destroy,
}

// announced are the verbs whose effect is many steps: that they began is
// written first. The others are one atomic step, which can be looked at.
var announced = []events.Verb{events.VerbProvision, events.VerbStart, events.VerbCheckpoint, events.VerbExport, events.VerbDestroy}

// Do runs one mutation. The same id again gives the same answer (R27, R86);
// with other arguments it is a conflict; a lower epoch of the same instance
// is refused.
func (d *Driver) Do(ctx context.Context, op providers.Operation) providers.Outcome {
	if err := checkOperation(op); err != nil {
		return providers.RefusedWith(fault.From(err))
	}
	dir := d.machine(op.Environment)
	there, err := dir.Exists()
	if err == nil && !there {
		if op.Verb != events.VerbReserve && op.Verb != events.VerbDestroy {
			return providers.RefusedWith(fault.New(fault.NotFound, "this host has no environment %s", op.Environment))
		}
		err = dir.Make()
	}
	if err != nil {
		return providers.UnknownWith(seen(string(op.Verb), op.Environment, err))
	}
	unlock, err := dir.Lock(ctx)
	if err != nil {
		return providers.UnknownWith(seen("lock", op.Environment, err))
	}
	released := false
	release := func() {
		if !released {
			released = true
			unlock()
		}
	}
	defer release()
	j, err := dir.LoadJournal()
	if err != nil {
		return providers.UnknownWith(seen("journal", op.Environment, err))
	}
	c := &call{d: d, op: op, dir: dir, j: j}
	if out, settled := c.settled(ctx); settled {
		return out
	}
	if err := c.refusal(ctx); err != nil {
		return c.finish(events.Facts{}, err)
	}
	if op.Verb == events.VerbStart {
		return c.startMachine(ctx, release)
	}
	if slices.Contains(announced, op.Verb) {
		if op.Verb == events.VerbDestroy {
			j.Phase = seatdir.PhaseDestroying
		}
		if err := c.record(seatdir.Entry{Standing: seatdir.Begun}); err != nil {
			return providers.UnknownWith(seen("journal", op.Environment, err))
		}
	}
	return c.finish(effects[op.Verb](c, ctx))
}

func checkOperation(op providers.Operation) error {
	if _, err := events.ParseEnvironmentID(string(op.Environment)); err != nil {
		return err
	}
	if _, err := events.ParseOperationID(string(op.ID)); err != nil {
		return err
	}
	if !slices.Contains(events.Verbs, op.Verb) {
		return fault.New(fault.Unimplemented, "the qemu provider has no verb %q (R89)", op.Verb)
	}
	return checkMaterial(op.Material)
}

// settled answers what is already known of this id, by the journal or by its
// visible effect.
func (c *call) settled(ctx context.Context) (providers.Outcome, bool) {
	e := c.j.Find(c.op.ID)
	if e != nil && e.Fingerprint != seatdir.Fingerprint(c.op) {
		return providers.RefusedWith(fault.New(fault.Conflict, "operation %s was already used for another %s", c.op.ID, e.Verb)), true
	}
	w := c.j.Writer
	if c.op.Writer.Instance == w.Instance && c.op.Writer.Epoch < w.Epoch {
		return providers.RefusedWith(fault.New(fault.Expired, "epoch %d of instance %s is over: epoch %d has written here", c.op.Writer.Epoch, w.Instance, w.Epoch)), true
	}
	if e == nil {
		return providers.Outcome{}, false
	}
	switch e.Standing {
	case seatdir.Landed:
		return providers.DoneWith(*e.Facts), true
	case seatdir.Refused:
		return providers.RefusedWith(e.Fault), true
	case seatdir.Excluded:
		return providers.RefusedWith(fault.New(fault.FailedPrecondition, "operation %s was excluded and can never be carried out", c.op.ID)), true
	}
	if f, ok := c.observed(ctx); ok {
		return c.finish(f, nil), true
	}
	return providers.Outcome{}, false
}

// finish records the result, so that it is found again under this id.
func (c *call) finish(f events.Facts, err error) providers.Outcome {
	if err != nil {
		e := seen(string(c.op.Verb), c.op.Environment, err)
		if e.Outcome != fault.NotExecuted {
			return providers.UnknownWith(e)
		}
		if rerr := c.record(seatdir.Entry{Standing: seatdir.Refused, Fault: e}); rerr != nil {
			return providers.UnknownWith(seen("journal", c.op.Environment, rerr))
		}
		return providers.RefusedWith(e)
	}
	if rerr := c.record(seatdir.Entry{Standing: seatdir.Landed, Facts: &f}); rerr != nil {
		return providers.UnknownWith(seen("journal", c.op.Environment, rerr))
	}
	return providers.DoneWith(f)
}

func (c *call) record(e seatdir.Entry) error {
	e.Operation, e.Verb, e.Fingerprint = c.op.ID, c.op.Verb, seatdir.Fingerprint(c.op)
	if w := c.op.Writer; w.Instance != c.j.Writer.Instance || w.Epoch > c.j.Writer.Epoch {
		c.j.Writer = w
	}
	c.j.Set(e)
	return c.dir.SaveJournal(c.j)
}

// refusal is why the state does not allow the verb, or nil. The end is always
// allowed, also of what was never made.
func (c *call) refusal(ctx context.Context) error {
	v, id := c.op.Verb, c.op.Environment
	if v == events.VerbDestroy {
		return nil
	}
	switch c.j.Phase {
	case seatdir.PhaseDestroyed, seatdir.PhaseDestroying:
		return fault.New(fault.Expired, "environment %s was destroyed; its id is never used again", id)
	case seatdir.PhaseNone:
		if v != events.VerbReserve {
			return fault.New(fault.NotFound, "this host has no environment %s", id)
		}
		return nil
	}
	if v == events.VerbReserve {
		return fault.New(fault.AlreadyExists, "environment %s is already reserved by another operation", id)
	}
	if c.op.Ref != "" && c.op.Ref != c.j.Ref {
		return fault.New(fault.Conflict, "environment %s is %s here, not the reference of the operation", id, c.j.Ref)
	}
	if len(c.j.Operations) >= seatdir.MaxOperations && v != events.VerbStop {
		return fault.New(fault.ResourceExhausted, "environment %s has seen %d operations, the most there can be", id, seatdir.MaxOperations)
	}
	if v == events.VerbStop || v == events.VerbDeleteFile || v == events.VerbExport {
		return nil
	}
	f, err := c.d.observe(ctx, c.dir, c.j, true)
	if err != nil {
		return err
	}
	return c.refuseState(f)
}

var allowed = map[events.Verb][]events.ProviderState{
	events.VerbProvision:  {events.StateReserved},
	events.VerbStart:      {events.StateCreating, events.StateStopped},
	events.VerbPause:      {events.StateRunning},
	events.VerbResume:     {events.StatePaused},
	events.VerbExtend:     {events.StateReserved, events.StateCreating, events.StateRunning, events.StatePaused, events.StateStopped},
	events.VerbCheckpoint: {events.StateRunning, events.StatePaused},
}

func (c *call) refuseState(f events.Facts) error {
	v, id := c.op.Verb, c.op.Environment
	never := v == events.VerbStart && c.j.Phase == seatdir.PhaseReserved
	if never || !slices.Contains(allowed[v], f.State) {
		return fault.New(fault.FailedPrecondition, "environment %s can't %s: it is %s", id, v, f.State)
	}
	over := f.ExpiresAt != nil && !c.d.now().Before(*f.ExpiresAt)
	if over && (v == events.VerbStart || v == events.VerbExtend || v == events.VerbProvision) {
		return fault.New(fault.FailedPrecondition, "environment %s can't %s: its lifetime ended at %s", id, v, f.ExpiresAt.Format(time.RFC3339))
	}
	return nil
}
