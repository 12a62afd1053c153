package sim

import (
	"strings"
	"time"

	"berth/aggregates/goal"
	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
	"berth/providers"
	"berth/sagas"
)

// turnEvents is where a turn commits what it has, as in the engine.
const turnEvents = eventlog.MaxEventsPerCommit / 2

const again sagas.Kind = "again"

// turn is one decision on one seat: the answers that came in, what follows
// from them by the kernel, and the next intent, in one commit.
type turn struct {
	m      *manager
	e      *entry
	meta   events.Meta
	now    time.Time
	inputs []input
	minted sagas.Minted
	over   bool // the epoch is over

	try    sagas.Try
	action sagas.Action
	seat   seatState
	call   providers.Operation
}

// step makes one decision and begins what it leads to.
func (m *manager) step(e *entry) {
	if !m.works() {
		return
	}
	t := &m.s.turn // one at a time, and large
	*t = turn{m: m, e: e, meta: m.meta(), now: m.clock(), inputs: e.inbox}
	_, r, err := m.decide(e.at, t.meta, t.decide)
	switch {
	case !m.works():
	case t.over:
		m.s.say("%s finds that it is over", m)
		m.dead = true
	case err != nil:
		e.failures++
		m.after(sagas.Backoff(e.failures-1, m.s.rng.Float64()), func() { m.step(e) })
	default:
		e.failures, e.inbox, e.try = 0, nil, t.try
		if r.Sequence != 0 {
			e.decided = r.Sequence
			m.touch(e.at)
		} else if t.action.Kind == sagas.Dispatch {
			t.action = sagas.Action{Kind: sagas.Idle}
		}
		m.act(e, t)
		m.forget(e, t)
	}
}

// forget drops a seat that is not this host's any more, as the engine does.
func (m *manager) forget(e *entry, t *turn) {
	if s := &t.seat.Slot; (!s.Held() || t.lost(&t.seat)) && !e.inFlight && len(e.inbox) == 0 && m.seats[e.at] == e {
		e.wake++
		delete(m.seats, e.at)
	}
}

func (t *turn) decide(s seatState) ([]events.Event, error) {
	t.try, t.action, t.call = t.e.try, sagas.Action{Kind: sagas.Idle}, providers.Operation{}
	var es []events.Event
	for _, in := range t.inputs {
		if t.lost(&s) {
			break // law 3: a stale epoch never writes, not even what it knows
		}
		more := in(t, s)
		es = append(es, more...)
		s.Suppose(&t.meta, more)
	}
	for rounds := 0; len(es) < turnEvents; rounds++ {
		if rounds > 64 {
			t.m.s.broke("%s: the kernel does not come to rest", t.e.at)
			return nil, errFell
		}
		t.view(&s)
		a := t.m.s.k.Next(&t.m.s.seen)
		more, goOn := t.follow(&a, &s, len(es) > 0)
		es = append(es, more...)
		s.Suppose(&t.meta, more)
		t.action = a
		if !goOn {
			break
		}
		t.action = sagas.Action{Kind: again}
	}
	t.seat = s
	return es, nil
}

func (t *turn) lost(s *seatState) bool {
	return s.Slot.Held() && (s.Slot.Holder != t.m.host.id || s.Slot.Epoch > t.m.epoch)
}

func (t *turn) view(s *seatState) {
	v := &t.m.s.seen
	v.Seat, v.Self, v.Now, v.Fresh, v.Try, v.Minted = *s, t.m.writer(), t.now, t.m.fresh(), t.try, t.minted
	v.Try.InFlight = t.e.inFlight
	v.Goal = goal.State{}
	if g := t.m.goals[s.Slot.Goal]; g != nil {
		v.Goal = g.state
	}
}

// follow takes one action as far as the commit goes, as the engine's turn.
func (t *turn) follow(a *sagas.Action, s *seatState, pending bool) ([]events.Event, bool) {
	switch a.Kind {
	case sagas.Append:
		return a.Events, true
	case sagas.Mint:
		t.minted = sagas.Minted{ID: events.CredentialID(t.m.s.ids.Token()), Holder: "U" + strings.ToUpper(t.m.s.ids.Token())}
		t.m.host.staged[s.Slot.UID] = true
		return nil, true
	case sagas.Clean:
		if pending {
			a.Kind = again
			return nil, false
		}
		delete(t.m.host.staged, s.Slot.UID)
		return []events.Event{events.SlotCleaned{UID: s.Slot.UID}}, true
	case sagas.Dispatch:
		if t.m.s.books.epochs[t.m.host.id] != t.m.epoch {
			t.over = true
			*a = sagas.Action{Kind: sagas.Idle}
			return nil, false
		}
		return t.intend(a, *s)
	}
	return nil, false
}

// intend prepares the call: a credential whose bytes are not on this host ends
// the life, before the intent is durable.
func (t *turn) intend(a *sagas.Action, s seatState) ([]events.Event, bool) {
	last := a.Events[len(a.Events)-1].(events.OperationDispatched)
	after := s.With(t.meta, a.Events...)
	needs := last.Verb == events.VerbProvision || last.Verb == events.VerbStart
	if needs && len(after.Head.Ledger) > 0 && !t.m.host.staged[s.Slot.UID] {
		a.Kind = again
		why := fault.New(fault.FailedPrecondition, "the staged credential can't be read").WithOutcome(fault.NotExecuted)
		return []events.Event{events.EnvironmentRefused{Environment: s.Environment.ID, Fault: why}}, true
	}
	if op := after.Environment.Operation; op == nil || op.ID != last.Operation {
		t.m.s.broke("%s: the tables do not take the intent of %s %s", t.e.at, last.Verb, last.Operation)
		*a = sagas.Action{Kind: sagas.Idle}
		return nil, false
	}
	t.call = t.m.operation(after)
	if needs {
		t.call.Material = secret(s.Slot.UID)
	}
	return a.Events, false
}

func (m *manager) operation(s seatState) providers.Operation {
	e := s.Environment
	o := e.Operation
	return providers.Operation{ID: o.ID, Environment: e.ID, Alias: s.Alias, Verb: o.Verb, Arguments: o.Arguments, Plan: e.Plan, Ref: e.Ref,
		Writer: m.writer(), Deadline: o.Deadline, Expires: e.Deadline}
}

// again spaces out what is tried again.
func (t *turn) again() {
	t.try.Next = t.now.Add(sagas.Backoff(t.try.Count, t.m.s.rng.Float64()))
	t.try.Count++
}

// rest sets the wake time; a later one replaces it.
func (m *manager) rest(e *entry, at time.Time) {
	e.wake++
	if at.IsZero() {
		return
	}
	n := e.wake
	m.s.put(at.Add(-m.offset), m, func() {
		if e.wake == n {
			m.step(e)
		}
	})
}
