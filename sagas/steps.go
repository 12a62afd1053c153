package sagas

import (
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/head"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/fault"
)

// Step is one row of the table.
type Step struct {
	Saga string
	Name string
	Verb events.Verb // the mutation that it dispatches, if any
	Doc  string
	When func(View) bool
	Do   func(View) Action
}

// Steps is every saga: the first row whose When holds speaks. The order is the
// order of precedence: what is open comes before everything, the end of a life
// before its beginning, and what was asked last comes last.
var Steps = []Step{
	{"reconcile", "await", "", "the call is running: its answer or its deadline comes", inFlight, idle},
	{"reconcile", "lose", "", "an operation was dispatched and nobody waits for its answer any more", abandoned, lose},
	{"reconcile", "alarm", "", "an operation has been open longer than its patience", overdue, alarm},
	{"reconcile", "exclude", "", "ask that the operation id can never land", mustExclude, ask(Exclude)},
	{"reconcile", "reconcile", "", "ask what became of the operation id", mustReconcile, ask(Reconcile)},
	{"reconcile", "hold", "", "the operation is uncertain: wait for the next question", uncertain, rest},

	{"retire", "cancel-queue", "", "what was never dispatched is dropped", ending(queued), cancelQueue},
	{"retire", "stop", events.VerbStop, "stop the seat and prove its exit", ending(mustStop), dispatch(events.VerbStop)},
	{"retire", "revoke", "", "revoke every credential of the lifecycle (deny-new first)", ending(unrevoked), revoke},
	{"retire", "clean", "", "remove what this host keeps for the lifecycle", ending(unclean), do(Clean)},
	{"retire", "destroy", events.VerbDestroy, "destroy the environment and prove its absence", ending(mustDestroy), dispatch(events.VerbDestroy)},
	{"retire", "wait", "", "the last attempt failed: wait before the next", ending(notGone), rest},
	{"retire", "release", "", "gate, head and slot are retired in one commit: the name is free", ending(always), release},

	{"expire", "expire", "", "the accepted lifetime is over", expired, terminalize("expired")},
	{"spawn", "cancel", "", "the goal was cancelled", cancelled, terminalize("cancelled")},
	{"spawn", "fail", "", "creation was refused: what exists of it is taken down", refused, terminalize("failed")},
	{"spawn", "give-up", "", "creation was proved never to land too often", exhausted, giveUp},
	{"spawn", "exited", "", "the process ended with a failure before it was ready", exitedEarly, exitedEarlyFault},
	{"spawn", "probe", "", "describe the image and preflight the plan", creating(unprobed), do(Probe)},
	{"spawn", "reserve", events.VerbReserve, "reserve at the provider; the answer binds the reference", creating(unreserved), dispatch(events.VerbReserve)},
	{"spawn", "mint", "", "make the seat's credential and stage its bytes", creating(unminted), do(Mint)},
	{"spawn", "provision", events.VerbProvision, "admit issuance, write the ledger row, provision", creating(unprovisioned), provision},
	{"spawn", "start", events.VerbStart, "release the credential and start the seat", creating(unstarted), start},
	{"spawn", "activate", "", "the seat runs: it is managed from here", creating(ready), activate},
	{"spawn", "wait", "", "the last attempt failed: wait before the next", creating(delayed), rest},

	{"operate", "observe", "", "look at what the provider holds", active(changed), do(Observe)},
	{"extend", "extend", events.VerbExtend, "one bounded step of an extension (R28, R29)", active(next(events.VerbExtend)), extend},
	{"operate", "drop", "", "what was asked is no longer possible", active(impossible), dropNext},
	{"pause", "pause", events.VerbPause, "freeze the seat", active(next(events.VerbPause)), dispatchNext},
	{"resume", "resume", events.VerbResume, "thaw the seat", active(next(events.VerbResume)), dispatchNext},
	{"checkpoint", "checkpoint", events.VerbCheckpoint, "capture a state that the provider keeps", active(next(events.VerbCheckpoint)), dispatchNext},
	{"export", "export", events.VerbExport, "have the provider produce a file", active(next(events.VerbExport)), dispatchNext},
	{"export", "accept", "", "copy the file, enforcing length and digest (R37)", active(unaccepted), accept},
}

// ---- conditions

func always(View) bool { return true }

func inFlight(v View) bool {
	return v.Try.InFlight
}

func abandoned(v View) bool {
	op := v.env().Operation
	return op != nil && op.Phase == environment.Dispatched
}

func uncertain(v View) bool {
	op := v.env().Operation
	return op != nil && op.Phase == environment.Uncertain
}

func overdue(v View) bool {
	op := v.env().Operation
	return op != nil && !op.Stuck && v.Now.Sub(op.Begun) >= PatienceOf(op.Verb).Alarm
}

func due(v View) bool { return !v.Now.Before(v.Try.Next) }

func mustReconcile(v View) bool { return uncertain(v) && due(v) }

// mustExclude: a first question observes; then, where nobody can still be
// waiting for the answer, or the life is ending, or observing did not help,
// every other question asks for the fence.
func mustExclude(v View) bool {
	if !uncertain(v) || !due(v) || v.Try.Count == 0 {
		return false
	}
	op := v.env().Operation
	warranted := v.terminal() || op.Writer != v.Self || v.Try.Count >= PatienceOf(op.Verb).Exclude
	return warranted && v.Try.Count%2 == 1
}

// ending restricts a condition to a lifecycle that is being retired.
func ending(f func(View) bool) func(View) bool {
	return func(v View) bool { return v.terminal() && f(v) }
}

func creating(f func(View) bool) func(View) bool {
	return func(v View) bool { return v.Seat.Slot.Phase == slot.Provisioning && f(v) }
}

func active(f func(View) bool) func(View) bool {
	return func(v View) bool { return v.Seat.Slot.Phase == slot.Active && f(v) }
}

func queued(v View) bool    { return len(v.env().Queue) > 0 }
func unrevoked(v View) bool { return len(v.Seat.Head.Revoke()) > 0 }
func unclean(v View) bool   { return !v.Seat.Slot.Cleaned && due(v) }

// mustStop: something may be running. After MaxStops that did not stop it,
// destroy is asked anyway.
func mustStop(v View) bool {
	e := v.env()
	if e.Gone || e.Ref == "" || !mayRun(e) || !due(v) {
		return false
	}
	tried := 0
	for _, o := range e.Done {
		if o.Verb == events.VerbStop {
			tried++
		}
	}
	return tried < MaxStops
}

func mayRun(e environment.State) bool {
	return e.Record == environment.Running || (e.Started && e.Record == environment.Creating)
}

func exists(e environment.State) bool { return e.Ref != "" && !e.Gone }

func mustDestroy(v View) bool { return exists(v.env()) && due(v) }

func notGone(v View) bool { return (exists(v.env()) || !v.Seat.Slot.Cleaned) && !due(v) }

func expired(v View) bool {
	d := v.env().Deadline
	return !v.terminal() && d != nil && !v.Now.Before(*d)
}

func cancelled(v View) bool {
	return !v.terminal() && v.Goal.State == events.GoalStateCancelling
}

func refused(v View) bool {
	return v.Seat.Slot.Phase == slot.Provisioning && v.env().Refusal != nil
}

func exhausted(v View) bool {
	return v.Seat.Slot.Phase == slot.Provisioning && v.env().Excluded >= MaxExcluded
}

// exitedEarly: the seat is not active yet and its process ended badly (2.6).
// One that ended well has run, and activates.
func exitedEarly(v View) bool {
	e := v.env()
	return v.Seat.Slot.Phase == slot.Provisioning && e.Started && e.Record == environment.Stopped && (e.ExitCode == nil || *e.ExitCode != 0)
}

func unprobed(v View) bool   { return v.env().ProbedAt.IsZero() && due(v) }
func unreserved(v View) bool { return !v.env().ProbedAt.IsZero() && v.env().Ref == "" && due(v) }

func wants(v View, t events.Target) bool {
	switch v.env().Target {
	case events.TargetRunning:
		return true
	case events.TargetProvisioned:
		return t == events.TargetProvisioned
	}
	return false
}

func unprovisioned(v View) bool {
	e := v.env()
	return e.Ref != "" && !e.Provisioned && wants(v, events.TargetProvisioned) && due(v)
}

// unminted: R52, a credential is made only after reservation, and before the
// guest is built (R56).
func unminted(v View) bool {
	return unprovisioned(v) && len(v.Seat.Head.Ledger) == 0 && v.Minted.ID == ""
}

func unstarted(v View) bool {
	e := v.env()
	return e.Provisioned && !e.Started && wants(v, events.TargetRunning) && due(v)
}

func ready(v View) bool {
	e := v.env()
	return e.Started && (e.Record == environment.Running || e.Record == environment.Stopped)
}

func delayed(v View) bool { return !due(v) }

func changed(v View) bool { return v.Try.Observe && due(v) }

func next(verb events.Verb) func(View) bool {
	return func(v View) bool {
		return due(v) && len(v.env().Queue) > 0 && v.env().Queue[0].Verb == verb
	}
}

// impossible: the head of the queue can't be done in the state that what came
// before it left.
func impossible(v View) bool {
	e := v.env()
	if len(e.Queue) == 0 {
		return false
	}
	switch e.Queue[0].Verb {
	case events.VerbPause:
		return e.Record != environment.Running || e.Paused
	case events.VerbResume:
		return e.Record != environment.Running || !e.Paused
	}
	return e.Gone
}

func unaccepted(v View) bool {
	_, ok := exported(v.env())
	return ok && due(v)
}

// exported is a finished export whose provider-file was neither accepted nor
// rejected yet.
func exported(e environment.State) (environment.Operation, bool) {
	for _, o := range e.Done {
		if o.Verb == events.VerbExport && o.Succeeded() && o.File == nil && o.Fault == nil {
			return o, true
		}
	}
	return environment.Operation{}, false
}

// ---- actions

func do(k Kind) func(View) Action { return func(View) Action { return Action{Kind: k} } }

func idle(View) Action { return Action{Kind: Idle} }

func rest(v View) Action { return Action{Kind: Idle, Wake: wake(v)} }

func ask(k Kind) func(View) Action {
	return func(v View) Action { return Action{Kind: k, Operation: v.env().Operation.ID} }
}

func appendAction(es ...events.Event) Action { return Action{Kind: Append, Events: es} }

func lose(v View) Action {
	op := v.env().Operation
	why := fault.New(fault.Unavailable, "the manager stopped before %s was answered", op.Verb).WithOutcome(fault.Unknown)
	return appendAction(events.OperationUncertain{Environment: v.env().ID, Operation: op.ID, Fault: why})
}

func alarm(v View) Action {
	op := v.env().Operation
	return appendAction(events.OperationStuck{Environment: v.env().ID, Operation: op.ID, Since: op.Begun})
}

func cancelQueue(v View) Action {
	var es []events.Event
	for _, q := range v.env().Queue {
		es = append(es, events.OperationCancelled{Environment: v.env().ID, Operation: q.ID, Reason: "the environment is being retired"})
	}
	return appendAction(es...)
}

func dropNext(v View) Action {
	q := v.env().Queue[0]
	return appendAction(events.OperationCancelled{Environment: v.env().ID, Operation: q.ID, Reason: string(q.Verb) + " is not possible: the environment is " + string(v.Seat.Status())})
}

func revoke(v View) Action { return appendAction(v.Seat.Head.Revoke()...) }

func release(v View) Action {
	es, err := v.Seat.Head.CompleteRetirement(aggregates.RetirementID(v.Seat.Slot.UID))
	if err != nil {
		return rest(v)
	}
	return appendAction(append(es, events.SlotRetired{UID: v.Seat.Slot.UID})...)
}

func terminalize(reason string) func(View) Action {
	return func(v View) Action {
		es, err := v.Seat.Retire(v.Seat.Slot.UID, reason, 0)
		if err != nil {
			return rest(v)
		}
		return appendAction(es...)
	}
}

func giveUp(v View) Action {
	why := fault.New(fault.Unavailable, "provider %s lost this creation %d times; each was proved never to have happened", v.env().Plan.Provider, v.env().Excluded).WithOutcome(fault.NotExecuted)
	return appendAction(events.EnvironmentRefused{Environment: v.env().ID, Fault: why})
}

func exitedEarlyFault(v View) Action {
	why := fault.New(fault.FailedPrecondition, "the process ended before it was ready").WithOutcome(fault.Executed)
	if c := v.env().ExitCode; c != nil {
		why = fault.New(fault.FailedPrecondition, "the process ended with exit code %d before it was ready", *c).WithOutcome(fault.Executed)
	}
	return appendAction(events.EnvironmentRefused{Environment: v.env().ID, Fault: why})
}

func activate(v View) Action { return appendAction(events.SlotActivated{UID: v.Seat.Slot.UID}) }

// dispatched is the intent of a verb with its arguments.
func dispatched(v View, id events.OperationID, verb events.Verb, args events.Arguments, g events.Boundary) events.OperationDispatched {
	return events.OperationDispatched{
		Environment: v.env().ID, Operation: id, Verb: verb, Arguments: args, Goal: string(g),
		Deadline: events.MillisUTC(v.Now.Add(PatienceOf(verb).Call)),
	}
}

func dispatch(verb events.Verb) func(View) Action {
	return func(v View) Action {
		var args events.Arguments
		if verb == events.VerbStop && v.Seat.Slot.Grace > 0 {
			args.Grace = v.Seat.Slot.Grace.String()
		}
		return Action{Kind: Dispatch, Operation: v.Fresh, Events: []events.Event{dispatched(v, v.Fresh, verb, args, "")}}
	}
}

func dispatchNext(v View) Action {
	q := v.env().Queue[0]
	return Action{Kind: Dispatch, Operation: q.ID, Events: []events.Event{dispatched(v, q.ID, q.Verb, q.Arguments, q.Goal)}}
}

// provision admits issuance, writes the ledger row and dispatches, in one
// commit: a crash leaves all three or none.
func provision(v View) Action {
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
		mint, err := s.Head.Mint(v.Minted.ID, v.Minted.Holder, nil)
		if err != nil {
			return rest(v)
		}
		es = append(es, mint...)
	}
	es = append(es, dispatched(v, v.Fresh, events.VerbProvision, events.Arguments{}, ""))
	return Action{Kind: Dispatch, Operation: v.Fresh, Events: es}
}

func start(v View) Action {
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
func extend(v View) Action {
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

func accept(v View) Action {
	op, _ := exported(v.env())
	return Action{Kind: Accept, Operation: op.ID}
}
