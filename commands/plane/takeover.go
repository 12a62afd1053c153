package plane

import (
	"context"
	"strings"
	"time"

	"berth/aggregates"
	"berth/aggregates/instance"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

const (
	// maxTakeOver is how many seats one request takes over; the rest is left
	// for the next.
	maxTakeOver = 64
	// inspectFor bounds the look at one environment before its seat is taken.
	inspectFor = 10 * time.Second
)

// takeover is one request to hold the seats of an instance that is gone.
type takeover struct {
	p     *Plane
	c     *call
	from  events.InstanceID
	epoch uint64 // of from, that is proved not to serve
	print string // fingerprint of the request
}

// takeOver has this instance hold the seats of another one that does not serve
// any more (decision 1): an event on each seat, after which an append of the
// other one loses its compare. A seat that can't be reached from here is
// refused and stays where it is.
func (p *Plane) takeOver(ctx context.Context, c *call, in commands.TakeOverInput) (commands.TakeOverResult, error) {
	out := commands.TakeOverResult{From: events.InstanceID(in.Instance), InstanceID: p.Self.Instance, Taken: []commands.TakenSeat{}, Refused: []commands.RefusedSeat{}}
	t := &takeover{p: p, c: c, from: out.From}
	var err error
	if t.print, err = c.fingerprint(in); err != nil {
		return out, err
	}
	if t.epoch, err = p.gone(ctx, t.from, in.Confirmed); err != nil {
		return out, err
	}
	names, err := t.seats(ctx, events.Alias(in.Seat))
	if err != nil {
		return out, err
	}
	out.Left = max(len(names)-maxTakeOver, 0)
	for _, name := range names[:min(len(names), maxTakeOver)] {
		seat, err := t.take(ctx, name)
		if err != nil {
			out.Refused = append(out.Refused, commands.RefusedSeat{Name: name, Fault: fault.From(err)})
			continue
		}
		out.Taken = append(out.Taken, seat)
	}
	if len(out.Taken) == 0 && len(out.Refused) > 0 {
		return out, noneOf(out)
	}
	return out, nil
}

// noneOf is the refusal where nothing was taken over: of one seat its own, of
// several what was said of each. What may have been done is not called refused.
func noneOf(r commands.TakeOverResult) *fault.Error {
	first, told := r.Refused[0].Fault, []string{}
	for _, s := range r.Refused {
		if s.Fault.Outcome == fault.Unknown {
			return s.Fault
		}
		if len(told) < maxTold {
			told = append(told, s.Fault.Message)
		}
	}
	if len(told) == 1 {
		return first
	}
	return fault.New(first.Code, "none of the seats of instance %s can be taken over here: %s", r.From, strings.Join(told, "; ")).WithOutcome(fault.NotExecuted).WithHint("%s", first.Hint)
}

// gone proves that an instance does not serve: it recorded the end of its
// epoch, or nobody answers in its place, twice, the lease of its last check of
// that epoch apart, and an operator says that it is so. It gives the epoch.
func (p *Plane) gone(ctx context.Context, id events.InstanceID, confirmed bool) (uint64, error) {
	if id == p.Self.Instance {
		return 0, fault.New(fault.FailedPrecondition, "instance %s serves: it was the one that got this request", id).
			WithHint("`berth stop` ends an instance in order; --on names the one that is to take over")
	}
	s, _, err := p.Shelf.Instance(ctx, id)
	switch {
	case err != nil:
		return 0, err
	case s.Phase == instance.None:
		return 0, fault.New(fault.NotFound, "no instance %s has registered", id).WithHint("`berth hosts` lists the instances")
	case s.Phase == instance.Stopped:
		return s.Epoch, nil
	}
	if err := p.Silent(ctx, id); err != nil {
		return 0, err
	}
	if !confirmed {
		return 0, fault.New(fault.FailedPrecondition, "instance %s does not answer, but it did not record its end: it may be cut off and go on", id).
			WithHint("make sure that its process has ended or its machine is off, then say so with --yes")
	}
	wait := time.NewTimer(p.Lease)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return 0, fault.Ended(ctx.Err(), "the lease of instance %s was not waited for", id).WithOutcome(fault.NotExecuted)
	}
	return s.Epoch, p.Silent(ctx, id)
}

// seats lists the names that are to be taken over: those that the instance
// holds, and those that this very request has taken already.
func (t *takeover) seats(ctx context.Context, only events.Alias) (out []events.Alias, _ error) {
	if err := t.p.caughtUp(ctx); err != nil {
		return nil, err
	}
	t.p.Views.Read(func(v *projections.Views) {
		if only != "" {
			out = append(out, only) // whatever holds it: the decision says what is wrong
			return
		}
		v.EachSeat(func(s aggregates.Seat) bool {
			if s.Owner == t.c.owner() && (s.Slot.Holder == t.from && s.Slot.Held() || t.took(s)) {
				out = append(out, s.Alias)
			}
			return true
		})
	})
	return out, nil
}

// took says that this request took the seat over before.
func (t *takeover) took(s aggregates.Seat) bool {
	_, done, err := s.Commands.Seen(t.c.req.ID, t.print)
	return err == nil && done && s.Slot.Holder == t.p.Self.Instance
}

// take takes one seat over, once for the request.
func (t *takeover) take(ctx context.Context, name events.Alias) (out commands.TakenSeat, err error) {
	seat, err := t.p.Shelf.Seat(ctx, t.c.owner(), name)
	if err != nil {
		return out, err
	}
	if _, _, err := seat.Commands.Seen(t.c.req.ID, t.print); err != nil {
		return out, err // the id was used for something else, whoever holds the seat now
	}
	if !t.took(seat) {
		if err := t.possible(ctx, seat); err != nil {
			return out, err
		}
	}
	w := &writing{id: t.c.req.ID, alias: name, fingerprint: t.print}
	f := w.once("", func(s aggregates.Seat) ([]events.Event, error) {
		if err := t.held(s); err != nil {
			return nil, err
		}
		return s.TakeOver(t.p.Self.Instance, t.p.Self.Epoch)
	})
	if t.c.req.DryRun {
		err = t.p.draftWrite(ctx, t.c, w, f)
	} else {
		var r events.Record
		seat, r, err = t.p.Shelf.DecideSeat(ctx, t.c.owner(), name, t.p.meta(t.c, t.c.req.ID, t.print, ""), f)
		if out.Sequence = r.Sequence; w.earlier != nil {
			out.Sequence = w.earlier.Sequence
		}
	}
	out.Name, out.UID, out.Environment, out.Provider = name, seat.Slot.UID, seat.Environment.ID, seat.Environment.Plan.Provider
	return out, err
}

// held refuses a seat that the instance does not hold, and a delegated one: it
// is not carried over to another manager (H20).
func (t *takeover) held(s aggregates.Seat) error {
	switch {
	case s.Quarantine != nil:
		return s.Quarantine
	case !s.Slot.Held():
		return fault.New(fault.NotFound, "nobody holds %s", s.Alias)
	case s.Slot.Holder != t.from:
		return fault.New(fault.FailedPrecondition, "%s is held by instance %s, not by %s", s.Alias, s.Slot.Holder, t.from)
	case s.Environment.Plan.Delegated:
		return fault.New(fault.FailedPrecondition, "%s is a delegated seat, which is not carried over to another manager", s.Alias).
			WithHint("start instance %s again with its data directory: it takes the seat up", t.from)
	}
	return nil
}

// possible says why a seat can't be taken over: the instance came back, there is
// no room for it, or its environment can't be reached from here.
func (t *takeover) possible(ctx context.Context, s aggregates.Seat) error {
	if err := t.held(s); err != nil {
		return err
	}
	if err := t.p.room(ctx); err != nil {
		return err
	}
	now, _, err := t.p.Shelf.Instance(ctx, t.from)
	switch {
	case err != nil:
		return err
	case now.Epoch != t.epoch:
		return fault.New(fault.FailedPrecondition, "instance %s has started again, with epoch %d", t.from, now.Epoch)
	}
	provider := s.Environment.Plan.Provider
	if t.p.Bound(provider) {
		return fault.New(fault.FailedPrecondition, "%s can be reached by its own instance only: provider %s keeps it on the host of %s", s.Alias, provider, t.from).
			WithHint("start that instance again there, with its data directory: it takes the environment up")
	}
	e, err := t.p.Providers.Get(provider)
	if err != nil {
		return fault.New(fault.FailedPrecondition, "%s needs provider %s, which this instance does not have", s.Alias, provider).
			WithHint("name an instance that has it with --on: `berth hosts` shows them")
	}
	if s.Environment.Ref != "" {
		ctx, cancel := context.WithTimeout(ctx, inspectFor)
		defer cancel()
		facts, err := e.Driver.Inspect(ctx, s.Environment.ID, s.Environment.Ref)
		switch {
		case fault.CodeOf(err) == fault.NotFound:
		case err != nil:
			return fault.New(fault.Unavailable, "provider %s can't be asked about %s from here: %s", provider, s.Alias, fault.From(err).Message).WithOutcome(fault.NotExecuted)
		case facts.State != events.StateAbsent:
			return nil
		}
	}
	if host := t.p.hostOf(t.from, provider); host == "" || host != t.p.hostOf(t.p.Self.Instance, provider) {
		return fault.New(fault.FailedPrecondition, "provider %s of this instance does not know %s, and it is not shown to be the same as that of %s", provider, s.Alias, t.from).
			WithHint("give this instance the same provider, or name another instance with --on")
	}
	return nil
}

// hostOf is the label of the host behind a provider, as an instance published
// it (R77); empty if it did not.
func (p *Plane) hostOf(id events.InstanceID, provider string) (host string) {
	p.Views.Read(func(v *projections.Views) {
		h, _ := v.Host(id)
		for _, o := range h.Providers {
			if o.Provider == provider {
				host = o.Facts.Host
			}
		}
	})
	return host
}

// room refuses a seat more than the configuration allows, by a fold that has
// what was taken before it.
func (p *Plane) room(ctx context.Context) error {
	if p.MaxSeats == 0 {
		return nil
	}
	if err := p.caughtUp(ctx); err != nil {
		return err
	}
	p.headroom.mu.Lock()
	defer p.headroom.mu.Unlock()
	return p.full()
}
