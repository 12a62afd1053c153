package drill

import (
	"container/heap"
	"slices"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// mutate handles a mutation: the id decides first, then the fault, then the
// state.
func (m *Machine) mutate(t time.Time, c Call, r Rule) Answer {
	e := m.place(c)
	o := e.op(c.Operation)
	var a Answer
	switch {
	case o != nil && o.Print != c.fingerprint():
		a.Outcome = providers.RefusedWith(fault.New(fault.Conflict,
			"operation %s was already used for another verb or other arguments", c.Operation))
	case o != nil:
		a.Outcome = o.outcome(e, t)
	case len(e.Ops) >= MaxOperations:
		a.Outcome = providers.RefusedWith(fault.New(fault.ResourceExhausted, "environment %s has had %d operations, the most there can be", e.ID, MaxOperations))
	default:
		o = m.accept(t, e, c, r)
		a.Outcome = o.outcome(e, t)
		if o.Phase == landed || o.Lands != nil {
			a.HostFile = m.hostFile(e, c, r.Fault)
		}
	}
	return m.deliver(a, r, o)
}

// place is the environment of a call; an id that was never seen gets a fence
// that only remembers operation ids until a reserve lands.
func (m *Machine) place(c Call) *env {
	e := m.s.Envs[c.Environment]
	if e == nil {
		e = &env{ID: c.Environment, Alias: c.Alias}
		m.s.Envs[e.ID] = e
		m.bury(e)
	}
	return e
}

// bury remembers a tombstone or fence and forgets the oldest beyond the limit.
func (m *Machine) bury(e *env) {
	m.dead++
	m.s.Graves = append(m.s.Graves, e.ID)
	for len(m.s.Graves) > MaxTombstones {
		delete(m.s.Envs, m.s.Graves[0])
		m.s.Graves = m.s.Graves[1:]
		m.dead--
	}
}

// unbury is for a fence that becomes an environment; it is among the newest.
func (m *Machine) unbury(e *env) {
	for i := len(m.s.Graves) - 1; i >= 0; i-- {
		if m.s.Graves[i] == e.ID {
			m.s.Graves = slices.Delete(m.s.Graves, i, i+1)
			m.dead--
			return
		}
	}
}

// accept makes the record of a new operation id and carries it out as far as
// the fault lets it.
func (m *Machine) accept(t time.Time, e *env, c Call, r Rule) *op {
	o := &op{ID: c.Operation, Print: c.fingerprint(), Verb: c.Verb, Phase: pending, At: t, Call: &c}
	e.Ops = append(e.Ops, o)
	if why := m.turnedAway(e, c, r); why != nil {
		return o.end(refused, t, why)
	}
	if why := m.refusal(t, e, c); why != nil {
		return o.end(refused, t, why)
	}
	e.take(c.Writer)
	delay := time.Duration(r.DelayMs) * time.Millisecond
	switch r.Fault {
	case Unready:
		c.unready = &delay
	case AcceptThenDrop, AcceptThenLateAnswer, ErrorAfterAccept, NeverAnswer, Stuck:
		if delay > 0 || r.Fault == Stuck {
			m.postpone(t, e, o, delay)
			return o
		}
	}
	m.land(e, o, t)
	return o
}

// turnedAway is why a call is refused before its meaning is looked at.
func (m *Machine) turnedAway(e *env, c Call, r Rule) *fault.Error {
	switch {
	case r.Fault == Refuse:
		return fault.New(r.codeOr(fault.FailedPrecondition), "the drill script refuses %s", c.Verb)
	case r.Fault == Throttle:
		return throttled(r)
	case e.stale(c.Writer):
		return fault.New(fault.Expired, "instance %s at epoch %d no longer holds environment %s", c.Writer.Instance, c.Writer.Epoch, e.ID)
	case c.Ref != "" && c.Ref != e.ref():
		return fault.New(fault.NotFound, "the reference is not that of environment %s", e.ID)
	}
	return nil
}

func throttled(r Rule) *fault.Error {
	e := fault.New(r.codeOr(fault.ResourceExhausted), "the drill script throttles this call").
		WithDetail("berth.throttled", "retryAfter", (time.Duration(r.DelayMs) * time.Millisecond).String())
	e.Retryable = true
	return e
}

func (r Rule) codeOr(c fault.Code) fault.Code {
	if r.Code != "" {
		return r.Code
	}
	return c
}

// postpone leaves the operation pending: it lands after the delay, or never
// if that is zero. Provision and start show their intermediate state.
func (m *Machine) postpone(t time.Time, e *env, o *op, delay time.Duration) {
	if delay > 0 {
		at := t.Add(delay)
		o.Lands = &at
		heap.Push(&m.due, due{at: at, env: e.ID, op: o.ID})
	}
	if o.Verb == Verb(events.VerbProvision) || o.Verb == Verb(events.VerbStart) {
		o.Was, e.State = e.State, events.StateCreating
	}
}

// land carries out an operation: the state may have changed since it was
// accepted, and then it is refused after all.
func (m *Machine) land(e *env, o *op, at time.Time) {
	o.back(e)
	c := *o.Call
	if why := m.refusal(at, e, c); why != nil {
		o.end(refused, at, why)
		return
	}
	f := m.effect(at, e, c)
	o.end(landed, at, nil)
	if e.State != events.StateAbsent {
		o.Facts = &f
	}
}

// back restores the state from before a postponed operation.
func (o *op) back(e *env) {
	if o.Was != "" && e.State == events.StateCreating {
		e.State = o.Was
	}
	o.Was = ""
}

func (o *op) end(p phase, at time.Time, why *fault.Error) *op {
	o.Phase, o.At, o.Lands, o.Call, o.Fault = p, at, nil, nil, why
	return o
}

// stale says that the writer was superseded: an epoch lower than one seen of
// the same instance, or one with which it had lost the environment to another.
func (e *env) stale(w events.Writer) bool {
	seen, known := e.Epochs[w.Instance]
	return known && (w.Epoch < seen || w.Instance != e.Holder && w.Epoch == seen)
}

// maxHolders is how many superseded instances are remembered per environment;
// beyond it the lowest of the others is forgotten.
const maxHolders = 16

func (e *env) take(w events.Writer) {
	if w.Instance == "" {
		return
	}
	if e.Epochs == nil {
		e.Epochs = map[events.InstanceID]uint64{}
	}
	e.Holder, e.Epochs[w.Instance] = w.Instance, w.Epoch
	if len(e.Epochs) > maxHolders {
		var drop events.InstanceID
		for i := range e.Epochs {
			if i != e.Holder && (drop == "" || i < drop) {
				drop = i
			}
		}
		delete(e.Epochs, drop)
	}
}

// deliver decides what the caller hears of the answer.
func (m *Machine) deliver(a Answer, r Rule, o *op) Answer {
	lost := func(why string) providers.Outcome {
		return providers.UnknownWith(fault.New(fault.Unavailable, "%s", why))
	}
	a.Delivery = Answered
	switch r.Fault {
	case AcceptThenDrop:
		a.Delivery, a.Outcome = Dropped, lost("the connection to the provider was lost")
	case NeverAnswer:
		a.Delivery, a.Outcome = Never, lost("the provider does not answer")
	case ErrorAfterAccept:
		a.Outcome = providers.UnknownWith(fault.New(r.codeOr(fault.Unavailable), "the provider failed after it had accepted the call"))
	case AcceptThenLateAnswer:
		a.After = time.Duration(r.DelayMs) * time.Millisecond
		if o != nil && o.Phase == pending {
			a.Delivery = Late
		}
	}
	return a
}
