package sagas

import (
	"context"
	"slices"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/events"
	"berth/events/fault"
)

// continueLimit bounds one try to take an accepted goal further.
const continueLimit = askLimit

// absorbGoal folds a goal's record into what the seats' decisions see of it.
// Engine.mu is held.
func (e *Engine) absorbGoal(ent *entry, r events.Record) {
	if r.Sequence <= ent.goalSeq || r.Broken != nil || ent.goal.State == goal.None && r.Previous != 0 {
		return // its beginning is loaded by its turn
	}
	for _, ev := range r.Events {
		ent.goal = ent.goal.Apply(r.Meta, ev)
	}
	ent.goalSeq = r.Sequence
	e.bind(ent)
	if seat := e.entries[ent.seat]; seat != nil && ent.goal.State == events.GoalStateCancelling {
		e.enqueue(seat)
	}
}

// bind lists the goal under the seat that it is about. Engine.mu is held.
func (e *Engine) bind(ent *entry) {
	a := ent.goal.Allocated
	at := events.SeatBoundary(a.Owner, a.Name)
	if ent.goal.State == goal.None || ent.seat == at {
		return
	}
	e.unbind(ent) // it went on under another name
	ent.seat = at
	if !slices.Contains(e.about[ent.seat], ent.at) {
		e.about[ent.seat] = append(e.about[ent.seat], ent.at)
	}
}

// stepGoal records what the goal's seat says of it.
func (e *Engine) stepGoal(ent *entry) {
	g, seq, err := e.o.Shelf.goals.cached(e.calls, ent.at)
	var seat aggregates.Seat
	if err == nil && g.Broken == nil {
		seat, err = e.seatOf(g.State)
	}
	now := e.o.Now()
	meta := events.Meta{ID: events.EventID(e.o.IDs.UUID()), Time: events.MillisUTC(now), Caller: e.o.Caller, Writer: e.o.Self}
	var r events.Record
	if err == nil && g.Broken == nil {
		g, r, err = e.o.Shelf.goals.decide(e.calls, ent.at, meta, true, func(g goalPage) ([]events.Event, error) {
			if g.Broken != nil || !e.answers(g.State, seat) {
				return nil, nil
			}
			var es []events.Event
			if e.o.Continue == nil && Unclaimed(g.State, seat, now) {
				es = Expire(g.State)
			}
			if len(es) == 0 {
				es = NextGoal(g.State, seat, ent.at, now)
			}
			if len(es) > 0 && !e.hook("append:goal:before") {
				return nil, errDead
			}
			return es, nil
		})
	}
	if err == nil && r.Sequence != 0 && !e.hook("append:goal:after") {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.dead:
	case err != nil:
		ent.failures++
		e.wakeAt(ent, e.o.Now().Add(Backoff(ent.failures-1, e.o.Jitter())))
		e.o.Logger.Warn("a goal could not be recorded; trying again", "boundary", ent.at, "error", err)
	default:
		e.keepGoal(ent, g, max(seq, r.Sequence), seat)
	}
}

// keepGoal takes over what the goal's turn found. Engine.mu is held.
func (e *Engine) keepGoal(ent *entry, g goalPage, seq uint64, seat aggregates.Seat) {
	ent.failures = 0
	if seq > ent.goalSeq {
		cancelled := ent.goal.State != g.State.State && g.State.State == events.GoalStateCancelling
		ent.goal, ent.goalSeq = g.State, seq
		e.bind(ent)
		if s := e.entries[ent.seat]; s != nil && cancelled {
			e.enqueue(s)
		}
	}
	s := g.State
	over := s.State.Terminal() && (s.State != events.GoalUncertain || s.Settled != nil || ended(s, seat))
	if g.Broken != nil || s.State == goal.None || !e.answers(s, seat) || over {
		e.forget(ent)
		return
	}
	if s.State.Terminal() {
		return
	}
	at := s.Ready
	if (ent.resume && unmade(s, seat) || Unclaimed(s, seat, e.o.Now())) && e.o.Continue != nil {
		e.resume(ent, s)
		if at.IsZero() || ent.try.Next.Before(at) {
			at = ent.try.Next
		}
	}
	if at.After(e.o.Now()) {
		e.wakeAt(ent, at)
	}
}

func (e *Engine) answers(g goal.State, s aggregates.Seat) bool {
	return Answers(e.o.Self.Instance, g, s)
}

// Answers says that an instance ends the goal: it accepted it, or it holds
// (or was the last to hold) the seat that the goal is about, whose holder may
// be dead (decision 11). Where both do, the first terminal wins.
func Answers(self events.InstanceID, g goal.State, s aggregates.Seat) bool {
	return g.Holder == self || s.Slot.Holder == self && means(g, s)
}

// GoalsOf are the goals that a seat names.
func GoalsOf(s aggregates.Seat) []events.Boundary {
	env := s.Environment
	out := []events.Boundary{s.Slot.Goal}
	if env.Operation != nil {
		out = append(out, env.Operation.Goal)
	}
	for _, o := range env.Queue {
		out = append(out, o.Goal)
	}
	for _, o := range env.Done {
		out = append(out, o.Goal)
	}
	for _, t := range slices.Concat(s.Turns.Pending, s.Turns.Ended) {
		out = append(out, t.Goal)
	}
	return slices.DeleteFunc(out, func(b events.Boundary) bool { return b == "" })
}

// inherit takes up the goals of a seat that came from another instance: those
// that it names, and those that are accepted and not yet on it.
func (e *Engine) inherit(seat events.Boundary, named []events.Boundary) {
	if named == nil {
		return
	}
	if e.o.About != nil {
		named = append(named, e.o.About(seat)...)
	}
	for _, b := range named {
		e.Resume(b)
	}
}

// resume has an accepted goal continued whose effect is not on its seat yet.
// Engine.mu is held.
func (e *Engine) resume(ent *entry, g goal.State) {
	if ent.inFlight || e.draining || e.o.Now().Before(ent.try.Next) {
		return
	}
	e.mu.Unlock()
	defer e.mu.Lock()
	e.launch(ent, continueLimit, func(ctx context.Context) input {
		if err := e.o.Continue(ctx, ent.at, g); err != nil {
			e.o.Logger.Warn("an accepted goal could not be continued; trying again", "boundary", ent.at, "error", err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		ent.try.Next = e.o.Now().Add(Backoff(ent.try.Count, e.o.Jitter()))
		ent.try.Count++
		e.wakeAt(ent, ent.try.Next)
		return nil
	})
}

// bound says that the goal's effect is on the seat.
func bound(g goal.State, s aggregates.Seat) bool {
	if g.Allocated.Operation == "" {
		return s.Slot.UID == g.Allocated.UID
	}
	if g.Command == goal.CommandTurn {
		_, ok := s.Turns.Find(g.Allocated.Operation)
		return ok
	}
	_, ok := s.Environment.Find(g.Allocated.Operation)
	return ok
}

// unmade says that something of the acceptance of a goal, or of a cancel that
// its seat is to be told of, may be left to do.
func unmade(g goal.State, s aggregates.Seat) bool {
	return !bound(g, s) || g.Command == goal.CommandTurn && g.State == events.GoalStateCancelling
}

// means says that the seat is the one that the goal means, not a later life
// of its name.
func means(g goal.State, s aggregates.Seat) bool {
	if g.Allocated.Operation == "" {
		return s.Slot.UID == g.Allocated.UID
	}
	return s.Environment.ID == g.Allocated.Environment
}

// ended says that nothing more will be learnt of an uncertain goal: what it
// was about is over.
func ended(g goal.State, s aggregates.Seat) bool {
	return !means(g, s) || !s.Slot.Held()
}

// seatOf is the seat of a goal, as its lifecycle left it if the name has been
// claimed again since.
func (e *Engine) seatOf(g goal.State) (aggregates.Seat, error) {
	if g.State == goal.None {
		return aggregates.Seat{}, nil
	}
	b := events.SeatBoundary(g.Allocated.Owner, g.Allocated.Name)
	s, _, err := e.o.Shelf.seats.cached(e.calls, b)
	if err != nil || means(g, s) || s.Slot.ClaimedAt.Before(events.MillisUTC(g.AcceptedAt)) {
		return s, err
	}
	rs, err := e.o.Log.Load(e.calls, b, 0)
	if err != nil {
		return s, fault.From(err)
	}
	last, then := s, aggregates.NewSeat(b)
	for _, r := range rs {
		if then = then.Apply(r); means(g, then) {
			last = then
		}
	}
	return last, nil
}
