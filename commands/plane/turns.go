package plane

import (
	"context"
	"encoding/json"
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/aggregates/turns"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
)

// turnRequest is what the goal of a turn keeps of its request: all that is
// needed to relay it after a crash, and to show it.
type turnRequest struct {
	Payload string `json:"payload"`
	From    string `json:"from,omitempty"`
}

// turn accepts a turn as a goal and relays it to its seat. A goal that is bound
// and could not be relayed yet is unavailable: it goes on by itself, and the
// same request asks for its answer (rules.md 2.6).
func (p *Plane) turn(ctx context.Context, c *call, in commands.TurnInput) (commands.TurnResult, error) {
	var out commands.TurnResult
	id, err := goalID(c, in.Goal)
	if err != nil {
		return out, err
	}
	in.Goal = string(id)
	fp, err := commands.Fingerprint(c.Address, string(id), in)
	if err != nil {
		return out, err
	}
	b := events.GoalBoundary(c.Caller, id)
	unlock, err := p.goalLock.lock(ctx, b)
	if err != nil {
		return out, err
	}
	defer unlock()
	g, seq, err := p.accepted(ctx, c, b, fp, func() (goal.State, uint64, error) { return p.acceptTurn(ctx, c, b, fp, in) })
	if err != nil || c.req.DryRun {
		return out, err
	}
	g, last := p.carryOn(b, g)
	if last == 0 && !g.State.Terminal() {
		return out, fault.New(fault.Unavailable, "turn %s is accepted and not relayed to %s yet", id, g.Allocated.Name).
			WithOutcome(fault.Executed).WithHint("it goes on by itself; ask again with the same goal id")
	}
	a := g.Allocated
	return commands.TurnResult{
		Name: a.Name, Owner: a.Owner, Actor: a.Actor, UID: a.UID, GoalID: id, Fingerprint: g.Fingerprint, State: g.State,
		DeadlineAt: rfc3339(g.Ready), Executor: g.Holder, Sequence: max(seq, last), Fault: g.Fault,
	}, nil
}

func (p *Plane) acceptTurn(ctx context.Context, c *call, b events.Boundary, fp string, in commands.TurnInput) (goal.State, uint64, error) {
	seat, err := p.Shelf.Seat(ctx, c.owner(), events.Alias(in.Name))
	if err == nil {
		err = isCurrent(seat, in.UID)
	}
	if err != nil {
		return goal.State{}, 0, err
	}
	now := events.MillisUTC(p.Now())
	accepted := events.GoalAccepted{
		Command: goal.CommandTurn, Fingerprint: fp, Holder: seat.Slot.Holder, Ready: now.Add(time.Duration(in.DeadlineMs) * time.Millisecond),
		Allocated: events.Allocation{Name: seat.Alias, Owner: seat.Owner, Actor: events.Actor(seat.Alias), UID: seat.Slot.UID, Environment: seat.Environment.ID, Operation: events.OperationID(p.IDs.UUID())},
	}
	relayed, err := seat.Relay(relayOf(b, accepted.Allocated, accepted.Ready, in.HandoffFrom), now)
	if err != nil {
		return goal.State{}, 0, err
	}
	if accepted.Request, err = json.Marshal(turnRequest{in.Payload, in.HandoffFrom}); err != nil {
		return goal.State{}, 0, fault.New(fault.Internal, "the request can't be written as JSON").WithOutcome(fault.NotExecuted)
	}
	if c.req.DryRun {
		if err := c.draft(b, 0, []events.Event{accepted}); err != nil {
			return goal.State{}, 0, err
		}
		return goal.State{}, 0, c.draft(seat.Boundary(), seat.Sequence, relayed)
	}
	g, r, err := p.Shelf.DecideGoal(ctx, b, p.meta(c, c.req.ID, fp, accepted.Allocated.Operation), func(g goal.State) ([]events.Event, error) { return g.Accept(accepted) })
	return g, r.Sequence, err
}

func relayOf(b events.Boundary, a events.Allocation, deadline time.Time, from string) events.TurnRelayed {
	return events.TurnRelayed{UID: a.UID, Turn: a.Operation, Goal: string(b), Deadline: deadline, From: from}
}

// relay queues the turn of an accepted goal at its seat, once, or takes it out
// of the queue if the goal is to end. A refusal now ends the goal: the seat
// moved since it was accepted.
func (p *Plane) relay(ctx context.Context, b events.Boundary, g goal.State) (goal.State, uint64, error) {
	a := g.Allocated
	if g.State == events.GoalStateCancelling {
		_, _, err := p.Shelf.DecideSeat(ctx, a.Owner, a.Name, p.goalMeta(b, "", "", a.Operation), func(s aggregates.Seat) ([]events.Event, error) { return s.CancelTurn(a.Operation), nil })
		if err != nil {
			return g, 0, err
		}
		return p.cancelUnmade(ctx, b, g)
	}
	var req turnRequest
	if err := json.Unmarshal(g.Request, &req); err != nil {
		return p.endGoal(ctx, b, events.GoalFailed, fault.New(fault.Internal, "the goal's request can't be read"))
	}
	meta := p.goalMeta(b, events.CommandID(a.Operation), g.Fingerprint, a.Operation)
	seat, r, err := p.Shelf.DecideSeat(ctx, a.Owner, a.Name, meta, func(s aggregates.Seat) ([]events.Event, error) {
		if _, done, err := s.Commands.Seen(meta.Command, meta.Fingerprint); done || err != nil {
			return nil, err
		}
		return s.Relay(relayOf(b, a, g.Ready, req.From), p.Now())
	})
	switch {
	case err == nil:
		return g, max(r.Sequence, seat.Sequence), nil
	case !p.Now().Before(g.Ready): // nobody relays it any more
		return p.endUnmade(ctx, b, g, g.End(events.GoalFailed, turns.TooLate(a.Name, g.Ready), nil))
	case final(err):
		return p.endGoal(ctx, b, events.GoalFailed, fault.From(err))
	}
	return g, 0, err
}

// self is the seat that asks for itself: its caller is the current lifecycle of
// its name (decision 21).
func (p *Plane) self(ctx context.Context, c *call) (aggregates.Seat, error) {
	seat, err := p.Shelf.Seat(ctx, c.Caller.Owner, events.Alias(c.Caller.Actor))
	if err == nil {
		err = seat.Self(c.Caller.UID)
	}
	return seat, err
}

// turnPending shows the oldest turn that waits. It is read off the seat's own
// boundary and its goal's, so that there is no index to be rebuilt first.
func (p *Plane) turnPending(ctx context.Context, c *call, _ commands.Empty) (commands.TurnPendingResult, error) {
	seat, err := p.self(ctx, c)
	out := commands.TurnPendingResult{Turns: []commands.PendingTurn{}, AsOf: seat.Sequence}
	if err != nil || len(seat.Turns.Pending) == 0 {
		return out, err
	}
	t := seat.Turns.Pending[0]
	if !p.Now().Before(t.Deadline) || len(seat.DropTurns(p.Now())) == len(seat.Turns.Pending) {
		return out, nil // it has ended, and the log does not say so yet
	}
	g, _, err := p.Shelf.Goal(ctx, t.Goal)
	if err != nil {
		return out, err
	}
	var req turnRequest
	if err := json.Unmarshal(g.Request, &req); err != nil {
		return out, fault.New(fault.Unavailable, "the request of turn %s can't be read", t.ID)
	}
	_, id, _ := t.Goal.Goal()
	out.Turns = append(out.Turns, commands.PendingTurn{GoalID: id, Payload: req.Payload, AcceptedAt: rfc3339(g.AcceptedAt), DeadlineAt: rfc3339(t.Deadline)})
	return out, nil
}

// turnYield gives a turn back: the fact is on the seat, where it is raced by
// the deadline, a cancel and the seat's end; the goal follows it.
func (p *Plane) turnYield(ctx context.Context, c *call, in commands.TurnYieldInput) (commands.TurnYieldResult, error) {
	out := commands.TurnYieldResult{GoalID: events.GoalID(in.GoalID), State: events.GoalSucceeded}
	fp, err := commands.Fingerprint(c.Address, in.GoalID, in)
	if err != nil {
		return out, err
	}
	e := events.TurnYielded{Status: in.Status, To: events.Alias(in.To), Note: in.Note}
	decide := func(s aggregates.Seat) ([]events.Event, error) {
		return s.Yield(c.Caller.UID, out.GoalID, e, fp, p.Now())
	}
	owner, alias := c.Caller.Owner, events.Alias(c.Caller.Actor)
	if c.req.DryRun {
		seat, err := p.Shelf.Seat(ctx, owner, alias)
		if err != nil {
			return out, err
		}
		es, err := decide(seat)
		if err != nil || len(es) == 0 {
			return out, err
		}
		return out, c.draft(seat.Boundary(), seat.Sequence, es)
	}
	seat, _, err := p.Shelf.DecideSeat(ctx, owner, alias, p.meta(c, "", fp, ""), decide)
	if fault.CodeOf(err) == fault.NotFound {
		return p.yieldedBefore(ctx, c, out, fp)
	}
	if err != nil {
		return out, err
	}
	p.endTurn(ctx, seat, out.GoalID)
	return out, nil
}

// endTurn tells the goal of a turn that was given back; what fails here the
// engine does.
func (p *Plane) endTurn(ctx context.Context, seat aggregates.Seat, id events.GoalID) {
	t, ok := seat.Turns.Named(id)
	if !ok {
		return
	}
	state, why, result := t.Verdict(seat.Alias)
	_, _, err := p.Shelf.DecideGoal(ctx, t.Goal, p.goalMeta(t.Goal, "", "", ""), func(g goal.State) ([]events.Event, error) { return g.End(state, why, result), nil })
	if err != nil {
		p.Logger.Warn("the goal of a turn that was given back is not ended yet", "goal", t.Goal, "error", events.Scrub(err.Error()))
	}
}

// yieldedBefore answers for a turn that the seat's fold keeps no more, from the
// log, or says that there is none.
func (p *Plane) yieldedBefore(ctx context.Context, c *call, out commands.TurnYieldResult, fp string) (commands.TurnYieldResult, error) {
	b := events.SeatBoundary(c.Caller.Owner, events.Alias(c.Caller.Actor))
	history, err := p.Log.Load(ctx, b, 0)
	if err != nil {
		return out, err
	}
	var last turns.Turn
	seat := aggregates.NewSeat(b)
	for _, r := range history {
		seat = seat.Apply(r)
		if t, ok := seat.Turns.Named(out.GoalID); ok && seat.Turns.UID == c.Caller.UID {
			last = t
		}
	}
	switch {
	case last.Phase == turns.Yielded && last.Fingerprint == fp:
		return out, nil
	case last.Phase != turns.None:
		return out, fault.New(fault.FailedPrecondition, "turn %s has ended: it was %s", out.GoalID, last.Phase)
	}
	if g, _, err := p.Shelf.Goal(ctx, events.GoalBoundary(p.Caller, out.GoalID)); err == nil && g.Command == goal.CommandTurn {
		return out, fault.New(fault.PermissionDenied, "turn %s is not of %s", out.GoalID, c.Caller.Actor)
	}
	return out, fault.New(fault.NotFound, "there is no turn %s of %s", out.GoalID, c.Caller.Actor).WithHint("`berth turn-pending` shows the one that waits")
}

// stop is the seat's own retire.
func (p *Plane) stop(ctx context.Context, c *call, in commands.StopInput) (commands.WriteResult, error) {
	on := commands.RetireInput{Named: commands.Named{Name: string(c.Caller.Actor), UID: string(c.Caller.UID)}, Grace: in.Grace}
	return p.retire(ctx, c, on)
}
