package sagas

import (
	"context"
	"slices"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// Limits of one reading call to a provider.
const (
	probeLimit  = time.Minute
	askLimit    = 30 * time.Second
	acceptLimit = time.Hour
)

// act begins what the turn decided.
func (e *Engine) act(ent *entry, t *turn) {
	if t.settled {
		e.disown(t.seat)
		e.mu.Lock()
		defer e.mu.Unlock()
		if !ent.inFlight && len(ent.inbox) == 0 {
			e.forget(ent)
		}
		return
	}
	p, err := e.o.Drivers.Get(t.seat.Environment.Plan.Provider)
	a := t.action
	switch a.Kind {
	case Idle:
		e.rest(ent, t, err == nil && p.Watcher == nil)
		return
	case again:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.enqueue(ent)
		ent.again = true
		return
	case Probe:
		e.launch(ent, probeLimit, func(ctx context.Context) input { return e.probe(ctx, p, err, t.seat) })
		return
	}
	if err != nil {
		e.missing(ent, err)
		return
	}
	switch a.Kind {
	case Dispatch:
		limit := t.call.Deadline.Sub(t.now)
		e.launch(ent, limit, func(ctx context.Context) input { return e.call(ctx, ent, p, t.seat.Head.UID, t.call) })
	case Reconcile, Exclude:
		op := e.operation(t.seat, *t.seat.Environment.Operation)
		e.launch(ent, askLimit, func(ctx context.Context) input { return e.ask(ctx, p, a.Kind, op) })
	case Observe:
		e.look(ent, p, t)
	case Accept:
		op, _ := t.seat.Environment.Find(a.Operation)
		e.launch(ent, acceptLimit, func(ctx context.Context) input { return e.accept(ctx, p, t.seat, op) })
	}
}

// disown removes what this host keeps for a life that was written off: its
// slot is free without the row that cleans, and a credential must not outlive
// its revocation (decision 13).
func (e *Engine) disown(s aggregates.Seat) {
	if !s.Environment.WrittenOff || s.Slot.UID == "" {
		return
	}
	if err := e.clean(s.Slot.UID); err != nil {
		e.o.Logger.Error("what was kept for a written-off life is still there; remove it", "seat", s.Boundary(), "error", err)
	}
}

// rest sets the next wake time.
func (e *Engine) rest(ent *entry, t *turn, poll bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := t.action.Wake
	if living(always)(&View{Seat: t.seat}) {
		if poll && ent.nextPoll.IsZero() {
			ent.nextPoll = e.pollFrom(t.now)
		}
		if next := ent.nextPoll; !next.IsZero() && (at.IsZero() || next.Before(at)) {
			at = next
		}
	}
	e.wakeAt(ent, at)
}

// pollFrom is when an environment is looked at again though nothing was heard.
func (e *Engine) pollFrom(now time.Time) time.Time {
	return now.Add(e.o.Poll/2 + time.Duration(e.o.Jitter()*float64(e.o.Poll)))
}

// missing waits for a provider that is not registered in this process: what it
// holds is neither asked nor given up.
func (e *Engine) missing(ent *entry, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.o.Logger.Error("the provider of an environment is not there", "boundary", ent.at, "error", err)
	e.wakeAt(ent, e.o.Now().Add(e.o.Poll))
}

// operation is a journaled operation as a driver is told of it.
func (e *Engine) operation(s aggregates.Seat, o environment.Operation) providers.Operation {
	return providers.Operation{
		ID: o.ID, Environment: s.Environment.ID, Alias: s.Alias, Verb: o.Verb, Arguments: o.Arguments, Plan: s.Environment.Plan,
		Ref: s.Environment.Ref, Writer: e.o.Self, Deadline: o.Deadline, Expires: s.Environment.Deadline,
	}
}

// call is the one dispatch of a journaled operation of a lifecycle.
func (e *Engine) call(ctx context.Context, ent *entry, p providers.Entry, uid events.UID, op providers.Operation) input {
	if !e.hook("call:" + string(op.Verb) + ":before") {
		return nil
	}
	out := providers.Call(ctx, p.Driver, op, func(op providers.Operation, out providers.Outcome) {
		e.post(ent, answered(op, out), false) // scenario 6
	})
	e.dropHandOff(uid, op)
	if !e.hook("call:" + string(op.Verb) + ":after") {
		return nil
	}
	return answered(op, out)
}

// answered records the answer of a call, also one that comes late.
func answered(op providers.Operation, out providers.Outcome) input {
	return func(t *turn, s aggregates.Seat) []events.Event {
		if s.Environment.ID != op.Environment || s.Environment.WrittenOff {
			t.e.redirect(t.ent, op.Environment, answered(op, out))
			return nil
		}
		es := Outcome(s, op.ID, out, t.fresh())
		if len(es) == 0 {
			return nil
		}
		t.try.Next = time.Time{}
		switch {
		case out.Kind == providers.Unknown:
			t.try.Count = 0
			t.again(0)
			t.try.Count = 0 // the first question is still to come
		case out.Kind == providers.Refused && repeats(op.Verb):
			t.again(retryAfter(out.Fault))
		case op.Verb == events.VerbStop && stillRuns(s.With(t.meta, es...)):
			t.again(0)
		default:
			t.try.Count = 0
		}
		return es
	}
}

// repeats says that the kernel asks for the verb again until it is done.
func repeats(v events.Verb) bool {
	switch v {
	case events.VerbReserve, events.VerbProvision, events.VerbStart, events.VerbStop, events.VerbDestroy:
		return true
	}
	return false
}

// redirect hands an answer on to the boundary of its environment, if it was
// written off meanwhile (decision 13).
func (e *Engine) redirect(from *entry, id events.EnvironmentID, in input) {
	e.mu.Lock()
	defer e.mu.Unlock()
	to := e.entries[events.EnvironmentBoundary(id)]
	if to != nil && to != from {
		to.inbox = append(to.inbox, in)
		e.enqueue(to)
	}
}

// ask reconciles or excludes one operation id.
func (e *Engine) ask(ctx context.Context, p providers.Entry, k Kind, op providers.Operation) input {
	if !e.hook("ask:" + string(k) + ":before") {
		return nil
	}
	var f providers.Finding
	if k == Exclude {
		f = p.Driver.Exclude(ctx, op)
	} else {
		f = p.Driver.Reconcile(ctx, op)
	}
	if !e.hook("ask:" + string(k) + ":after") {
		return nil
	}
	return func(t *turn, s aggregates.Seat) []events.Event {
		es := Found(s, op.ID, f, t.fresh())
		switch {
		case f.Verdict == providers.Excluded && len(es) > 0:
			t.try.Count = s.Environment.Excluded
			t.again(0)
		case len(es) > 0:
			t.try.Count, t.try.Next = 0, time.Time{}
		case s.Environment.Operation != nil && s.Environment.Operation.ID == op.ID:
			t.again(retryAfter(f.Fault))
		}
		return es
	}
}

// probe describes the image and preflights the plan.
func (e *Engine) probe(ctx context.Context, p providers.Entry, missing error, s aggregates.Seat) input {
	plan := s.Environment.Plan
	var image events.ImageDescription
	var pre providers.Preflight
	host, err := events.HostFacts{}, missing
	if err == nil {
		host, err = e.host(ctx, p)
	}
	if err == nil && plan.Delegated {
		err = p.Delegable(ctx)
	}
	if err == nil {
		image, err = p.Driver.DescribeImage(ctx, plan.Image)
	}
	if err == nil {
		pre, err = p.Driver.Preflight(ctx, plan)
	}
	if source, ok := e.o.Bearers[plan.Provider]; ok && err == nil {
		pre.Checks = append(slices.Clip(pre.Checks), bearerCheck(p.Driver, plan, source))
	}
	return func(t *turn, s aggregates.Seat) []events.Event {
		if !s.Environment.ProbedAt.IsZero() || s.Environment.Refusal != nil || !s.Slot.Held() {
			return nil
		}
		switch why := fault.From(err); {
		case err == nil:
			t.try.Count, t.try.Next = 0, time.Time{}
			return Probed(s, image, pre, host)
		case final(why):
			return NotProbed(s, why.WithOutcome(fault.NotExecuted))
		default:
			t.again(retryAfter(why))
		}
		return nil
	}
}

// bearerCheck is the line of a preflight about the manager's own bearer source:
// one that the guest could not reach refuses the life before anything is
// reserved (R51).
func bearerCheck(d providers.Driver, plan events.Plan, source events.BearerSource) events.Check {
	c := events.Check{Name: "bearer-source", OK: true, Detail: string(source.Kind)}
	if err := providers.ExposeBearer(d, plan, source); err != nil {
		c.OK, c.Detail = false, fault.From(err).Message
	}
	return c
}

// final says that asking the same again gives the same refusal.
func final(e *fault.Error) bool {
	switch e.Code {
	case fault.BadRequest, fault.Unimplemented, fault.FailedPrecondition, fault.NotFound, fault.PermissionDenied, fault.Expired:
		return true
	}
	return false
}

// hostAge is how long host facts are used before they are probed again.
const hostAge = 10 * time.Minute

func (e *Engine) host(ctx context.Context, p providers.Entry) (events.HostFacts, error) {
	type kept struct {
		facts events.HostFacts
		at    time.Time
	}
	now := e.o.Now()
	if k, ok := e.hosts.Load(p.Name); ok && now.Sub(k.(kept).at) < hostAge {
		return k.(kept).facts, nil
	}
	f, err := p.Driver.HostFacts(ctx)
	if err == nil {
		e.hosts.Store(p.Name, kept{f, now})
	}
	return f, err
}

// look inspects an environment, or adopts it the first time after a start.
func (e *Engine) look(ent *entry, p providers.Entry, t *turn) {
	e.mu.Lock()
	adopt := ent.adopt && p.Adopter != nil
	ent.observe, ent.adopt, ent.nextPoll = false, false, time.Time{}
	e.mu.Unlock()
	env := t.seat.Environment
	e.launch(ent, askLimit, func(ctx context.Context) input {
		f, err := inspect(ctx, p, env, adopt)
		if err != nil {
			e.o.Logger.Info("an environment could not be looked at; trying again", "boundary", ent.at, "error", err)
			e.mu.Lock()
			ent.adopt, ent.nextPoll = ent.adopt || adopt, e.pollFrom(e.o.Now()) // a watcher tells of changes, not of what was missed
			e.mu.Unlock()
		}
		return func(t *turn, s aggregates.Seat) []events.Event {
			if err != nil || s.Environment.ID != env.ID || s.Environment.Operation != nil {
				if settling(&View{Seat: s}) {
					t.again(retryAfter(fault.From(err)))
				}
				return nil
			}
			es := Observed(s, f)
			if settling(&View{Seat: s.With(t.meta, es...)}) {
				t.again(0)
			}
			return es
		}
	})
}

func inspect(ctx context.Context, p providers.Entry, env environment.State, adopt bool) (f events.Facts, err error) {
	if !adopt {
		return p.Driver.Inspect(ctx, env.ID, env.Ref)
	}
	defer func() {
		if r := recover(); r != nil {
			err = panicFault(p.Name, "adopt")
		}
	}()
	f, err = p.Adopter.Adopt(ctx, env.ID, env.Ref, env.Custody)
	if err == nil {
		err = providers.CheckFacts(providers.Operation{Environment: env.ID}, f)
	}
	return f, err
}

func panicFault(provider, verb string) *fault.Error {
	return fault.New(fault.Internal, "provider %s panicked in %s", provider, verb)
}
