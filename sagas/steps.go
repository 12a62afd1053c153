package sagas

import (
	"berth/aggregates"
	"berth/events"
)

//house:pure

// Step is one row of the table.
type Step struct {
	Saga string
	Name string
	Verb events.Verb // the mutation that it dispatches, if any
	Doc  string
	When func(*View) bool
	Do   func(*View) Action
}

// Steps is every saga: the first row whose When holds speaks. The order is the
// order of precedence: what is open comes before everything, the end of a life
// before its beginning, and what was asked last comes last. Ending a turn needs
// no call, and is on time whatever is open.
var Steps = []Step{
	{"turn", "lapse", "", "a turn ends whose deadline is over, or whose seat is on its way out", lapsed, dropTurns},
	{"reconcile", "await", "", "the call is running: its answer or its deadline comes", inFlight, await},
	{"reconcile", "lose", "", "an operation was dispatched and nobody waits for its answer any more", abandoned, lose},
	{"intent", "sweep", "", "a delegated intent's executor is gone: only its end is left (D11)", sweepable, sweep},
	{"reconcile", "alarm", "", "an operation has been open longer than its patience", overdue, alarm},
	{"reconcile", "exclude", "", "ask that the operation id can never land", mustExclude, ask(Exclude)},
	{"reconcile", "reconcile", "", "ask what became of the operation id", mustReconcile, ask(Reconcile)},
	{"reconcile", "hold", "", "the operation is uncertain: wait for the next question", uncertain, rest},

	{"retire", "cancel-queue", "", "what was never dispatched is dropped", ending(queued), cancelQueue},
	{"retire", "stop", events.VerbStop, "stop the seat and prove its exit", ending(mustStop), dispatch(events.VerbStop)},
	{"retire", "revoke", "", "revoke every credential of the lifecycle (deny-new first)", ending(unrevoked), revoke},
	{"export", "finish", "", "copy a file that was produced before its provider forgets it (scenario 26)", ending(unaccepted), accept},
	{"retire", "clean", "", "remove what this host keeps for the lifecycle", ending(unclean), do(Clean)},
	{"retire", "destroy", events.VerbDestroy, "destroy the environment and prove its absence", ending(mustDestroy), dispatch(events.VerbDestroy)},
	{"retire", "wait", "", "the last attempt failed: wait before the next", ending(notGone), rest},
	{"retire", "release", "", "gate, head and slot are retired in one commit: the name is free", ending(always), release},

	{"expire", "expire", "", "the accepted lifetime is over", expired, terminalize("expired")},
	{"intent", "end", "", "the run that launched the seat for a user is over: it is not kept (D20)", unpreserved, terminalize(aggregates.ReasonNotPreserved)},
	{"spawn", "cancel", "", "the goal was cancelled", cancelled, terminalize("cancelled")},
	{"spawn", "fail", "", "creation was refused: what exists of it is taken down", refused, terminalize("failed")},
	{"spawn", "give-up", "", "creation was proved never to land too often", exhausted, giveUp},
	{"spawn", "exited", "", "the process ended with a failure before it was ready", exitedEarly, exitedEarlyFault},
	{"operate", "observe", "", "look at what the provider holds", living(changed), do(Observe)},
	{"spawn", "probe", "", "describe the image and preflight the plan", creating(unprobed), do(Probe)},
	{"spawn", "reserve", events.VerbReserve, "reserve at the provider; the answer binds the reference", creating(unreserved), dispatch(events.VerbReserve)},
	{"spawn", "mint", "", "make the seat's credential and stage its bytes", creating(unminted), do(Mint)},
	{"spawn", "provision", events.VerbProvision, "admit issuance, write the ledger row, provision", creating(unprovisioned), provision},
	{"spawn", "start", events.VerbStart, "release the credential and start the seat", creating(unstarted), start},
	{"spawn", "activate", "", "the seat runs: it is managed from here", creating(ready), activate},
	{"spawn", "watch", "", "it was started and does not run yet: look again", creating(settling), do(Observe)},
	{"spawn", "wait", "", "the last attempt failed: wait before the next", creating(delayed), rest},

	{"operate", "drop", "", "what was asked is no longer possible", active(impossible), dropNext},
	{"extend", "extend", events.VerbExtend, "one bounded step of an extension (R28, R29)", active(next(events.VerbExtend)), extend},
	{"pause", "pause", events.VerbPause, "freeze the seat", active(next(events.VerbPause)), dispatchNext},
	{"resume", "resume", events.VerbResume, "thaw the seat", active(next(events.VerbResume)), dispatchNext},
	{"checkpoint", "checkpoint", events.VerbCheckpoint, "capture a state that the provider keeps", active(next(events.VerbCheckpoint)), dispatchNext},
	{"restore", "restore", events.VerbRestore, "put the seat back to a state that the provider keeps", active(next(events.VerbRestore)), dispatchNext},
	{"export", "export", events.VerbExport, "have the provider produce a file", active(next(events.VerbExport)), dispatchNext},
	{"export", "accept", "", "copy the file, enforcing length and digest (R37)", active(unaccepted), accept},
}
