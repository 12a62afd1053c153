package plane

import (
	"context"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/events"
	"berth/events/fault"
)

// effect is what the acceptance of a goal makes on its seat, once: the command
// id that makes it, and how it is known again.
type effect struct {
	command events.CommandID
	stands  func(aggregates.Seat) bool // on the seat as it is
	makes   func(events.Event) bool    // in the seat's history
}

func effectOf(g goal.State) effect {
	a := g.Allocated
	if g.Command == goalSpawn {
		return effect{
			command: claimID(a.UID),
			stands:  func(s aggregates.Seat) bool { return s.Slot.UID == a.UID },
			makes:   func(e events.Event) bool { c, ok := e.(events.SlotClaimed); return ok && c.UID == a.UID },
		}
	}
	if g.Command == goal.CommandTurn {
		return effect{
			command: events.CommandID(a.Operation),
			stands:  func(s aggregates.Seat) bool { _, ok := s.Turns.Find(a.Operation); return ok },
			makes:   func(e events.Event) bool { t, ok := e.(events.TurnRelayed); return ok && t.Turn == a.Operation },
		}
	}
	return effect{
		command: events.CommandID(a.Operation),
		stands:  func(s aggregates.Seat) bool { _, ok := s.Environment.Find(a.Operation); return ok },
		makes: func(e events.Event) bool {
			o, ok := e.(events.OperationPlanned)
			return ok && o.Operation == a.Operation
		},
	}
}

// cancelUnmade ends a cancelled goal of which nothing was made.
func (p *Plane) cancelUnmade(ctx context.Context, b events.Boundary, g goal.State) (goal.State, uint64, error) {
	return p.endUnmade(ctx, b, g, g.End(events.GoalCancelled, fault.New(fault.Cancelled, "the goal was cancelled before anything was made").WithOutcome(fault.NotExecuted), nil))
}

// endUnmade takes a goal to its end if nothing was made of it. Before that it
// answers the command id that would make it on the seat, which is the fence:
// an attempt that is still on its way loses its compare, and none is made
// again. What was made, also in a life that is over, is left to the engine.
func (p *Plane) endUnmade(ctx context.Context, b events.Boundary, g goal.State, end []events.Event) (goal.State, uint64, error) {
	a, made := g.Allocated, effectOf(g)
	meta := p.goalMeta(b, made.command, g.Fingerprint, "")
	seat, r, err := p.Shelf.DecideSeat(ctx, a.Owner, a.Name, meta, func(s aggregates.Seat) ([]events.Event, error) {
		if _, done, err := s.Commands.Seen(made.command, g.Fingerprint); done || err != nil || made.stands(s) {
			return nil, err
		}
		return []events.Event{events.CommandAnswered{Command: made.command, Fingerprint: g.Fingerprint}}, nil
	})
	seq := max(seat.Sequence, r.Sequence)
	if err != nil || made.stands(seat) {
		return g, seq, err
	}
	history, err := p.Log.Load(ctx, seat.Boundary(), 0)
	if err != nil {
		return g, seq, err
	}
	for _, r := range history {
		for _, e := range r.Events {
			if made.makes(e) {
				return g, seq, nil
			}
		}
	}
	ended, r, err := p.Shelf.DecideGoal(ctx, b, p.goalMeta(b, "", "", ""), func(now goal.State) ([]events.Event, error) {
		if now.State.Terminal() {
			return nil, nil
		}
		return end, nil
	})
	return ended, r.Sequence, err
}
