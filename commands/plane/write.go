package plane

import (
	"context"
	"time"

	"berth/aggregates"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
)

// decision is what a write decides on a seat. It depends on the seat alone:
// it is asked again when the seat has moved.
type decision func(aggregates.Seat) ([]events.Event, error)

// write makes one decision on a seat, once for its command id: a repeated id
// is answered with what was answered then, another input under it is a
// conflict (decision 5). op is the operation id of the commit, if it has one.
func (p *Plane) write(ctx context.Context, c *call, on commands.Named, in any, op events.OperationID, decide decision) (commands.WriteResult, error) {
	seat, r, err := p.decided(ctx, c, on, in, op, decide)
	if err != nil || c.req.DryRun {
		return commands.WriteResult{}, err
	}
	return answer(seat, r), nil
}

// decided is write with the seat right after the commit, and its record.
func (p *Plane) decided(ctx context.Context, c *call, on commands.Named, in any, op events.OperationID, decide decision) (aggregates.Seat, events.Record, error) {
	w, err := p.writeOf(c, on, in)
	if err != nil {
		return aggregates.Seat{}, events.Record{}, err
	}
	f := w.once(on.UID, decide)
	if c.req.DryRun {
		return aggregates.Seat{}, events.Record{}, p.draftWrite(ctx, c, w, f)
	}
	seat, r, err := p.Shelf.DecideSeat(ctx, c.owner(), w.alias, p.meta(c, c.req.ID, w.fingerprint, op), f)
	if r.Sequence != 0 {
		p.Poke(r.Boundary)
	}
	switch {
	case err != nil:
		return seat, r, err
	case w.earlier != nil:
		return p.seatAt(ctx, seat.Boundary(), w.earlier.Sequence)
	case seat.Sequence != r.Sequence:
		return p.seatAt(ctx, seat.Boundary(), r.Sequence)
	}
	return seat, r, nil
}

// writing is one write on its way: its id, and an earlier answer if found.
type writing struct {
	id          events.CommandID
	alias       events.Alias
	fingerprint string
	earlier     *aggregates.CommandEntry
}

func (p *Plane) writeOf(c *call, on commands.Named, in any) (*writing, error) {
	fp, err := c.fingerprint(in)
	if err != nil {
		return nil, err
	}
	return &writing{id: c.req.ID, alias: events.Alias(on.Name), fingerprint: fp}, nil
}

// once wraps a decision: nothing for an id that was carried out, and for one
// that changes nothing a note that it was answered, so that a repeat of it can
// never do something to a later life of the name.
func (w *writing) once(uid string, decide decision) decision {
	return func(s aggregates.Seat) ([]events.Event, error) {
		w.earlier = nil
		entry, done, err := s.Commands.Seen(w.id, w.fingerprint)
		switch {
		case err != nil:
			return nil, err
		case done:
			w.earlier = &entry
			return nil, nil
		}
		if err := isCurrent(s, uid); err != nil {
			return nil, err
		}
		es, err := decide(s)
		if err == nil && len(es) == 0 {
			es = []events.Event{events.CommandAnswered{Command: w.id, Fingerprint: w.fingerprint}}
		}
		return es, err
	}
}

func (p *Plane) draftWrite(ctx context.Context, c *call, w *writing, f decision) error {
	seat, err := p.Shelf.Seat(ctx, c.owner(), w.alias)
	if err != nil {
		return err
	}
	es, err := f(seat)
	if err != nil || len(es) == 0 {
		return err
	}
	return c.draft(seat.Boundary(), seat.Sequence, es)
}

// answered is the answer that was given at a sequence, from the log.
func (p *Plane) answered(ctx context.Context, b events.Boundary, sequence uint64) (commands.WriteResult, error) {
	seat, r, err := p.seatAt(ctx, b, sequence)
	if err != nil {
		return commands.WriteResult{}, err
	}
	return answer(seat, r), nil
}

// seatAt is the seat as the record of that sequence left it, and the record.
func (p *Plane) seatAt(ctx context.Context, b events.Boundary, sequence uint64) (aggregates.Seat, events.Record, error) {
	seat := aggregates.NewSeat(b)
	r, err := p.recordAt(ctx, b, sequence, func(r events.Record) { seat = seat.Apply(r) })
	return seat, r, err
}

// recordAt is the record by which a command was carried out; seen gets each of
// its boundary up to that.
func (p *Plane) recordAt(ctx context.Context, b events.Boundary, sequence uint64, seen func(events.Record)) (events.Record, error) {
	rs, err := p.Log.Load(ctx, b, 0)
	if err != nil {
		return events.Record{}, fault.New(fault.Unavailable, "the command was carried out at sequence %d, but its answer can't be read now", sequence).
			WithOutcome(fault.Executed).WithHint("ask again with the same command id")
	}
	for _, r := range rs {
		if r.Sequence > sequence {
			break
		}
		if seen(r); r.Sequence == sequence {
			return r, nil
		}
	}
	return events.Record{}, fault.New(fault.Internal, "the command was carried out at sequence %d, which is not there", sequence).WithOutcome(fault.Executed)
}

// answer is what the seat says right after a commit: a function of the log.
func answer(s aggregates.Seat, r events.Record) commands.WriteResult {
	out := commands.WriteResult{
		Name: s.Alias, Owner: s.Owner, UID: s.Slot.UID, Environment: s.Environment.ID, Status: s.Status(), Operation: r.Meta.Operation,
		Changed: true, Command: r.Meta.Command, Fingerprint: r.Meta.Fingerprint, Sequence: r.Sequence,
	}
	for _, e := range r.Events {
		switch e := e.(type) {
		case events.OperationPlanned:
			out.Operation, out.Verb = e.Operation, e.Verb
			if e.Arguments.ExtendTo != nil {
				out.Deadline = rfc3339(*e.Arguments.ExtendTo)
			}
		case events.CommandAnswered:
			out.Changed, out.Operation = false, ""
		}
	}
	return out
}

// advance is provision and start: the same life, asked for in parts.
func advance(t events.Target) func(*Plane, context.Context, *call, commands.SeatInput) (commands.WriteResult, error) {
	return func(p *Plane, ctx context.Context, c *call, in commands.SeatInput) (commands.WriteResult, error) {
		return p.write(ctx, c, in.Named, in, "", func(s aggregates.Seat) ([]events.Event, error) { return s.Advance(t) })
	}
}

// queue is pause and resume: one operation, queued behind what is open.
func queue(v events.Verb) func(*Plane, context.Context, *call, commands.SeatInput) (commands.WriteResult, error) {
	return func(p *Plane, ctx context.Context, c *call, in commands.SeatInput) (commands.WriteResult, error) {
		op := events.OperationID(p.IDs.UUID())
		return p.write(ctx, c, in.Named, in, op, func(s aggregates.Seat) ([]events.Event, error) {
			return s.Plan(events.OperationPlanned{Operation: op, Verb: v}, p.Now())
		})
	}
}

func (p *Plane) extend(ctx context.Context, c *call, in commands.ExtendInput) (commands.WriteResult, error) {
	op := events.OperationID(p.IDs.UUID())
	return p.write(ctx, c, in.Named, in, op, func(s aggregates.Seat) ([]events.Event, error) {
		to, err := until(s, in, p.Now())
		if err != nil {
			return nil, err
		}
		if now := p.Now(); to.Sub(now) > commands.MaxLifetime {
			return nil, fault.New(fault.BadRequest, "by: %s would live until %s, longer than %s from now", s.Alias, rfc3339(to), commands.MaxLifetime).WithDetail(commands.DetailField, "field", "by")
		}
		return s.Plan(events.OperationPlanned{Operation: op, Verb: events.VerbExtend, Arguments: events.Arguments{ExtendTo: &to}}, p.Now())
	})
}

// until is the deadline that is asked for. By counts from what was asked for
// before, so that two extensions by half an hour are one by an hour; a name
// without a deadline counts from now, and is refused by the decision.
func until(s aggregates.Seat, in commands.ExtendInput, now time.Time) (time.Time, error) {
	if in.Until != "" {
		return commands.ParseTime("until", in.Until)
	}
	by, err := in.Growth()
	if at := latest(s.Environment); at != nil {
		now = *at
	}
	return events.MillisUTC(now.Add(by)), err
}

func (p *Plane) retire(ctx context.Context, c *call, in commands.RetireInput) (commands.WriteResult, error) {
	grace, err := in.GraceFor()
	if err != nil {
		return commands.WriteResult{}, err
	}
	out, err := p.write(ctx, c, in.Named, in, "", func(s aggregates.Seat) ([]events.Event, error) {
		return s.Retire(events.UID(in.UID), "retired", grace)
	})
	if err == nil && !c.req.DryRun {
		out.Operation = aggregates.RetirementID(out.UID)
	}
	return out, err
}
