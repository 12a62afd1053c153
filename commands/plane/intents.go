package plane

import (
	"context"
	"encoding/json"

	"berth/aggregates"
	"berth/aggregates/instance"
	"berth/aggregates/intent"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

// intentUse is what the goal of a launch keeps of the request that used its
// intent, so that a continuation is the same use and by no other run (D14).
type intentUse struct {
	Intent  events.GoalID    `json:"intent"`
	Request events.CommandID `json:"request"`
	Epoch   uint64           `json:"epoch"`
}

// intentAdmit lets an instance do one thing once for the caller: in the run that
// it is in by what this one has folded, or in none if it is stopped (D19).
func (p *Plane) intentAdmit(ctx context.Context, c *call, in commands.IntentAdmitInput) (commands.IntentResult, error) {
	var host projections.Host
	found := false
	p.Views.Read(func(v *projections.Views) { host, found = v.Host(events.InstanceID(in.Instance)) })
	if !found {
		return commands.IntentResult{}, fault.New(fault.NotFound, "there is no instance %s", in.Instance).WithHint("`berth hosts` lists them")
	}
	life, err := in.Life()
	if err != nil {
		return commands.IntentResult{}, err
	}
	a := events.IntentAdmitted{Intent: events.GoalID(in.Intent), Kind: events.IntentKind(in.Kind), By: c.Caller, Instance: events.InstanceID(in.Instance), UID: events.UID(in.UID)}
	a.By.Owner = c.owner()
	if host.Phase == instance.Registered {
		a.Epoch = host.Epoch
	}
	if a.Kind == events.IntentLaunch {
		input := *in.Launch
		input.Name, input.Goal = in.Name, in.Intent
		if a.Request, err = json.Marshal(spawnRequest{Target: events.TargetRunning, Input: input}); err != nil {
			return commands.IntentResult{}, fault.New(fault.BadRequest, "the launch can't be written as JSON")
		}
	}
	on := commands.Named{Name: in.Name} // the lifecycle is compared by the decision
	return p.intent(ctx, c, on, a.Intent, in, func(s aggregates.Seat) ([]events.Event, error) {
		now := events.MillisUTC(p.Now())
		a := a
		if a.Kind == events.IntentRetire && a.UID == "" {
			a.UID = s.Slot.UID
		}
		a.ExpiresAt = now.Add(life)
		return s.Admit(a, now)
	})
}

// intents reads them off the name's own boundary: a name that nobody claimed yet
// has some too.
func (p *Plane) intents(ctx context.Context, c *call, in commands.Named) (commands.IntentsResult, error) {
	seat, err := p.Shelf.Seat(ctx, c.owner(), events.Alias(in.Name))
	if err != nil {
		return commands.IntentsResult{}, err
	}
	out := commands.IntentsResult{Items: []projections.Intent{}, AsOf: seat.Sequence}
	for _, i := range seat.Intents {
		if in.UID == "" || events.UID(in.UID) == i.UID {
			out.Items = append(out.Items, projections.IntentOf(i))
		}
	}
	return out, nil
}

// intent makes one decision about an intent and shows how it stands then.
func (p *Plane) intent(ctx context.Context, c *call, on commands.Named, id events.GoalID, in any, decide decision) (commands.IntentResult, error) {
	seat, r, err := p.decided(ctx, c, on, in, "", decide)
	if err != nil || c.req.DryRun {
		return commands.IntentResult{}, err
	}
	return intentResult(seat, id, r.Sequence), nil
}

func intentResult(s aggregates.Seat, id events.GoalID, sequence uint64) commands.IntentResult {
	i, _ := s.Intent(id)
	return commands.IntentResult{Name: s.Alias, Owner: s.Owner, Intent: projections.IntentOf(i), Sequence: sequence}
}

// intentUse does what an intent allows. Whoever else asks for it is refused, the
// one that used it reads what became of it (D5, D12).
func (p *Plane) intentUse(ctx context.Context, c *call, in commands.IntentUseInput) (commands.IntentResult, error) {
	if events.InstanceID(in.Instance) != p.Self.Instance {
		return commands.IntentResult{}, fault.New(fault.FailedPrecondition, "instance %s was meant, and this is %s", in.Instance, p.Self.Instance).
			WithDetail(commands.DetailBindRefused, "boundTo", in.Instance, "servedBy", string(p.Self.Instance))
	}
	u := intent.Use{Intent: events.GoalID(in.Intent), Request: c.req.ID, Kind: events.IntentKind(in.Kind), Instance: events.InstanceID(in.Instance), Epoch: in.Epoch}
	if u.Kind == events.IntentLaunch {
		return p.intentLaunch(ctx, c, in, u)
	}
	grace, err := in.GraceFor()
	if err != nil {
		return commands.IntentResult{}, err
	}
	return p.intent(ctx, c, in.Named, u.Intent, in, func(s aggregates.Seat) ([]events.Event, error) {
		return s.RetireFor(u, p.Self, p.Now(), grace)
	})
}

// intentLaunch begins the spawn that an intent allows, as a goal of its user
// under the intent's id (D18): accepted first, then used up and claimed in one
// commit. What can't be used is refused before a goal is made.
func (p *Plane) intentLaunch(ctx context.Context, c *call, in commands.IntentUseInput, u intent.Use) (commands.IntentResult, error) {
	seat, err := p.Shelf.Seat(ctx, c.owner(), events.Alias(in.Name))
	if err != nil {
		return commands.IntentResult{}, err
	}
	i, done, err := seat.MayUse(u, p.Self, p.Now())
	if err != nil {
		return commands.IntentResult{}, err
	}
	if done {
		return intentResult(seat, u.Intent, seat.Sequence), nil
	}
	var request spawnRequest
	if err := json.Unmarshal([]byte(i.Request), &request); err != nil {
		return commands.IntentResult{}, fault.New(fault.Internal, "the launch of intent %s can't be read", i.ID).WithOutcome(fault.NotExecuted)
	}
	request.Intent = &intentUse{u.Intent, u.Request, u.Epoch}
	as := &call{row: commands.Spawn.Contract, trace: c.trace, req: commands.Request{ID: events.CommandID(i.ID), DryRun: c.req.DryRun}, Address: commands.Address{
		Target: string(p.Self.Instance), Command: commands.Spawn.Name, Mode: commands.ModeOwner, Owner: c.owner(), Caller: i.By}}
	spawned, err := p.begin(ctx, as, request)
	c.drafts = append(c.drafts, as.drafts...)
	if err != nil || c.req.DryRun {
		return commands.IntentResult{}, err
	}
	return p.launchedBy(ctx, c, in, u, spawned)
}

// launchedBy is what the seat says of the launch: whoever's use it was.
func (p *Plane) launchedBy(ctx context.Context, c *call, in commands.IntentUseInput, u intent.Use, spawned commands.SpawnResult) (commands.IntentResult, error) {
	seat, err := p.Shelf.Seat(ctx, c.owner(), events.Alias(in.Name))
	if err != nil {
		return commands.IntentResult{}, fault.From(err).WithOutcome(fault.Unknown)
	}
	switch _, done, err := seat.MayUse(u, p.Self, p.Now()); {
	case done:
		return intentResult(seat, u.Intent, seat.Sequence), nil
	case spawned.Err() != nil:
		return commands.IntentResult{}, spawned.Err()
	case err != nil:
		return commands.IntentResult{}, err
	}
	return commands.IntentResult{}, fault.New(fault.Unavailable, "the launch of intent %s is accepted and not begun yet", u.Intent).WithOutcome(fault.Unknown).
		WithHint("ask again with the same request id")
}

// intentRelease is an operator's word that an executor is over (D16).
func (p *Plane) intentRelease(ctx context.Context, c *call, in commands.IntentReleaseInput) (commands.IntentResult, error) {
	return p.intent(ctx, c, in.Named, events.GoalID(in.Intent), in, func(s aggregates.Seat) ([]events.Event, error) {
		return s.ReleaseIntent(events.GoalID(in.Intent), c.Caller, in.Reason)
	})
}

// claimFor is what claims a seat for a spawn: by its intent, if it is the launch
// of one, and only in the run that accepted it (D11).
func (p *Plane) claimFor(s aggregates.Seat, request spawnRequest, c aggregates.Claim) ([]events.Event, error) {
	if request.Intent == nil {
		return s.Claim(c)
	}
	u := intent.Use{Intent: request.Intent.Intent, Request: request.Intent.Request, Kind: events.IntentLaunch, Instance: p.Self.Instance, Epoch: request.Intent.Epoch}
	if u.Epoch != p.Self.Epoch {
		return nil, fault.New(fault.Expired, "the run that accepted the launch of intent %s is over, and nothing was begun", u.Intent)
	}
	es, err := s.Launch(u, c, p.Self, p.Now())
	if fault.CodeOf(err) == fault.Conflict { // another use of it won, and always will have
		return nil, fault.New(fault.FailedPrecondition, "%s", fault.From(err).Message)
	}
	return es, err
}
