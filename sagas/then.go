package sagas

import (
	"time"

	"berth/aggregates/head"
	"berth/events"
	"berth/events/fault"
	"berth/internal/connector"
)

//house:pure

func do(k Kind) func(*View) Action { return func(*View) Action { return Action{Kind: k} } }

// await rests until the answer comes, but for the deadline of a turn.
func await(v *View) Action { return Action{Kind: Idle, Wake: v.Seat.NextLapse()} }

func dropTurns(v *View) Action { return appendAction(v.Seat.DropTurns(v.Now)...) }

func rest(v *View) Action { return Action{Kind: Idle, Wake: wake(v)} }

func ask(k Kind) func(*View) Action {
	return func(v *View) Action { return Action{Kind: k, Operation: v.env().Operation.ID} }
}

func appendAction(es ...events.Event) Action { return Action{Kind: Append, Events: es} }

func lose(v *View) Action {
	op := v.env().Operation
	why := fault.New(fault.Unavailable, "the manager stopped before %s was answered", op.Verb).WithOutcome(fault.Unknown)
	return appendAction(events.OperationUncertain{Environment: v.env().ID, Operation: op.ID, Fault: why})
}

func alarm(v *View) Action {
	op := v.env().Operation
	return appendAction(events.OperationStuck{Environment: v.env().ID, Operation: op.ID, Since: op.Begun})
}

func cancelQueue(v *View) Action {
	var es []events.Event
	for _, q := range v.env().Queue {
		es = append(es, events.OperationCancelled{Environment: v.env().ID, Operation: q.ID, Reason: "the environment is being retired"})
	}
	return appendAction(es...)
}

func dropNext(v *View) Action {
	q := v.env().Queue[0]
	return appendAction(events.OperationCancelled{Environment: v.env().ID, Operation: q.ID, Reason: string(q.Verb) + " is not possible: the environment is " + string(v.Seat.Status())})
}

// revokeAtOnce keeps one append well below what a commit may hold.
const revokeAtOnce = 8

func revoke(v *View) Action {
	es := v.Seat.Head.Revoke()
	return appendAction(es[:min(len(es), revokeAtOnce)]...)
}

func release(v *View) Action {
	es, err := v.Seat.Release()
	if err != nil {
		return rest(v)
	}
	return appendAction(es...)
}

func terminalize(reason string) func(*View) Action {
	return func(v *View) Action {
		es, err := v.Seat.Retire(v.Seat.Slot.UID, reason, 0)
		if err != nil {
			return rest(v)
		}
		return appendAction(es...)
	}
}

func giveUp(v *View) Action {
	e := v.env()
	var why *fault.Error
	switch {
	case e.Throttled >= MaxThrottled:
		why = fault.New(fault.ResourceExhausted, "provider %s asked %d times to come back later", e.Plan.Provider, e.Throttled)
	case failedOnce(e):
		why = fault.New(fault.Unavailable, "provider %s did not create this delegated seat, as was proved; it is not tried again", e.Plan.Provider)
	default:
		why = fault.New(fault.Unavailable, "provider %s lost this creation %d times; each was proved never to have happened", e.Plan.Provider, e.Excluded)
	}
	return appendAction(events.EnvironmentRefused{Environment: e.ID, Fault: why.WithOutcome(fault.NotExecuted)})
}

func exitedEarlyFault(v *View) Action {
	why := fault.New(fault.FailedPrecondition, "the process ended before it was ready").WithOutcome(fault.Executed)
	if c := v.env().ExitCode; c != nil {
		why = fault.New(fault.FailedPrecondition, "the process ended with exit code %d before it was ready%s", *c, meaning(v.Seat.Environment.Plan, *c)).WithOutcome(fault.Executed)
	}
	return appendAction(events.EnvironmentRefused{Environment: v.env().ID, Fault: why})
}

// meaning is what a connector says by an exit code; empty: nothing.
func meaning(p events.Plan, code int) string {
	if p.Connector != nil {
		if said := connector.Meaning(p.Connector.Name, code); said != "" {
			return ": " + said
		}
	}
	return ""
}

// activate says, with the activation, that a launch for a user is enrolled (D7).
func activate(v *View) Action {
	return appendAction(append([]events.Event{events.SlotActivated{UID: v.Seat.Slot.UID}}, v.Seat.Enrolled(v.Self)...)...)
}

func sweep(v *View) Action { return appendAction(v.Seat.Sweep(v.Self)...) }

// dispatched is the intent of a verb with its arguments.
func dispatched(v *View, id events.OperationID, verb events.Verb, args events.Arguments, g events.Boundary) events.OperationDispatched {
	return events.OperationDispatched{
		Environment: v.env().ID, Operation: id, Verb: verb, Arguments: args, Goal: string(g),
		Deadline: events.MillisUTC(v.Now.Add(PatienceOf(verb).Call)),
	}
}

func dispatch(verb events.Verb) func(*View) Action {
	return func(v *View) Action {
		var args events.Arguments
		if verb == events.VerbStop && v.Seat.Slot.Grace > 0 {
			args.Grace = v.Seat.Slot.Grace.String()
		}
		return Action{Kind: Dispatch, Operation: v.Fresh, Events: []events.Event{dispatched(v, v.Fresh, verb, args, "")}}
	}
}

func dispatchNext(v *View) Action {
	q := v.env().Queue[0]
	return Action{Kind: Dispatch, Operation: q.ID, Events: []events.Event{dispatched(v, q.ID, q.Verb, q.Arguments, q.Goal)}}
}

// provision admits issuance, writes the ledger row and dispatches, in one
// commit: a crash leaves all three or none.
func provision(v *View) Action {
	var es []events.Event
	s := v.Seat
	if s.Head.Gate.Phase == head.GateFrozen {
		open, err := s.Head.Open(s.Head.Gate.Operation)
		if err != nil {
			return rest(v)
		}
		es = append(es, open...)
		s = s.With(events.Meta{}, open...)
	}
	if v.Minted.ID != "" && len(s.Head.Ledger) == 0 {
		mint, err := s.Head.Mint(v.Minted.ID, v.Minted.Holder, nil, v.Minted.Source)
		if err != nil {
			return rest(v)
		}
		es = append(es, mint...)
	}
	es = append(es, dispatched(v, v.Fresh, events.VerbProvision, events.Arguments{}, ""))
	return Action{Kind: Dispatch, Operation: v.Fresh, Events: es}
}

func start(v *View) Action {
	var es []events.Event
	h := v.Seat.Head
	if h.Current == "" && len(h.Ledger) > 0 {
		es = append(es, events.CredentialReleased{UID: h.UID, Credential: h.Ledger[len(h.Ledger)-1].ID})
	}
	es = append(es, dispatched(v, v.Fresh, events.VerbStart, events.Arguments{}, ""))
	return Action{Kind: Dispatch, Operation: v.Fresh, Events: es}
}

// extend dispatches the next bounded step of the extension at the head of the
// queue, under that operation's own id.
func extend(v *View) Action {
	e, q := v.env(), v.env().Queue[0]
	wanted := *q.Arguments.ExtendTo
	to := wanted
	if e.ExpiresAt == nil {
		// R31: the provider has no deadline of its own; ours is all there is.
		return appendAction(
			events.OperationCancelled{Environment: e.ID, Operation: q.ID, Reason: "the provider has no deadline to extend; the manager's is extended"},
			events.DeadlineChanged{Environment: e.ID, Deadline: to})
	}
	if most := e.ExpiresAt.Add(time.Duration(e.Capabilities.Extend.StepMs) * time.Millisecond); to.After(most) {
		to = most // R28
	}
	return Action{Kind: Dispatch, Operation: q.ID, Events: []events.Event{dispatched(v, q.ID, q.Verb, events.Arguments{ExtendTo: &to, Wanted: &wanted}, q.Goal)}}
}

func accept(v *View) Action {
	op, _ := exported(v.env())
	return Action{Kind: Accept, Operation: op.ID}
}
