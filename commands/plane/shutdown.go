package plane

import (
	"context"
	"strconv"
	"strings"

	"berth/aggregates"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

// namesTold is how many held names a refusal lists.
const namesTold = 20

// takesWork refuses what would begin something new: while the manager ends,
// and while the host can't take it.
func (p *Plane) takesWork() error {
	if p.stopping.Load() {
		return fault.New(fault.Unavailable, "this manager is stopping").WithOutcome(fault.NotExecuted).WithHint("ask again when it was started anew, or another instance")
	}
	if p.Admit == nil {
		return nil
	}
	return p.Admit()
}

// shutdown ends this instance. From here on no new work is taken in; where
// nothing may be held, that is looked at after it, so that no name is claimed
// between the look and the end. A spawn that was taken in before and claims its
// name later is taken up by the next start, as every other.
func (p *Plane) shutdown(ctx context.Context, c *call, in commands.ShutdownInput) (commands.ShutdownResult, error) {
	out := commands.ShutdownResult{InstanceID: p.Self.Instance, Epoch: p.Self.Epoch}
	switch {
	case p.End == nil:
		return out, fault.New(fault.Unimplemented, "this manager is part of another program, which ends it").WithOutcome(fault.NotExecuted)
	case c.Target == commands.Any:
		return out, fault.New(fault.BadRequest, "say which instance is to end: ask it by its id").WithHint("`berth hosts` lists the instances")
	}
	p.stopping.Store(true)
	held, err := p.held(ctx)
	var left []string
	for _, n := range held {
		if in.Empty && !in.Leaves(n) {
			left = append(left, string(n))
		}
	}
	if err == nil && len(left) > 0 {
		err = fault.New(fault.FailedPrecondition, "instance %s still holds %d names", p.Self.Instance, len(left)).
			WithDetail(commands.DetailSeatsHeld, "held", strconv.Itoa(len(left)), "names", strings.Join(left[:min(len(left), namesTold)], " ")).
			WithHint("retire them first, or let them go on: `berth stop` without --with-seats")
	}
	if err != nil {
		p.stopping.Store(false)
		return out, fault.From(err).WithOutcome(fault.NotExecuted)
	}
	out.Held = len(held)
	p.Logger.Info("a command asked for the end", "caller", c.Caller.String(), "held", out.Held)
	p.End()
	return out, nil
}

// held are the names that this instance holds, from a fold of all that the log
// has now.
func (p *Plane) held(ctx context.Context) ([]events.Alias, error) {
	if err := p.caughtUp(ctx); err != nil {
		return nil, err
	}
	var names []events.Alias
	p.Views.Read(func(v *projections.Views) {
		v.EachSeat(func(s aggregates.Seat) bool {
			if s.Slot.Held() && s.Slot.Holder == p.Self.Instance {
				names = append(names, s.Alias)
			}
			return true
		})
	})
	return names, nil
}

// caughtUp waits until the projections have folded all that the log has now.
func (p *Plane) caughtUp(ctx context.Context) error {
	tip, err := p.Log.Tip(ctx)
	if err != nil {
		return err
	}
	return p.Views.WaitFor(ctx, tip)
}
