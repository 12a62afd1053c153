package plane

import (
	"context"
	"strconv"

	"berth/aggregates"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/terminal"
)

// Kinds of details that tell two refusals apart: a seat whose terminal nobody
// can ever reach, and one that does not run now.
const (
	detailNoTerminal = "berth.no-terminal"
	detailNotRunning = "berth.seat-not-running"
)

// terminalOf is the running seat of a name that this instance holds, and the
// terminal behind it. Whatever it refuses, nothing was done.
func (p *Plane) terminalOf(ctx context.Context, c *call, in commands.Named) (aggregates.Seat, providers.Terminal, error) {
	seat, err := p.Shelf.Seat(ctx, c.owner(), events.Alias(in.Name))
	if err != nil {
		return seat, nil, fault.From(err).WithOutcome(fault.NotExecuted)
	}
	switch {
	case !seat.Slot.Held() && seat.Quarantine == nil:
		return seat, nil, seat.Nobody()
	case in.UID != "" && seat.Slot.UID != events.UID(in.UID):
		return seat, nil, seat.Slot.Is(events.UID(in.UID))
	case seat.Slot.Holder != p.Self.Instance:
		return seat, nil, p.elsewhere(in.Name, seat.Slot.Holder)
	}
	provider := seat.Environment.Plan.Provider
	entry, err := p.Providers.Get(provider)
	if err != nil {
		return seat, nil, fault.From(err).WithOutcome(fault.NotExecuted)
	}
	if entry.Terminal == nil {
		return seat, nil, fault.New(fault.Unimplemented, "provider %s has no terminal: %s", provider, entry.Supports(providers.SurfaceTerminal).Reason).
			WithOutcome(fault.NotExecuted).WithDetail(detailNoTerminal, "provider", provider).WithHint("`berth logs %s` shows what it printed", in.Name)
	}
	if s := seat.Status(); s != aggregates.StatusRunning && !(s == aggregates.StatusUncertain && seat.Environment.Ref != "") {
		hint := "`berth inspect %s` shows how it is"
		if s == aggregates.StatusPaused {
			hint = "`berth resume %s` lets it go on"
		}
		return seat, nil, fault.New(fault.FailedPrecondition, "%s is %s: its seat is not running", in.Name, s).
			WithOutcome(fault.NotExecuted).WithDetail(detailNotRunning, "status", string(s)).WithHint(hint, in.Name)
	}
	return seat, entry.Terminal, nil
}

// input types into a seat. An error that comes after the first byte may have
// been taken leaves the outcome unknown, and says how many were.
func (p *Plane) input(ctx context.Context, c *call, in commands.InputInput) (commands.InputResult, error) {
	seat, t, err := p.terminalOf(ctx, c, in.Named)
	if err != nil {
		return commands.InputResult{}, err
	}
	n, err := t.Input(ctx, seat.Environment.ID, seat.Environment.Ref, in.Bytes())
	if err == nil {
		return commands.InputResult{Name: events.Alias(in.Name), UID: seat.Slot.UID, Bytes: n}, nil
	}
	f := fault.From(err)
	switch {
	case f.Outcome != fault.NotExecuted || n > 0:
		return commands.InputResult{}, f.WithOutcome(fault.Unknown).WithDetail("berth.input", "delivered", strconv.Itoa(n))
	case f.Code == fault.FailedPrecondition:
		f = f.WithDetail(detailNotRunning, "status", string(seat.Status()))
	}
	return commands.InputResult{}, f
}

// attach offers a session. Nothing is begun and nothing kept: what makes an
// offer good for one use is the commit that redeems it.
func (p *Plane) attach(ctx context.Context, c *call, in commands.AttachInput) (commands.AttachResult, error) {
	seat, _, err := p.terminalOf(ctx, c, in.Named)
	if err != nil {
		return commands.AttachResult{}, err
	}
	if p.Sign == nil {
		return commands.AttachResult{}, fault.New(fault.Unimplemented, "this manager offers no terminal sessions").WithOutcome(fault.NotExecuted)
	}
	now := p.Now()
	o, err := p.Sign(terminal.Offer{
		Version: terminal.Version, Session: p.IDs.Token() + p.IDs.Token(), Space: p.Space, Instance: p.Self.Instance, Epoch: p.Self.Epoch,
		Caller: c.Caller, Holder: in.Holder, Owner: c.owner(), Name: events.Alias(in.Name), UID: seat.Slot.UID, Environment: seat.Environment.ID,
		ReadOnly: in.ReadOnly, Window: terminal.Window,
		IssuedAt: now.UnixMilli(), RedeemBy: now.Add(terminal.RedeemWithin).UnixMilli(), Expires: now.Add(terminal.MaxSession).UnixMilli(),
	})
	if err != nil {
		return commands.AttachResult{}, fault.New(fault.Internal, "the offer can't be signed").WithOutcome(fault.NotExecuted)
	}
	return commands.AttachResult{Offer: o}, nil
}
