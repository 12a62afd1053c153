package plane

import (
	"context"
	"slices"
	"sync"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/aggregates/head"
	"berth/aggregates/numbering"
	"berth/events"
	"berth/events/fault"
)

// maxHeld is how many numbers in a row may be held by names that somebody chose.
const maxHeld = 1000

// names keeps requests that are handled at once from trying the same name: a
// base is given a name by one at a time, and a base's name without a number is
// one goal's until that has claimed it. Both are only a hint: what decides is
// the commit of the number and of the claim (law 3).
type names struct {
	turn keyed
	mu   sync.Mutex
	bare map[events.Boundary]events.UID
}

// take gives the base alone to a goal that has not claimed it yet.
func (n *names) take(base events.Boundary, uid events.UID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.bare[base]; ok {
		return false
	}
	n.bare[base] = uid
	return true
}

// forget says that a goal has claimed its name, or never will.
func (n *names) forget(uid events.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for b, u := range n.bare {
		if u == uid {
			delete(n.bare, b)
		}
	}
}

// name gives an allocation a name that is free: the base alone, or the base
// with a number that was never issued. A dry run issues none.
func (p *Plane) name(ctx context.Context, c *call, goal events.Boundary, base events.Alias, a *events.Allocation) error {
	at := events.NumberBoundary(a.Owner, base)
	unlock, err := p.names.turn.lock(ctx, at)
	if err != nil {
		return err
	}
	defer unlock()
	free, err := p.free(ctx, a.Owner, base)
	switch {
	case err != nil:
		return err
	case free && c.req.DryRun, free && p.names.take(at, a.UID):
		a.Name, a.Actor = base, events.Actor(base)
		return nil
	case c.req.DryRun:
		s, seq, err := p.Shelf.Number(ctx, at)
		if err != nil {
			return err
		}
		number, err := p.unheld(ctx, a.Owner, base, s.Next())
		if err != nil {
			return err
		}
		es, err := s.Issue(number, goal)
		if err != nil {
			return err
		}
		a.Name = numbering.Name(base, number)
		a.Actor = events.Actor(a.Name)
		return c.draft(at, seq, es)
	}
	return p.number(ctx, goal, base, a)
}

// number issues the next number of a base and gives an allocation its name.
func (p *Plane) number(ctx context.Context, goal events.Boundary, base events.Alias, a *events.Allocation) error {
	at, ask := events.NumberBoundary(a.Owner, base), uint64(numbering.First)
	for {
		meta := p.goalMeta(goal, "", "", "")
		_, r, err := p.Shelf.DecideNumber(ctx, at, meta, func(s numbering.State) ([]events.Event, error) { return s.Issue(ask, goal) })
		if err != nil {
			return err
		}
		issued := r.Events[0].(events.NumberIssued).Number
		if ask, err = p.unheld(ctx, a.Owner, base, issued); err != nil {
			return err
		}
		if ask == issued {
			a.Name = numbering.Name(base, ask)
			a.Actor = events.Actor(a.Name)
			return nil
		}
	}
}

// unheld is the first number from one on whose name nobody holds.
func (p *Plane) unheld(ctx context.Context, owner events.Owner, base events.Alias, from uint64) (uint64, error) {
	for n := from; n < from+maxHeld; n++ {
		free, err := p.free(ctx, owner, numbering.Name(base, n))
		if free || err != nil {
			return n, err
		}
	}
	return 0, fault.New(fault.ResourceExhausted, "the names %s_%d and %d after it are all held", base, from, maxHeld-1).
		WithOutcome(fault.NotExecuted).WithHint("give the environment a name of its own")
}

func (p *Plane) free(ctx context.Context, owner events.Owner, name events.Alias) (bool, error) {
	seat, err := p.Shelf.Seat(ctx, owner, name)
	return err == nil && seat.Quarantine == nil && !seat.Slot.Held(), err
}

// rename goes on with a goal whose name nobody chose and somebody else took:
// under the next number, with a lifecycle of its own (decision 2).
func (p *Plane) rename(ctx context.Context, b events.Boundary, g goal.State, base events.Alias, reason string) (goal.State, uint64, error) {
	lost := g.Allocated
	next := p.allocation(lost.Owner, "")
	if err := p.number(ctx, b, base, &next); err != nil {
		return g, 0, err
	}
	p.release(lost.UID)
	g, r, err := p.Shelf.DecideGoal(ctx, b, p.goalMeta(b, "", "", ""), func(g goal.State) ([]events.Event, error) {
		return g.Rename(lost.UID, next, reason), nil
	})
	if err != nil || g.Allocated.UID == lost.UID {
		return g, r.Sequence, err
	}
	return p.claim(ctx, b, g)
}

// nameLost says that a claim was refused because of who holds the name.
func nameLost(err error) bool {
	return slices.ContainsFunc(fault.From(err).Details, func(d fault.Detail) bool {
		return d.Kind == aggregates.DetailSlotHeld || d.Kind == head.DetailBlocked
	})
}
