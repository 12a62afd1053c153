package sagas

import (
	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/slot"
	"berth/events"
)

//house:pure

func always(*View) bool { return true }

func lapsed(v *View) bool { return len(v.Seat.DropTurns(v.Now)) > 0 }

func inFlight(v *View) bool {
	return v.Try.InFlight
}

func abandoned(v *View) bool {
	op := v.env().Operation
	return op != nil && op.Phase == environment.Dispatched
}

func uncertain(v *View) bool {
	op := v.env().Operation
	return op != nil && op.Phase == environment.Uncertain
}

func overdue(v *View) bool {
	op := v.env().Operation
	return op != nil && !op.Stuck && v.Now.Sub(op.Begun) >= PatienceOf(op.Verb).Alarm
}

func due(v *View) bool { return !v.Now.Before(v.Try.Next) }

func mustReconcile(v *View) bool { return uncertain(v) && due(v) }

// mustExclude: a first question observes; then, where nobody can still be
// waiting for the answer, or the life is ending, or observing did not help,
// every other question asks for the fence.
func mustExclude(v *View) bool {
	if !uncertain(v) || !due(v) || v.Try.Count == 0 {
		return false
	}
	op := v.env().Operation
	warranted := v.terminal() || op.Writer != v.Self || v.Try.Count >= PatienceOf(op.Verb).Exclude
	return warranted && v.Try.Count%2 == 1
}

// ending restricts a condition to a lifecycle that is being retired.
func ending(f func(*View) bool) func(*View) bool {
	return func(v *View) bool { return v.terminal() && f(v) }
}

func creating(f func(*View) bool) func(*View) bool {
	return func(v *View) bool { return v.Seat.Slot.Phase == slot.Provisioning && f(v) }
}

func active(f func(*View) bool) func(*View) bool {
	return func(v *View) bool { return v.Seat.Slot.Phase == slot.Active && f(v) }
}

func queued(v *View) bool    { return len(v.env().Queue) > 0 }
func unrevoked(v *View) bool { return len(v.Seat.Head.Revoke()) > 0 }
func unclean(v *View) bool   { return !v.Seat.Slot.Cleaned && due(v) }

// mustStop: something may be running. After MaxStops that did not stop it,
// destroy is asked anyway.
func mustStop(v *View) bool {
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

func mayRun(e *environment.State) bool {
	return e.Record == environment.Running || (e.Started && e.Record == environment.Creating)
}

// stillRuns is mayRun of a seat that is not kept.
func stillRuns(s aggregates.Seat) bool { return mayRun(&s.Environment) }

func exists(e *environment.State) bool { return e.Ref != "" && !e.Gone }

func mustDestroy(v *View) bool { return exists(v.env()) && due(v) }

func notGone(v *View) bool { return (exists(v.env()) || !v.Seat.Slot.Cleaned) && !due(v) }

func expired(v *View) bool {
	d := v.env().Deadline
	return !v.terminal() && d != nil && !v.Now.Before(*d)
}

// cancelled: also when the goal became uncertain before its open operation
// let the cancel through; what was asked is still to be done.
func cancelled(v *View) bool {
	g := v.Goal
	asked := g.State == events.GoalStateCancelling || g.State == events.GoalUncertain && g.CancelMode != ""
	return !v.terminal() && asked && g.Settled == nil
}

func refused(v *View) bool {
	return v.Seat.Slot.Phase == slot.Provisioning && v.env().Refusal != nil
}

func exhausted(v *View) bool {
	return v.Seat.Slot.Phase == slot.Provisioning && v.env().Refusal == nil &&
		(v.env().Excluded >= MaxExcluded || v.env().Throttled >= MaxThrottled || failedOnce(v.env()))
}

// failedOnce: a delegated seat is created once (H6, H12); what was proved never
// to have happened is not tried again.
func failedOnce(e *environment.State) bool {
	return e.Plan.Delegated && e.Excluded+e.Throttled > 0
}

// exitedEarly: the seat is not active yet and its process ended badly (2.6).
// One that ended well has run, and activates, unless it was to show a sign.
func exitedEarly(v *View) bool {
	e := v.env()
	return v.Seat.Slot.Phase == slot.Provisioning && e.Started && e.Record == environment.Stopped &&
		(e.ExitCode == nil || *e.ExitCode != 0 || e.AwaitsSign())
}

// sweepable, unpreserved: the run that a delegated intent's effect belongs to is
// over. A name without an intent, which is nearly every one, asks nothing more.
func sweepable(v *View) bool {
	return len(v.Seat.Intents) > 0 && len(v.Seat.Sweep(v.Self)) > 0
}

func unpreserved(v *View) bool {
	return len(v.Seat.Intents) > 0 && v.Seat.Unpreserved(v.Self)
}

func unprobed(v *View) bool   { return v.env().ProbedAt.IsZero() && due(v) }
func unreserved(v *View) bool { return !v.env().ProbedAt.IsZero() && v.env().Ref == "" && due(v) }

func wants(v *View, t events.Target) bool {
	switch v.env().Target {
	case events.TargetRunning:
		return true
	case events.TargetProvisioned:
		return t == events.TargetProvisioned
	}
	return false
}

func unprovisioned(v *View) bool {
	e := v.env()
	return e.Ref != "" && !e.Provisioned && wants(v, events.TargetProvisioned) && due(v)
}

// unminted: R52, a credential is made only after reservation, and before the
// guest is built (R56).
func unminted(v *View) bool {
	return unprovisioned(v) && len(v.Seat.Head.Ledger) == 0 && v.Minted.ID == ""
}

func unstarted(v *View) bool {
	e := v.env()
	return e.Provisioned && !e.Started && wants(v, events.TargetRunning) && due(v)
}

func ready(v *View) bool {
	e := v.env()
	return e.Started && !e.AwaitsSign() && (e.Record == environment.Running || e.Record == environment.Stopped)
}

func delayed(v *View) bool { return !due(v) }

// living restricts a condition to a lifecycle that has something at the
// provider and is not ending: an ending one is stopped whatever it looks like.
func living(f func(*View) bool) func(*View) bool {
	return func(v *View) bool { return !v.terminal() && exists(v.env()) && f(v) }
}

func changed(v *View) bool { return v.Try.Observe && due(v) }

// settling: start is confirmed and the provider has not shown it running yet
// (scenario 18), or the seat has not shown that it is ready (2.6).
func settling(v *View) bool {
	e := v.env()
	waits := e.Record == environment.Creating || e.Record == environment.Running && e.AwaitsSign() && v.Seat.Slot.Phase == slot.Provisioning
	return e.Started && waits && due(v)
}

func next(verb events.Verb) func(*View) bool {
	return func(v *View) bool {
		return due(v) && len(v.env().Queue) > 0 && v.env().Queue[0].Verb == verb
	}
}

// impossible: the head of the queue can't be done in the state that what came
// before it left.
func impossible(v *View) bool {
	e := v.env()
	if len(e.Queue) == 0 {
		return false
	}
	if e.Gone {
		return true
	}
	switch e.Queue[0].Verb {
	case events.VerbPause:
		return e.Record != environment.Running || e.Paused
	case events.VerbResume:
		return e.Record != environment.Running || !e.Paused
	case events.VerbRestore:
		return e.Record != environment.Running && e.Record != environment.Stopped
	}
	return false
}

func unaccepted(v *View) bool {
	_, ok := exported(v.env())
	return ok && due(v)
}

// exported is a finished export whose provider-file was neither accepted nor
// rejected yet.
func exported(e *environment.State) (environment.Operation, bool) {
	for _, o := range e.Done {
		if o.Verb == events.VerbExport && o.Succeeded() && o.File == nil && o.Fault == nil {
			return *o, true
		}
	}
	return environment.Operation{}, false
}
