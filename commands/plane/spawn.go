package plane

import (
	"context"
	"encoding/json"
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/internal/connector"
	"berth/providers"
	"berth/sagas"
)

// spawnRequest is what a spawn's goal keeps of its request: all that is
// needed to go on after a crash.
type spawnRequest struct {
	Target events.Target       `json:"target"`
	Input  commands.SpawnInput `json:"input"`
	Intent *intentUse          `json:"intent,omitempty"` // the launch of a delegated intent
	Resume *events.Resume      `json:"resume,omitempty"` // the transcript that the claim was on
	// PersonaText is the persona's text as it was at the acceptance: what is
	// defined otherwise later changes no seat that was asked for before.
	PersonaText string `json:"personaText,omitempty"`
}

// planOf is what was asked for, with what the instance knows of it: the defaults
// of its provider, a transcript, and the persona's text for its connector.
func (p *Plane) planOf(ctx context.Context, r spawnRequest) (events.Plan, error) {
	in, err := p.filled(ctx, r.Input)
	if err != nil {
		return events.Plan{}, err
	}
	plan, err := in.Plan()
	plan.Resume = r.Resume
	if err == nil && r.PersonaText != "" {
		if plan.Connector == nil {
			plan.Connector = &events.Connector{Name: connector.Exec}
		}
		plan.Connector.Persona = r.PersonaText
	}
	return plan, err
}

// filled is the input with the defaults of its provider, if that is registered
// here. What a provider on another machine says is checked like a person's word.
func (p *Plane) filled(ctx context.Context, in commands.SpawnInput) (commands.SpawnInput, error) {
	e, err := p.Providers.Get(in.ProviderName())
	if err != nil || in.Complete() {
		return in, nil
	}
	d, err := providers.DefaultsOf(ctx, e.Driver)
	if err != nil {
		return in, err
	}
	if err := (commands.SpawnInput{Provider: e.Name}).Filled(d).Check(); err != nil {
		return in, fault.New(fault.ContractInvalid, "the defaults of provider %s can't be used: %s", e.Name, fault.From(err).Message).
			WithOutcome(fault.NotExecuted).WithHint("say --image, --cpus and --memory")
	}
	return in.Filled(d), nil
}

// goalSpawn is the goal command of spawns and reserves, as the sagas know it.
const goalSpawn = "spawn"

func spawnTo(t events.Target) func(*Plane, context.Context, *call, commands.SpawnInput) (commands.SpawnResult, error) {
	return func(p *Plane, ctx context.Context, c *call, in commands.SpawnInput) (commands.SpawnResult, error) {
		return p.begin(ctx, c, spawnRequest{Target: t, Input: in})
	}
}

// begin accepts a goal and claims the name for it: goal first, then the uid,
// then the seat, so that what is accepted can always be continued
// (decision 2). A repeated goal id is answered from the log for ever.
func (p *Plane) begin(ctx context.Context, c *call, request spawnRequest) (commands.SpawnResult, error) {
	in := &request.Input
	id, err := goalID(c, in.Goal)
	if err != nil {
		return commands.SpawnResult{}, err
	}
	in.Goal = string(id)
	fp, err := commands.Fingerprint(c.Address, in.Goal, *in)
	if err != nil {
		return commands.SpawnResult{}, err
	}
	b := events.GoalBoundary(c.Caller, id)
	unlock, err := p.goalLock.lock(ctx, b)
	if err != nil {
		return commands.SpawnResult{}, err
	}
	defer unlock()
	g, seq, err := p.accepted(ctx, c, b, fp, func() (goal.State, uint64, error) { return p.acceptSpawn(ctx, c, b, fp, request) })
	if err != nil || c.req.DryRun {
		return commands.SpawnResult{}, err
	}
	// The goal is durable: from here the answer is its acceptance, whatever
	// becomes of it (E10), and the caller's patience does not matter any more.
	g, last := p.carryOn(b, g)
	p.names.forget(g.Allocated.UID)
	return spawnResult(id, g, max(seq, last)), nil
}

// acceptSpawn checks, holds resources and commits the acceptance. A refusal
// here leaves nothing behind (2.6, step 1), except a number that nobody else
// gets then.
func (p *Plane) acceptSpawn(ctx context.Context, c *call, b events.Boundary, fp string, asked spawnRequest) (goal.State, uint64, error) {
	in := asked.Input
	var err error
	if asked.PersonaText, err = p.defined(ctx, c.owner(), in.Persona); err != nil {
		return goal.State{}, 0, err
	}
	now := events.MillisUTC(p.Now())
	if asked.Resume, err = p.resumable(ctx, c, b, in, now); err != nil {
		return goal.State{}, 0, err
	}
	if asked.Input, err = p.filled(ctx, in); err != nil { // kept: what was accepted means the same ever after
		return goal.State{}, 0, err
	}
	plan, err := p.planOf(ctx, asked)
	if err != nil {
		return goal.State{}, 0, err
	}
	if err := p.commanded(plan); err != nil {
		return goal.State{}, 0, err
	}
	request, err := json.Marshal(asked)
	if err != nil {
		return goal.State{}, 0, fault.New(fault.BadRequest, "the input can't be written as JSON")
	}
	ready, err := in.ReadyFor()
	if err != nil {
		return goal.State{}, 0, err
	}
	if err := p.mayBegin(c.owner(), plan); err != nil {
		return goal.State{}, 0, err
	}
	a := p.allocation(c.owner(), events.Alias(in.Name))
	if in.Name != "" { // one that was asked for by name must be free
		if _, _, err := p.claimable(ctx, b, a, plan, asked, now, now.Add(ready)); err != nil {
			return goal.State{}, 0, err
		}
	}
	here := p.holdHere(ctx, a.UID, plan, in.Needs)
	if here != nil {
		if c.Target != commands.Any || asked.Resume != nil {
			return goal.State{}, 0, here // this instance was asked for, or has the transcript, and no other
		}
		if err := p.offerable(here, plan, in.Needs); err != nil {
			return goal.State{}, 0, err
		}
	}
	if in.Name == "" {
		if err := p.name(ctx, c, b, in.Base(), &a); err != nil {
			p.release(a.UID)
			return goal.State{}, 0, err
		}
	}
	accepted := events.GoalAccepted{Command: goalSpawn, Fingerprint: fp, Request: request, Holder: p.Self.Instance, Ready: now.Add(ready), Allocated: a}
	accept := func(g goal.State) ([]events.Event, error) {
		if here != nil {
			return g.Offer(accepted, scrub(fault.From(here).Message), now)
		}
		return g.Accept(accepted)
	}
	if err := p.consume(ctx, c, b, fp, in, now); err != nil {
		p.release(a.UID)
		p.names.forget(a.UID)
		return goal.State{}, 0, err
	}
	if c.req.DryRun {
		p.release(a.UID)
		return goal.State{}, 0, p.draftSpawn(ctx, c, b, accept, here == nil, func() (aggregates.Seat, []events.Event, error) {
			return p.claimable(ctx, b, a, plan, asked, now, accepted.Ready)
		})
	}
	meta := p.meta(c, c.req.ID, fp, "")
	meta.Time = now
	g, r, err := p.Shelf.DecideGoal(ctx, b, meta, accept)
	if err != nil || g.Allocated.UID != a.UID {
		p.release(a.UID) // refused, or the same id was accepted meanwhile
		p.names.forget(a.UID)
	}
	return g, r.Sequence, err
}

// allocation is a fresh identity of a name.
func (p *Plane) allocation(owner events.Owner, name events.Alias) events.Allocation {
	return events.Allocation{Name: name, Owner: owner, Actor: events.Actor(name), UID: events.UID(p.IDs.Token()), Environment: events.EnvironmentID(p.IDs.UUID())}
}

// claimable is the seat of a name as it is, and what would claim it; or why it
// can't be claimed.
func (p *Plane) claimable(ctx context.Context, b events.Boundary, a events.Allocation, plan events.Plan, request spawnRequest, now, ready time.Time) (aggregates.Seat, []events.Event, error) {
	seat, err := p.Shelf.Seat(ctx, a.Owner, a.Name)
	if err != nil {
		return seat, nil, err
	}
	es, err := p.claimFor(seat, request, p.claimOf(b, a, plan, request.Target, now, ready))
	return seat, es, err
}

// draftSpawn notes what a spawn would append: with its claim, if it is claimed
// here.
func (p *Plane) draftSpawn(ctx context.Context, c *call, b events.Boundary, accept func(goal.State) ([]events.Event, error), here bool, claim func() (aggregates.Seat, []events.Event, error)) error {
	es, err := accept(goal.State{})
	if err != nil {
		return err
	}
	if err := c.draft(b, 0, es); err != nil || !here {
		return err
	}
	a := es[0].(events.GoalAccepted).Allocated
	seat, claimed, err := claim()
	if err != nil {
		return err
	}
	if err := c.draft(events.UIDBoundary(a.UID), 0, []events.Event{p.reservationOf(a)}); err != nil {
		return err
	}
	return c.draft(seat.Boundary(), seat.Sequence, claimed)
}

func (p *Plane) claimOf(b events.Boundary, a events.Allocation, plan events.Plan, target events.Target, accepted, ready time.Time) aggregates.Claim {
	c := aggregates.Claim{
		UID: a.UID, Environment: a.Environment, Activation: events.OperationID("activate-" + string(a.UID)), Goal: b,
		Holder: p.Self.Instance, Plan: p.launched(a, plan), Target: target, Ready: ready,
	}
	if plan.Lifetime > 0 {
		deadline := events.MillisUTC(accepted.Add(plan.Lifetime))
		c.Deadline = &deadline
	}
	return c
}

func (p *Plane) reservationOf(a events.Allocation) events.UIDReserved {
	return events.UIDReserved{UID: a.UID, Owner: a.Owner, Actor: a.Actor, MintedBy: p.Self.Instance}
}

// claim reserves the uid and takes the name of a spawn that was accepted. It
// may be repeated at any time: what is done is not done again. A name that was
// lost to another ends the goal as failed, and one that was not claimed by the
// readiness deadline ends it as expired.
func (p *Plane) claim(ctx context.Context, b events.Boundary, g goal.State) (goal.State, uint64, error) {
	a := g.Allocated
	lost := false // whether the claim is stored is not known: its place stays held until a later try knows
	defer func() {
		if !lost {
			p.release(a.UID) // which leaves what was claimed
		}
	}()
	switch {
	case g.State == events.GoalStateCancelling:
		return p.cancelUnmade(ctx, b, g)
	case !p.Now().Before(g.Ready):
		return p.endUnmade(ctx, b, g, sagas.Expire(g))
	case !p.admitted(a.UID):
		// Not the first try. What was claimed, and is in the fold, must not be
		// admitted again: it may have taken the last place.
		seat, err := p.Shelf.Seat(ctx, a.Owner, a.Name)
		if err != nil {
			return g, 0, err
		}
		if _, done, err := seat.Commands.Seen(claimID(a.UID), g.Fingerprint); done || err != nil {
			return g, seat.Sequence, err
		}
	}
	var request spawnRequest
	if err := json.Unmarshal(g.Request, &request); err != nil {
		return p.endGoal(ctx, b, events.GoalFailed, fault.New(fault.Internal, "the goal's request can't be read"))
	}
	plan, err := p.planOf(ctx, request)
	switch {
	case err != nil && !final(err):
		return g, 0, err // an offer that was taken: its provider does not say its defaults now
	case err != nil:
		return p.endGoal(ctx, b, events.GoalFailed, fault.From(err))
	}
	if err := p.beginnable(ctx, plan); err != nil {
		return p.endGoal(ctx, b, events.GoalFailed, fault.From(err))
	}
	if err := p.admit(ctx, a.UID, plan, events.HostCapacity{}); err != nil {
		if fault.CodeOf(err) == fault.Unavailable {
			return g, 0, err
		}
		return p.endGoal(ctx, b, events.GoalFailed, fault.From(err))
	}
	if err := p.reserveUID(ctx, b, g); err != nil {
		if fault.CodeOf(err) == fault.Conflict {
			return p.endGoal(ctx, b, events.GoalFailed, fault.From(err))
		}
		return g, 0, err
	}
	seen, err := p.take(ctx, b, g, plan, request)
	lost = err != nil && fault.From(err).Outcome == fault.Unknown
	switch {
	case err == nil:
		return g, seen, nil
	case request.Input.Name == "" && nameLost(err):
		return p.rename(ctx, b, g, request.Input.Base(), fault.From(err).Message)
	case final(err):
		return p.endGoal(ctx, b, events.GoalFailed, fault.From(err))
	}
	return g, 0, err
}

// claimID is the one command id of a uid's claim.
func claimID(uid events.UID) events.CommandID { return events.CommandID("claim-" + string(uid)) }

// take claims the seat, unless that was done before.
func (p *Plane) take(ctx context.Context, b events.Boundary, g goal.State, plan events.Plan, request spawnRequest) (uint64, error) {
	a := g.Allocated
	// Of one uid there is one claim: the id tells a claim that was made, and
	// whose life has ended meanwhile, from one that was not.
	meta := p.goalMeta(b, claimID(a.UID), g.Fingerprint, "")
	claim := p.claimOf(b, a, plan, request.Target, g.AcceptedAt, g.Ready)
	seat, r, err := p.Shelf.DecideSeat(ctx, a.Owner, a.Name, meta, func(s aggregates.Seat) ([]events.Event, error) {
		if _, done, err := s.Commands.Seen(meta.Command, meta.Fingerprint); done || err != nil {
			return nil, err
		}
		return p.claimFor(s, request, claim)
	})
	if err != nil {
		return 0, err
	}
	p.claimed(a.UID, max(r.Sequence, seat.Sequence))
	return max(r.Sequence, seat.Sequence), nil
}

// reserveUID makes the create-only reservation of the uid. One that stands
// for the same actor and instance is ours, of an earlier attempt.
func (p *Plane) reserveUID(ctx context.Context, b events.Boundary, g goal.State) error {
	want := p.reservationOf(g.Allocated)
	at := events.UIDBoundary(g.Allocated.UID)
	meta := p.goalMeta(b, "", "", "")
	_, err := p.Log.Commit(ctx, events.Commit{Boundary: at, Meta: meta, Events: []events.Event{want}})
	if err == nil || fault.CodeOf(err) != fault.Conflict {
		return err
	}
	rs, err := p.Log.Load(ctx, at, 0)
	if err != nil {
		return err
	}
	for _, r := range rs {
		for _, e := range r.Events {
			if e == events.Event(want) {
				return nil
			}
		}
	}
	return fault.New(fault.Conflict, "lifecycle uid %s is reserved by another", g.Allocated.UID)
}

// final says that asking again can't change a refusal.
func final(err error) bool {
	e := fault.From(err)
	return e.Outcome == fault.NotExecuted && e.Code != fault.Conflict && e.Code != fault.ResourceExhausted && e.Code != fault.Unavailable && e.Code != fault.DeadlineExceeded && e.Code != fault.Cancelled
}

func spawnResult(id events.GoalID, g goal.State, sequence uint64) commands.SpawnResult {
	a := g.Allocated
	return commands.SpawnResult{
		Name: a.Name, Owner: a.Owner, Actor: a.Actor, UID: a.UID, GoalID: id, Fingerprint: g.Fingerprint, Environment: a.Environment,
		State: g.State, ReadyBy: rfc3339(g.Ready), ReadinessDeadlineMs: g.Ready.Sub(g.AcceptedAt).Milliseconds(), InstanceID: g.Holder, Sequence: sequence, Fault: g.Fault,
	}
}
