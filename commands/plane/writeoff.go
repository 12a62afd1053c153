package plane

import (
	"context"

	"berth/aggregates"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
)

// maxRounds is how often a write-off is decided again because its seat moved.
const maxRounds = 8

// writeOff frees a name without proof, and opens the environment's own
// boundary in the same atomic publish: neither is ever without the other
// (decision 13).
func (p *Plane) writeOff(ctx context.Context, c *call, in commands.WriteOffInput) (commands.WriteResult, error) {
	w, err := p.writeOf(c, in.Named, in)
	if err != nil {
		return commands.WriteResult{}, err
	}
	var inherited []events.Event
	f := w.once(in.UID, func(s aggregates.Seat) (es []events.Event, err error) {
		es, inherited, err = s.WriteOff(c.Caller, in.Reason)
		return es, err
	})
	seatMeta, envMeta := p.meta(c, c.req.ID, w.fingerprint, ""), p.meta(c, c.req.ID, w.fingerprint, "")
	last := error(fault.New(fault.Conflict, "%s kept moving", in.Name))
	for range maxRounds {
		seat, err := p.Shelf.Seat(ctx, c.owner(), w.alias)
		if err != nil {
			return commands.WriteResult{}, keepUnknown(last, err)
		}
		es, err := f(seat)
		switch {
		case w.earlier != nil:
			return p.answered(ctx, seat.Boundary(), w.earlier.Sequence)
		case err != nil:
			return commands.WriteResult{}, keepUnknown(last, err)
		}
		cs := []events.Commit{
			{Boundary: seat.Boundary(), Expect: seat.Sequence, Meta: seatMeta, Events: es},
			{Boundary: events.EnvironmentBoundary(seat.Environment.ID), Meta: envMeta, Events: inherited},
		}
		if c.req.DryRun {
			if err := c.draft(cs[0].Boundary, cs[0].Expect, cs[0].Events); err != nil {
				return commands.WriteResult{}, err
			}
			return commands.WriteResult{}, c.draft(cs[1].Boundary, 0, cs[1].Events)
		}
		rs, err := p.Log.CommitAll(ctx, cs)
		if err == nil {
			return answer(seat.Apply(rs[0]), rs[0]), nil
		}
		e := fault.From(err)
		if e.Code != fault.Conflict && e.Outcome != fault.Unknown {
			return commands.WriteResult{}, keepUnknown(last, err)
		}
		// A conflict is decided again; of a lost answer the seat tells, by the
		// command's id, whether it was stored.
		last = keepUnknown(last, err)
	}
	return commands.WriteResult{}, last
}

// keepUnknown keeps an unknown outcome over a later refusal: what may have
// been stored was not refused.
func keepUnknown(last, err error) error {
	if fault.From(last).Outcome == fault.Unknown {
		return last
	}
	return err
}
