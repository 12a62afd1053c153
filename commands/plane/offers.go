package plane

import (
	"context"
	"encoding/json"
	"time"

	"berth/aggregates/goal"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
	"berth/sagas"
)

// offerRetry is the pause after an offer could not be dealt with.
const offerRetry = 250 * time.Millisecond

// Offers deals with the goals that instances offer to each other, until ctx
// ends (decision 11): it claims what this instance can run, says why of what it
// can't, and expires what nobody claimed in time.
func (p *Plane) Offers(ctx context.Context) error {
	left := map[events.Boundary]bool{} // claimed, and their seats are there: their holders' affair
	for {
		if len(left) > maxTrying {
			clear(left) // they are looked at once more
		}
		var todo []projections.Goal
		var next time.Time
		p.Views.Read(func(v *projections.Views) { _, next = p.offersDue(v.Offered(), left) })
		waiting, cancel := ctx, context.CancelFunc(func() {})
		if !next.IsZero() {
			waiting, cancel = context.WithTimeout(ctx, max(next.Sub(p.Now()), time.Millisecond))
		}
		err := p.Views.Until(waiting, func(v *projections.Views) bool {
			var earlier time.Time
			todo, earlier = p.offersDue(v.Offered(), left)
			return len(todo) > 0 || !earlier.IsZero() && (next.IsZero() || earlier.Before(next)) // to wait anew
		})
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && fault.CodeOf(err) != fault.DeadlineExceeded {
			return err
		}
		for _, g := range todo {
			if err := p.dealWith(ctx, g.Boundary, left); err != nil && !p.rest(ctx, g.Boundary, err) {
				return nil
			}
		}
	}
}

func (p *Plane) rest(ctx context.Context, b events.Boundary, err error) bool {
	p.Logger.Warn("an offered goal could not be dealt with yet", "goal", b, "error", events.Scrub(err.Error()))
	select {
	case <-ctx.Done():
		return false
	case <-time.After(offerRetry):
		return true
	}
}

// offersDue are the offers to deal with now, and when the next one's time comes.
func (p *Plane) offersDue(offered []projections.Goal, left map[events.Boundary]bool) (todo []projections.Goal, next time.Time) {
	now := p.Now()
	for _, g := range offered {
		if left[g.Boundary] || g.State.State == events.GoalStateAccepted && g.Holder == p.Self.Instance {
			continue
		}
		due := g.Until
		if g.State.State == events.GoalStateAccepted {
			due = g.Ready // its claimer may have died
		}
		switch {
		case !now.Before(due), g.State.State == events.GoalStateOffered && !g.DeclinedBy(p.Self.Instance) && len(g.Declined) < goal.MaxDeclines:
			todo = append(todo, g)
		case next.IsZero() || due.Before(next):
			next = due
		}
	}
	return todo, next
}

// dealWith decides on one offer as it now is, and returns when the fold has
// seen that.
func (p *Plane) dealWith(ctx context.Context, b events.Boundary, left map[events.Boundary]bool) error {
	ctx, cancel := context.WithTimeout(ctx, carryFor)
	defer cancel()
	g, _, err := p.Shelf.Goal(ctx, b)
	if err != nil {
		return err
	}
	now := p.Now()
	switch {
	case g.State == events.GoalStateAccepted && g.Holder != p.Self.Instance && !now.Before(g.Ready):
		// The fence of endUnmade makes sure that its claimer makes nothing later.
		ended, _, err := p.endUnmade(ctx, b, g, sagas.Expire(g))
		if err != nil {
			return err
		}
		left[b] = !ended.State.Terminal()
		return p.folded(ctx, b)
	case g.State != events.GoalStateOffered:
		return p.folded(ctx, b)
	case !now.Before(g.Until):
		return p.decideOffer(ctx, b, func(g goal.State) []events.Event { return g.Lapse(now) })
	}
	if err := p.holdOffer(ctx, g); err != nil {
		why := scrub(fault.From(err).Message)
		return p.decideOffer(ctx, b, func(g goal.State) []events.Event { return g.Decline(p.Self.Instance, why) })
	}
	return p.takeOffer(ctx, b, g)
}

// holdOffer holds the resources of an offered spawn, or says why this instance
// can't run it.
func (p *Plane) holdOffer(ctx context.Context, g goal.State) error {
	var request spawnRequest
	if err := json.Unmarshal(g.Request, &request); err != nil {
		return fault.New(fault.Internal, "the goal's request can't be read")
	}
	plan, err := p.planOf(ctx, request)
	if err != nil {
		return err
	}
	if p.Admit != nil {
		if err := p.Admit(); err != nil {
			return err
		}
	}
	return p.holdHere(ctx, g.Allocated.UID, plan, request.Input.Needs)
}

// takeOffer claims an offer whose resources are held, and goes on with it. Of
// several instances one wins the compare-and-append.
func (p *Plane) takeOffer(ctx context.Context, b events.Boundary, g goal.State) error {
	uid := g.Allocated.UID
	g, _, err := p.Shelf.DecideGoal(ctx, b, p.goalMeta(b, "", "", ""), func(g goal.State) ([]events.Event, error) {
		return g.Claim(p.Self.Instance, p.Now()), nil
	})
	switch {
	case err != nil:
		p.release(uid) // if it is stored after all, the engine continues it, and admits it again
		return err
	case g.Holder != p.Self.Instance || g.State.Terminal():
		p.release(uid)
	default:
		p.carryOn(b, g)
	}
	return p.folded(ctx, b)
}

func (p *Plane) decideOffer(ctx context.Context, b events.Boundary, f func(goal.State) []events.Event) error {
	_, _, err := p.Shelf.DecideGoal(ctx, b, p.goalMeta(b, "", "", ""), func(g goal.State) ([]events.Event, error) { return f(g), nil })
	if err != nil {
		return err
	}
	return p.folded(ctx, b)
}

// folded returns when the views have all of a goal that is known here, so that
// it is not dealt with twice.
func (p *Plane) folded(ctx context.Context, b events.Boundary) error {
	_, seq, err := p.Shelf.Goal(ctx, b)
	if err != nil {
		return err
	}
	return p.Views.WaitFor(ctx, seq)
}
