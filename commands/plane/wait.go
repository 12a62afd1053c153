package plane

import (
	"context"
	"slices"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

// wait answers as soon as what is waited for is so, or when the time is over,
// which is not an error: the client asks again.
func (p *Plane) wait(ctx context.Context, c *call, in commands.WaitInput) (commands.WaitResult, error) {
	ctx, cancel := context.WithTimeout(ctx, in.WaitFor())
	defer cancel()
	var out commands.WaitResult
	var look func(v *projections.Views) bool
	if in.Goal != "" {
		b := events.GoalBoundary(c.Caller, events.GoalID(in.Goal))
		// One that ended long ago is only in the log, and there it answers at once.
		g, seq, err := p.Shelf.Goal(ctx, b)
		switch {
		case over(err):
			return out, nil
		case err != nil:
			return out, err
		case g.State == goal.None:
			return out, noGoal(events.GoalID(in.Goal))
		case g.State.Terminal():
			view := goalView(events.GoalID(in.Goal), g, seq)
			return commands.WaitResult{Met: true, Goal: &view, AsOf: seq}, nil
		}
		look = func(v *projections.Views) bool { return lookGoal(v, b, in, &out) }
	} else {
		// The fold must have what was acknowledged before this request: what is
		// waited for may be what was asked for just now.
		seat, err := p.Shelf.Seat(ctx, c.owner(), events.Alias(in.Name))
		if err == nil {
			err = p.Views.WaitFor(ctx, seat.Sequence)
		}
		if err != nil && !over(err) {
			return out, err
		}
		look = func(v *projections.Views) bool {
			return v.Sequence() >= seat.Sequence && lookName(v, c.owner(), in, &out)
		}
	}
	err := p.Views.Until(ctx, func(v *projections.Views) bool {
		out.AsOf = v.Sequence()
		out.Met = look(v)
		return out.Met
	})
	if err != nil && !over(err) {
		return out, err
	}
	return out, nil
}

// over says that err is only the end of the wait itself: its time was over, or
// the manager stops.
func over(err error) bool {
	return slices.Contains([]fault.Code{fault.DeadlineExceeded, fault.Cancelled}, fault.CodeOf(err))
}

func lookGoal(v *projections.Views, b events.Boundary, in commands.WaitInput, out *commands.WaitResult) bool {
	g, ok := v.Goal(b)
	if !ok {
		return false // accepted, and not folded yet
	}
	view := goalView(events.GoalID(in.Goal), g, v.Sequence())
	out.Goal = &view
	return g.State.Terminal()
}

func lookName(v *projections.Views, owner events.Owner, in commands.WaitInput, out *commands.WaitResult) bool {
	alias := events.Alias(in.Name)
	seat, held := v.Seat(owner, alias)
	mine := held && (in.UID == "" || seat.Slot.UID == events.UID(in.UID))
	out.Status, out.Operation, out.Deadline = aggregates.StatusNone, nil, ""
	switch {
	case mine:
		out.Status = seat.Status()
	default:
		out.Status = ended(v, owner, alias, events.UID(in.UID))
	}
	if in.Operation == "" {
		return slices.Contains(in.Until, string(out.Status))
	}
	op, ok := seat.Environment.Outcome(events.OperationID(in.Operation))
	if !mine || !ok {
		// Gone with its life, or done so long ago that the journal dropped it.
		return true
	}
	if d := seat.Environment.Deadline; d != nil {
		out.Deadline = rfc3339(*d)
	}
	out.Operation = &projections.OperationView{ID: events.OperationID(in.Operation), Verb: op.Verb, State: op.Phase, At: op.At.UnixMilli(), Stuck: op.Stuck, Fault: halfway(seat, events.OperationID(in.Operation), op)}
	return op.Phase != environment.Planned && !op.Open() || slices.Contains(in.Until, string(out.Status))
}

// halfway is the fault of what was waited for. Of an extension whose first
// steps were done and a later one was not, it says how far it came: something
// was executed (R29).
func halfway(seat aggregates.Seat, id events.OperationID, last environment.Operation) *fault.Error {
	env := seat.Environment
	first, ok := env.Find(id)
	failed := last.Phase == environment.Refused || last.Phase == environment.Excluded
	if !ok || !failed || last.ID == id || !first.Succeeded() || env.Deadline == nil {
		return last.Fault
	}
	why := "it was proved that this never will be"
	if last.Fault != nil {
		why = last.Fault.Message
	}
	return fault.New(fault.FailedPrecondition, "%s was extended only until %s; the next step was not done: %s", seat.Alias, rfc3339(*env.Deadline), why).
		WithOutcome(fault.Executed).WithHint("ask again for the rest")
}

// ended is the status of a life that is over: the newest of the name, or that
// of the uid.
func ended(v *projections.Views, owner events.Owner, alias events.Alias, uid events.UID) aggregates.Status {
	for _, r := range v.RetiredOf(owner, alias, 0) {
		if uid == "" || r.UID == uid {
			return r.Row().Status
		}
	}
	return aggregates.StatusNone
}
