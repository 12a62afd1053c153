package plane

import (
	"context"
	"time"

	"berth/aggregates/goal"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
)

// How a goal that is accepted is continued when a step of that fails.
const (
	carryFor   = 30 * time.Second // one attempt
	againFirst = 250 * time.Millisecond
	againMost  = 15 * time.Second
	maxTrying  = 1024 // goals that are tried again at once; the rest at the next start
)

// goalID is the id of a request's goal: its own, or the request's.
func goalID(c *call, given string) (events.GoalID, error) {
	if given == "" {
		given = string(c.req.ID)
	}
	if given == "" {
		return "", fault.New(fault.BadRequest, "goal: a goal needs an id, its own or that of the request").WithDetail(commands.DetailField, "field", "goal")
	}
	return events.ParseGoalID(given)
}

// accepted is the goal of a request: the one that stands under its id, if that
// is of the same request, or the one that accept makes. A refusal by accept
// does not count if the id was accepted meanwhile, by another instance: what
// refused it may be the goal's own effect.
func (p *Plane) accepted(ctx context.Context, c *call, b events.Boundary, fp string, accept func() (goal.State, uint64, error)) (goal.State, uint64, error) {
	stands := func() (goal.State, uint64, bool, error) {
		g, seq, err := p.Shelf.Goal(ctx, b)
		if err != nil || g.State == goal.None {
			return g, seq, false, err
		}
		_, err = g.Accept(events.GoalAccepted{Fingerprint: fp})
		return g, seq, true, err
	}
	g, seq, ok, err := stands()
	if ok || err != nil {
		return g, seq, err
	}
	g, seq, err = accept()
	if err == nil || c.req.DryRun || fault.From(err).Outcome != fault.NotExecuted {
		return g, seq, err
	}
	if g, seq, ok, again := stands(); ok {
		return g, seq, again
	}
	return g, seq, err
}

// goalMeta is that of a commit that continues a goal, for its caller.
func (p *Plane) goalMeta(b events.Boundary, id events.CommandID, fingerprint string, op events.OperationID) events.Meta {
	caller, _, _ := b.Goal()
	return p.meta(&call{Address: commands.Address{Caller: caller}}, id, fingerprint, op)
}

// carryOn takes an accepted goal as far as acceptance goes, and keeps trying
// behind the request if that fails now. It returns the goal as it then is and
// the last sequence that it knows of it.
func (p *Plane) carryOn(b events.Boundary, g goal.State) (goal.State, uint64) {
	ctx, cancel := context.WithTimeout(p.ctx, carryFor)
	defer cancel()
	next, seq, err := p.step(ctx, b, g)
	if err != nil {
		p.Logger.Warn("an accepted goal could not be continued yet", "goal", b, "error", events.Scrub(err.Error()))
		p.again(b)
		return g, 0
	}
	return next, seq
}

// step does what is left of the acceptance of a goal. A spawn is claimed only
// by the instance that holds it, since its headroom is decided there; an
// operation may be planned by any, and is run by the holder of the seat.
func (p *Plane) step(ctx context.Context, b events.Boundary, g goal.State) (goal.State, uint64, error) {
	switch {
	case g.State == goal.None || g.State.Terminal():
		return g, 0, nil
	case g.Command == goal.CommandTurn:
		return p.relay(ctx, b, g)
	case g.Command != goalSpawn:
		return p.plan(ctx, b, g)
	case g.State == events.GoalStateOffered: // Offers looks after it
		return g, 0, nil
	case g.Holder != p.Self.Instance:
		return g, 0, nil
	}
	return p.claim(ctx, b, g)
}

// Continue goes on with a goal that was accepted and, because of a crash, got
// no seat or no operation. It is idempotent; the engine calls it for every open
// goal that this instance holds. An error is worth a retry.
func (p *Plane) Continue(ctx context.Context, b events.Boundary, g goal.State) error {
	_, _, err := p.step(ctx, b, g)
	return err
}

// reload continues a goal as it now is.
func (p *Plane) reload(ctx context.Context, b events.Boundary) error {
	g, _, err := p.Shelf.Goal(ctx, b)
	if err != nil {
		return err
	}
	return p.Continue(ctx, b, g)
}

// again continues a goal in the background until that succeeds or the plane is
// closed.
func (p *Plane) again(b events.Boundary) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.trying[b] || len(p.trying) >= maxTrying {
		return
	}
	p.trying[b] = true
	p.later.Go(func() {
		defer func() {
			p.mu.Lock()
			delete(p.trying, b)
			p.mu.Unlock()
		}()
		for wait := againFirst; ; wait = min(2*wait, againMost) {
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(wait):
			}
			ctx, cancel := context.WithTimeout(p.ctx, carryFor)
			err := p.reload(ctx, b)
			cancel()
			if err == nil {
				return
			}
		}
	})
}

// endGoal takes the goal's one terminal; if it has one, that stays.
func (p *Plane) endGoal(ctx context.Context, b events.Boundary, state events.GoalState, why *fault.Error) (goal.State, uint64, error) {
	meta := p.goalMeta(b, "", "", "")
	g, r, err := p.Shelf.DecideGoal(ctx, b, meta, func(g goal.State) ([]events.Event, error) { return g.End(state, why, nil), nil })
	return g, r.Sequence, err
}

func (p *Plane) goal(ctx context.Context, c *call, in commands.GoalRef) (commands.GoalResult, error) {
	return p.goalResult(ctx, c.Caller, events.GoalID(in.Goal))
}

// goalResult reads a goal's boundary, which answers for ever.
func (p *Plane) goalResult(ctx context.Context, caller events.Caller, id events.GoalID) (commands.GoalResult, error) {
	g, seq, err := p.Shelf.Goal(ctx, events.GoalBoundary(caller, id))
	switch {
	case err != nil:
		return commands.GoalResult{}, err
	case g.State == goal.None:
		return commands.GoalResult{}, noGoal(id)
	}
	return goalView(id, g, seq), nil
}

func noGoal(id events.GoalID) error {
	return fault.New(fault.NotFound, "there is no goal %s of this caller", id).WithHint("`berth goal ls --all` lists what there is")
}

func goalView(id events.GoalID, g goal.State, seq uint64) commands.GoalResult {
	return commands.GoalResult{
		GoalID: id, Command: g.Command, State: g.State, Ended: g.State.Terminal(), Phase: g.Phase, Allocated: g.Allocated, Fingerprint: g.Fingerprint,
		InstanceID: g.Holder, AcceptedAt: rfc3339(g.AcceptedAt), ReadyBy: rfc3339(g.Ready), OfferedTill: rfc3339(g.Until), Declined: g.Declined, EndedAt: rfc3339(g.EndedAt),
		Fault: g.Fault, Result: g.Result, Settled: g.Settled, AsOf: seq,
	}
}

// goalCancel asks a goal to end. Repeats are harmless; an ended one is
// refused with how it ended (2.6).
func (p *Plane) goalCancel(ctx context.Context, c *call, in commands.GoalCancelInput) (commands.GoalResult, error) {
	id := events.GoalID(in.Goal)
	b := events.GoalBoundary(c.Caller, id)
	mode := in.Mode
	if mode == "" {
		mode = "graceful"
	}
	decide := func(g goal.State) ([]events.Event, error) {
		switch {
		case g.State == goal.None:
			return nil, noGoal(id)
		case g.State.Terminal():
			e := fault.New(fault.FailedPrecondition, "goal %s has ended: %s", id, g.State)
			return nil, e.WithDetail("berth.goal-ended", "goal", string(id), "state", string(g.State), "endedAt", rfc3339(g.EndedAt))
		}
		return g.Cancel(mode)
	}
	if c.req.DryRun {
		g, seq, err := p.Shelf.Goal(ctx, b)
		if err != nil {
			return commands.GoalResult{}, err
		}
		es, err := decide(g)
		if err == nil && len(es) > 0 {
			err = c.draft(b, seq, es)
		}
		return commands.GoalResult{}, err
	}
	fp, err := commands.Fingerprint(c.Address, string(c.req.ID), in)
	if err != nil {
		return commands.GoalResult{}, err
	}
	g, r, err := p.Shelf.DecideGoal(ctx, b, p.meta(c, c.req.ID, fp, ""), decide)
	if err != nil {
		return commands.GoalResult{}, err
	}
	// The goal is cancelling, durably; what follows only makes that quicker.
	if g.Command != goalSpawn && g.Command != goal.CommandTurn {
		if err := p.dropPlanned(ctx, c, g); err != nil {
			p.Logger.Warn("the operation of a cancelled goal stays queued", "goal", b, "error", events.Scrub(err.Error()))
		}
	}
	g, _ = p.carryOn(b, g)
	asOf := r.Sequence
	if asOf == 0 { // it was cancelling already
		if g, asOf, err = p.Shelf.Goal(ctx, b); err != nil {
			return commands.GoalResult{}, err
		}
	}
	return goalView(id, g, asOf), nil
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
