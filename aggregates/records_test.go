package aggregates_test

import (
	"testing"
	"time"

	"berth/aggregates/goal"
	"berth/aggregates/head"
	"berth/aggregates/instance"
	"berth/events"
	"berth/events/fault"
)

// code is the refusal of a decision; "events" and "nothing" tell the others apart.
func code(es []events.Event, err error) fault.Code {
	switch {
	case err != nil:
		return fault.CodeOf(err)
	case len(es) == 0:
		return "nothing"
	}
	return "events"
}

// Rules 2.2, 2.3, R52, R59: what the head, its gate and its ledger refuse.
func TestHeadDecisions(t *testing.T) {
	h := running(t).Head
	if h.Current != "cred-1" || h.Gate.Phase != head.GateOpen {
		t.Fatalf("%+v", h)
	}
	two := h.Apply(events.CredentialMinted{UID: uid1, Credential: "cred-2", Holder: "U2", Generation: 1})
	revoked := two.Apply(events.CredentialRevoked{UID: uid1, Credential: "cred-1"})
	retiringHead := retiring(t).Head
	frozen := reserved(t).Head
	full := h
	for i := range head.MaxCredentials - 1 {
		full = full.Apply(events.CredentialMinted{UID: uid1, Credential: events.CredentialID(opN("c", i)), Holder: "U", Generation: 1})
	}
	advanced := h.Apply(events.HeadEpochAdvanced{UID: uid1, Operation: op1, Epoch: 2})
	for name, c := range map[string]struct{ got, want fault.Code }{
		"mint the same again":                  {code(h.Mint("cred-1", "U1", nil, nil)), "nothing"},
		"mint a used id for another":           {code(h.Mint("cred-1", "U9", nil, nil)), fault.Conflict},
		"mint a revoked id again":              {code(revoked.Mint("cred-1", "U1", nil, nil)), fault.Conflict},
		"R52 mint before issuance is admitted": {code(frozen.Mint("c", "U", nil, nil)), fault.FailedPrecondition},
		"mint while retiring":                  {code(retiringHead.Mint("c", "U", nil, nil)), fault.FailedPrecondition},
		"mint beyond the ledger":               {code(full.Mint("c", "U", nil, nil)), fault.ResourceExhausted},
		"release the current one":              {code(h.Release("cred-1")), "nothing"},
		"2.2 release another":                  {code(two.Release("cred-2")), fault.PermissionDenied},
		"release a revoked one":                {code(revoked.Release("cred-1")), fault.Expired},
		"release what was not minted":          {code(h.Release("cred-9")), fault.NotFound},
		"release while retiring":               {code(retiringHead.Release("cred-1")), fault.FailedPrecondition},
		"open an open gate":                    {code(h.Open("activation-0000001")), fault.FailedPrecondition},
		"open under another operation":         {code(frozen.Open(op2)), fault.PermissionDenied},
		"2.3 open out of a retirement":         {code(retiringHead.Open(retiringHead.Gate.Operation)), fault.PermissionDenied},
		"retire under the same operation":      {code(retiringHead.BeginRetirement(uid1, retiringHead.Operation)), "nothing"},
		"retire under another":                 {code(retiringHead.BeginRetirement(uid1, op2)), fault.PermissionDenied},
		"retire another lifecycle":             {code(h.BeginRetirement(uid2, op2)), fault.Expired},
		"complete before all is revoked":       {code(retiringHead.CompleteRetirement(retiringHead.Operation)), fault.FailedPrecondition},
		"complete under another operation":     {code(retiringHead.CompleteRetirement(op2)), fault.PermissionDenied},
		"complete what is retired":             {code(over(t).Head.CompleteRetirement(op2)), "nothing"},
		"activate another while active":        {code(h.Activate(uid2, op2)), fault.AlreadyExists},
		"activate while retiring":              {code(retiringHead.Activate(uid2, op2)), fault.FailedPrecondition},
		"activate a burned uid":                {code(over(t).Head.Activate(uid1, op2)), fault.PermissionDenied},
		"advance":                              {code(h.Advance(1, op1)), "events"},
		"advance again under my operation":     {code(advanced.Advance(1, op1)), "nothing"},
		"advance under another":                {code(advanced.Advance(1, op2)), fault.Conflict},
		"advance while retiring":               {code(retiringHead.Advance(1, op1)), fault.FailedPrecondition},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
	if advanced.Current != "" {
		t.Error("2.2: a takeover kept the current credential")
	}
	if d := fault.From(retiringHead.Check(events.CredentialMinted{UID: uid1, Credential: "c"})); d == nil {
		t.Error("a mint behind the barrier can be written")
	}
}

// Rules 2.6 and decision 14: one binding, one terminal, one settlement.
func TestGoalDecisions(t *testing.T) {
	accepted := goal.State{}.Apply(events.Meta{Time: t0}, events.GoalAccepted{Command: "spawn", Fingerprint: "f", Ready: at(time.Minute)})
	end := func(s goal.State, to events.GoalState) goal.State {
		for _, e := range s.End(to, nil, nil) {
			s = s.Apply(events.Meta{Time: t0}, e)
		}
		return s
	}
	uncertain := end(accepted, events.GoalUncertain)
	settled := uncertain.Apply(events.Meta{}, events.GoalSettled{State: events.GoalSucceeded})
	cancelling := accepted.Apply(events.Meta{}, events.GoalCancelRequested{Mode: "graceful"})
	as := func(es []events.Event) fault.Code { return code(es, nil) }
	for name, c := range map[string]struct{ got, want fault.Code }{
		"scenario 3: the same request":   {code(accepted.Accept(events.GoalAccepted{Fingerprint: "f"})), "nothing"},
		"scenario 3: another request":    {code(accepted.Accept(events.GoalAccepted{Fingerprint: "g"})), fault.Conflict},
		"after the end, still the same":  {code(uncertain.Accept(events.GoalAccepted{Fingerprint: "f"})), "nothing"},
		"cancel":                         {code(accepted.Cancel("graceful")), "events"},
		"cancel again":                   {code(cancelling.Cancel("terminate")), "nothing"},
		"cancel what ended":              {code(uncertain.Cancel("graceful")), fault.FailedPrecondition},
		"cancel what never was":          {code(goal.State{}.Cancel("graceful")), fault.FailedPrecondition},
		"cancel in no mode":              {code(accepted.Cancel("hard")), fault.BadRequest},
		"progress":                       {as(accepted.Progress("launched", "")), "events"},
		"progress while cancelling":      {as(cancelling.Progress("launched", "")), "nothing"},
		"end twice":                      {as(uncertain.End(events.GoalFailed, nil, nil)), "nothing"},
		"end in no terminal":             {as(accepted.End(events.GoalStateRunning, nil, nil)), "nothing"},
		"settle":                         {as(uncertain.Settle(events.GoalSucceeded, nil, nil)), "events"},
		"settle twice":                   {as(settled.Settle(events.GoalFailed, nil, nil)), "nothing"},
		"settle as uncertain":            {as(uncertain.Settle(events.GoalUncertain, nil, nil)), "nothing"},
		"settle as something not an end": {as(uncertain.Settle(events.GoalStateRunning, nil, nil)), "nothing"},
		"settle what is certain":         {as(end(accepted, events.GoalFailed).Settle(events.GoalSucceeded, nil, nil)), "nothing"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
	if settled.State != events.GoalUncertain || settled.Settled.State != events.GoalSucceeded {
		t.Errorf("decision 14: %+v", settled)
	}
	twice := settled.Apply(events.Meta{}, events.GoalSettled{State: events.GoalFailed})
	if twice.Settled.State != events.GoalSucceeded {
		t.Error("decision 14: a second settlement replaced the first")
	}
}

// Decision 1: a start raises the epoch by one, and an old one ends nothing.
func TestInstanceDecisions(t *testing.T) {
	s := instance.State{}
	for want := uint64(1); want <= 3; want++ {
		for _, e := range s.Register(inst, events.HostFacts{Host: "h"}, "N1", "v1") {
			s = s.Apply(events.Meta{Time: t0}, e)
		}
		if s.Epoch != want || s.Phase != instance.Registered {
			t.Fatalf("%+v, want epoch %d", s, want)
		}
	}
	if got := code(s.Stop(2)); got != fault.Expired {
		t.Errorf("law 3: a stop of an older epoch: %s", got)
	}
	es, err := s.Stop(3)
	if code(es, err) != "events" {
		t.Fatal(err)
	}
	s = s.Apply(events.Meta{}, es[0])
	if got := code(s.Stop(3)); got != "nothing" {
		t.Errorf("stopping twice: %s", got)
	}
	if got := code(instance.State{}.Stop(1)); got != fault.FailedPrecondition {
		t.Errorf("stopping what never was: %s", got)
	}
}
