package sagas

import (
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
	"berth/providers"
)

// turnEvents is when a turn commits what it has, before the commit grows
// beyond what the log takes; one decision adds at most a ledger's length.
const turnEvents = eventlog.MaxEventsPerCommit / 2

// again is the action of a turn that committed in the middle.
const again Kind = "again"

// input is an answer that was not recorded yet: the events that record it on
// the seat as it is now, and what it does to the runner's memory.
type input func(t *turn, s aggregates.Seat) []events.Event

// turn is one decision on one seat: the answers that came in, everything that
// follows from them by the kernel, and the next intent, in one commit.
type turn struct {
	e      *Engine
	ent    *entry
	began  Try // the memory at the beginning; deciding again starts there
	goal   map[events.Boundary]goal.State
	inputs []input
	meta   events.Meta
	now    time.Time
	minted Minted

	// What the last decision left:
	seen    View // what the kernel was asked on
	try     Try
	action  Action
	seat    aggregates.Seat // as it will be
	call    providers.Operation
	settled bool              // nothing is left to do here, ever
	goals   []events.Boundary // of a seat that came from another instance
}

// stepSeat makes one decision on a seat and begins what it leads to.
func (e *Engine) stepSeat(ent *entry) {
	t := e.begin(ent)
	seat, r, err := e.o.Shelf.of(ent.at).decide(e.calls, ent.at, t.meta, true, t.decide)
	if err == nil && r.Sequence != 0 && !e.hook(t.point()+":after") {
		return
	}
	if err != nil {
		e.put(ent, t, err)
		return
	}
	if t.action.Kind == Dispatch && r.Sequence == 0 {
		t.action = Action{Kind: Idle}
	}
	e.keep(ent, t, seat, r)
	e.inherit(ent.at, t.goals)
	e.act(ent, t)
}

func (e *Engine) begin(ent *entry) *turn {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.o.Now()
	t := &turn{e: e, ent: ent, began: ent.try, inputs: ent.inbox, now: now}
	t.began.InFlight, t.began.Observe = ent.inFlight, ent.observe
	t.goal = map[events.Boundary]goal.State{}
	for _, b := range e.about[ent.at] {
		if g := e.entries[b]; g != nil {
			t.goal[b] = g.goal
		}
	}
	t.meta = events.Meta{ID: events.EventID(e.o.IDs.UUID()), Time: events.MillisUTC(now), Caller: e.o.Caller, Writer: e.o.Self}
	return t
}

// decide is asked by the shelf, again if the boundary moved. Beside the commit
// it has no effect that can't be repeated.
func (t *turn) decide(s aggregates.Seat) ([]events.Event, error) {
	t.try, t.action, t.call = t.began, Action{Kind: Idle}, providers.Operation{}
	var es []events.Event
	for _, in := range t.inputs {
		if t.e.lost(s) {
			break // law 3: a stale epoch never writes, not even what it knows
		}
		more := in(t, s)
		es = append(es, more...)
		s.Suppose(&t.meta, more)
	}
	for len(es) < turnEvents {
		t.view(&s)
		a := Next(&t.seen)
		more, goOn := t.follow(&a, s, len(es) > 0)
		es = append(es, more...)
		s.Suppose(&t.meta, more)
		t.action = a
		if !goOn {
			break
		}
		t.action = Action{Kind: again, Step: a.Step}
	}
	t.seat = s
	if len(es) > 0 && !t.e.hook(t.point()+":before") {
		return nil, errDead
	}
	return es, nil
}

// view is what the kernel is asked on.
func (t *turn) view(s *aggregates.Seat) {
	t.seen = View{
		Seat: *s, Goal: t.goal[s.Slot.Goal], Self: t.e.o.Self, Now: t.now,
		Fresh: t.fresh(), Try: t.try, Minted: t.minted,
	}
}

// point names the turn's append to the hook.
func (t *turn) point() string {
	if t.action.Step == "" {
		return "append:answer"
	}
	return "append:" + t.action.Step
}

func (t *turn) fresh() events.OperationID { return events.OperationID(t.e.o.IDs.UUID()) }

// follow takes one action of the kernel as far as the commit goes. It returns
// the events to append, and whether to ask the kernel again; a is changed to
// what is left to do after the commit.
func (t *turn) follow(a *Action, s aggregates.Seat, pending bool) ([]events.Event, bool) {
	switch a.Kind {
	case Append:
		return a.Events, true
	case Mint:
		m, err := t.e.mint(s.Slot.UID, s.Environment.Plan.Provider)
		if err != nil {
			return nil, t.delay(a, err)
		}
		t.minted = m
		return nil, true
	case Clean:
		if pending {
			a.Kind = again // what leads here must be durable first (law 1)
			return nil, false
		}
		if err := t.e.clean(s.Slot.UID); err != nil {
			return nil, t.delay(a, err)
		}
		return []events.Event{events.SlotCleaned{UID: s.Slot.UID}}, true
	case Idle, again:
		return nil, false
	}
	if t.e.holdsBack() || !t.e.place(t.ent, s.Environment.Plan.Provider) {
		*a = Action{Kind: Idle, Step: a.Step}
		return nil, false
	}
	if a.Kind != Dispatch {
		return nil, false
	}
	if check := t.e.o.CheckEpoch; check != nil {
		if err := check(t.e.calls); err != nil {
			return nil, t.delay(a, err)
		}
	}
	return t.intend(a, s)
}

// delay makes the action wait for another try.
func (t *turn) delay(a *Action, err error) bool {
	t.e.o.Logger.Warn("a step has to wait", "boundary", t.ent.at, "step", a.Step, "error", err)
	t.again(0)
	*a = Action{Kind: Idle, Step: a.Step, Wake: t.try.Next}
	return false
}

// intend prepares the call of an intent: everything that can fail fails here,
// before the intent is durable.
func (t *turn) intend(a *Action, s aggregates.Seat) ([]events.Event, bool) {
	last := a.Events[len(a.Events)-1].(events.OperationDispatched)
	after := s.With(t.meta, a.Events...)
	m, err := t.e.material(last.Verb, after)
	if err != nil {
		e := events.EnvironmentRefused{Environment: s.Environment.ID, Fault: fault.From(err).WithOutcome(fault.NotExecuted)}
		a.Kind = again
		return []events.Event{e}, true
	}
	t.call = t.e.operation(after, *after.Environment.Operation)
	t.call.Material = m
	return a.Events, false
}

// again spaces out what is tried again; least is what the provider asked for.
func (t *turn) again(least time.Duration) {
	t.try.Next = t.now.Add(max(Backoff(t.try.Count, t.e.o.Jitter()), least))
	t.try.Count++
}

// put keeps a turn that could not be recorded, answers and all, for later.
func (e *Engine) put(ent *entry, t *turn, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dead {
		return
	}
	wait := Backoff(ent.failures, e.o.Jitter())
	ent.failures++
	e.wakeAt(ent, e.o.Now().Add(wait))
	e.o.Logger.Warn("a decision could not be recorded; trying again", "boundary", ent.at, "step", t.action.Step, "wait", wait, "error", err)
}

// keep takes over what the turn decided.
func (e *Engine) keep(ent *entry, t *turn, seat aggregates.Seat, r events.Record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ent.failures = 0
	ent.inbox = ent.inbox[len(t.inputs):]
	if len(ent.inbox) == 0 {
		ent.inbox = nil
	} else {
		ent.again = true
	}
	ent.try = Try{Count: t.try.Count, Next: t.try.Next}
	if r.Sequence != 0 {
		ent.decided = r.Sequence
		e.touch(ent.at)
	}
	e.remember(ent, seat)
	t.settled = !e.holds(ent, seat)
	if ent.inherits && !t.settled {
		ent.inherits = false
		t.goals = GoalsOf(seat)
	}
}

// holds says that this instance may still have something to do for the seat.
func (e *Engine) holds(ent *entry, s aggregates.Seat) bool {
	if s.Quarantine != nil {
		return true
	}
	if !s.Slot.Held() || e.lost(s) {
		return false
	}
	return ent.kind != events.KindEnvironment || !settled(s)
}

// lost says that the seat is held by another instance or a later epoch.
func (e *Engine) lost(s aggregates.Seat) bool {
	return s.Slot.Held() && (s.Slot.Holder != e.o.Self.Instance || s.Slot.Epoch > e.o.Self.Epoch)
}

func (e *Engine) holdsBack() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining || e.dead
}
