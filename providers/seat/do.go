//go:build linux

package seat

import (
	"context"
	"slices"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/kept"
	"berth/providers/process/seatdir"
)

// Call is one mutation under way, with the environment's lock held. A Kind
// changes the journal and leaves saving it to Base.
type Call struct {
	Op  providers.Operation
	Dir seatdir.Dir
	J   *seatdir.Journal
	d   *Base
	was events.Facts // after a pause or a resume; zero for other verbs
}

// effects carry a verb out and return its facts. A fault whose outcome is
// not-executed is a refusal; any other error leaves the outcome unknown.
var effects = map[events.Verb]func(*Call, context.Context) (events.Facts, error){
	events.VerbReserve:    (*Call).reserve,
	events.VerbProvision:  (*Call).provision,
	events.VerbPause:      (*Call).changed,
	events.VerbResume:     (*Call).changed,
	events.VerbExtend:     (*Call).extend,
	events.VerbCheckpoint: (*Call).checkpoint,
	events.VerbExport:     (*Call).export,
	events.VerbDeleteFile: (*Call).deleteFile,
	events.VerbStop:       (*Call).stop,
	events.VerbDestroy:    (*Call).destroy,
}

// announced are the verbs whose effect is many steps: that they began is
// written first. The others are one atomic step, which can be looked at.
var announced = []events.Verb{events.VerbProvision, events.VerbStart, events.VerbCheckpoint, events.VerbExport, events.VerbDestroy}

// Do runs one mutation. The same id again gives the same answer (R27, R86);
// with other arguments it is a conflict; a lower epoch of the same instance
// is refused.
func (d *Base) Do(ctx context.Context, op providers.Operation) providers.Outcome {
	if err := d.checkOperation(op); err != nil {
		return providers.RefusedWith(fault.From(err))
	}
	dir := d.Seat(op.Environment)
	there, err := dir.Exists()
	if err == nil && !there {
		if op.Verb != events.VerbReserve && op.Verb != events.VerbDestroy {
			return providers.RefusedWith(fault.New(fault.NotFound, "this host has no environment %s", op.Environment))
		}
		err = dir.Make()
	}
	if err != nil {
		return providers.UnknownWith(kept.Seen(string(op.Verb), op.Environment, err))
	}
	unlock, err := dir.Lock(ctx)
	if err != nil {
		return providers.UnknownWith(kept.Seen("lock", op.Environment, err))
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
		return providers.UnknownWith(kept.Seen("journal", op.Environment, err))
	}
	c := &Call{d: d, Op: op, Dir: dir, J: j}
	if out, settled := c.settled(ctx); settled {
		return out
	}
	if err := c.refusal(ctx); err != nil {
		return c.finish(events.Facts{}, err)
	}
	switch op.Verb {
	case events.VerbStart:
		return c.start(ctx, release)
	case events.VerbRestore:
		return c.restore(ctx, release)
	}
	if slices.Contains(announced, op.Verb) {
		if op.Verb == events.VerbDestroy {
			j.Phase = seatdir.PhaseDestroying
		}
		if err := c.record(seatdir.Entry{Standing: seatdir.Begun}); err != nil {
			return providers.UnknownWith(kept.Seen("journal", op.Environment, err))
		}
	}
	return c.finish(effects[op.Verb](c, ctx))
}

func (d *Base) checkOperation(op providers.Operation) error {
	if _, err := events.ParseEnvironmentID(string(op.Environment)); err != nil {
		return err
	}
	if _, err := events.ParseOperationID(string(op.ID)); err != nil {
		return err
	}
	if !slices.Contains(events.Verbs, op.Verb) {
		return fault.New(fault.Unimplemented, "the %s provider has no verb %q (R89)", d.kind.Name, op.Verb)
	}
	return checkMaterial(op.Material)
}

// settled answers what is already known of this id, by the journal or by its
// visible effect.
func (c *Call) settled(ctx context.Context) (providers.Outcome, bool) {
	e := c.J.Find(c.Op.ID)
	if e != nil && e.Fingerprint != seatdir.Fingerprint(c.Op) {
		return providers.RefusedWith(fault.New(fault.Conflict, "operation %s was already used for another %s", c.Op.ID, e.Verb)), true
	}
	w := c.J.Writer
	if c.Op.Writer.Instance == w.Instance && c.Op.Writer.Epoch < w.Epoch {
		return providers.RefusedWith(fault.New(fault.Expired, "epoch %d of instance %s is over: epoch %d has written here", c.Op.Writer.Epoch, w.Instance, w.Epoch)), true
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
		return providers.RefusedWith(fault.New(fault.FailedPrecondition, "operation %s was excluded and can never be carried out", c.Op.ID)), true
	}
	if f, ok := c.observed(ctx); ok {
		return c.finish(f, nil), true
	}
	return providers.Outcome{}, false
}

// finish records the result, so that it is found again under this id.
func (c *Call) finish(f events.Facts, err error) providers.Outcome {
	if err != nil {
		e := kept.Seen(string(c.Op.Verb), c.Op.Environment, err)
		if e.Outcome != fault.NotExecuted {
			return providers.UnknownWith(e)
		}
		if rerr := c.record(seatdir.Entry{Standing: seatdir.Refused, Fault: e}); rerr != nil {
			return providers.UnknownWith(kept.Seen("journal", c.Op.Environment, rerr))
		}
		return providers.RefusedWith(e)
	}
	if rerr := c.landed(seatdir.Entry{Standing: seatdir.Landed, Facts: &f}); rerr != nil {
		return providers.UnknownWith(kept.Seen("journal", c.Op.Environment, rerr))
	}
	return providers.DoneWith(f)
}

// passing are the verbs whose effect no power cut survives: their entries
// need not either (seatdir.Dir.Note).
var passing = []events.Verb{events.VerbPause, events.VerbResume}

// landed records a result. A new writer is always written durably: what its
// epoch has fenced off must stay so.
func (c *Call) landed(e seatdir.Entry) error {
	if c.Op.Writer != c.J.Writer || !slices.Contains(passing, c.Op.Verb) {
		return c.record(e)
	}
	return c.Dir.Note(c.J, c.named(e))
}

func (c *Call) named(e seatdir.Entry) seatdir.Entry {
	e.Operation, e.Verb, e.Fingerprint = c.Op.ID, c.Op.Verb, seatdir.Fingerprint(c.Op)
	return e
}

func (c *Call) record(e seatdir.Entry) error {
	e = c.named(e)
	if w := c.Op.Writer; w.Instance != c.J.Writer.Instance || w.Epoch > c.J.Writer.Epoch {
		c.J.Writer = w
	}
	c.J.Set(e)
	return c.Dir.SaveJournal(c.J)
}

// refusal is why the state does not allow the verb, or nil. The end is always
// allowed, also of what was never made, but not of what is another one than is
// meant. A pause and a resume are carried out with the look.
func (c *Call) refusal(ctx context.Context) error {
	v, id := c.Op.Verb, c.Op.Environment
	if ref := c.J.Ref; v != events.VerbReserve && ref != "" && c.Op.Ref != "" && c.Op.Ref != ref {
		return fault.New(fault.Conflict, "environment %s is %s here, not the reference of the operation", id, ref)
	}
	if v == events.VerbDestroy {
		return nil
	}
	switch c.J.Phase {
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
	if len(c.J.Operations) >= seatdir.MaxOperations && v != events.VerbStop {
		return fault.New(fault.ResourceExhausted, "environment %s has seen %d operations, the most there can be", id, seatdir.MaxOperations)
	}
	if v == events.VerbStop || v == events.VerbDeleteFile || v == events.VerbExport {
		return nil
	}
	if t, ok := changes[v]; ok {
		return c.change(ctx, t)
	}
	f, err := c.d.observe(ctx, c.Dir, c.J, true, status)
	if err != nil {
		return err
	}
	return c.refuseState(f)
}

// allowed are the states in which a verb can be carried out; checkpoint is the
// kind's to say.
var allowed = map[events.Verb][]events.ProviderState{
	events.VerbProvision: {events.StateReserved},
	events.VerbStart:     {events.StateCreating, events.StateStopped},
	events.VerbPause:     {events.StateRunning},
	events.VerbResume:    {events.StatePaused},
	events.VerbRestore:   {events.StateRunning, events.StatePaused, events.StateStopped},
	events.VerbExtend:    {events.StateReserved, events.StateCreating, events.StateRunning, events.StatePaused, events.StateStopped},
}

func (c *Call) refuseState(f events.Facts) error {
	v, id := c.Op.Verb, c.Op.Environment
	never := (v == events.VerbStart || v == events.VerbCheckpoint) && c.J.Phase == seatdir.PhaseReserved ||
		v == events.VerbRestore && c.J.Phase != seatdir.PhaseStarted
	states := allowed[v]
	if v == events.VerbCheckpoint {
		states = c.d.kind.Captures
	}
	if never || !slices.Contains(states, f.State) {
		return fault.New(fault.FailedPrecondition, "environment %s can't %s: it is %s", id, v, f.State)
	}
	over := f.ExpiresAt != nil && !c.d.Now().Before(*f.ExpiresAt)
	if over && (v == events.VerbStart || v == events.VerbRestore || v == events.VerbExtend || v == events.VerbProvision) {
		return fault.New(fault.FailedPrecondition, "environment %s can't %s: its lifetime ended at %s", id, v, f.ExpiresAt.Format(time.RFC3339))
	}
	return nil
}
