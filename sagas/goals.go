package sagas

import (
	"encoding/json"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/aggregates/slot"
	"berth/aggregates/turns"
	"berth/events"
	"berth/events/fault"
)

//house:pure

// NextGoal is what a goal's boundary should record next, given the seat that
// it is about: progress, the one terminal, or the settlement of an uncertain
// one. Status follows the fact and never leads (2.6).
func NextGoal(g goal.State, s aggregates.Seat, b events.Boundary, now time.Time) []events.Event {
	if g.State == goal.None || (g.State.Terminal() && (g.State != events.GoalUncertain || g.Settled != nil)) {
		return nil
	}
	var v verdict
	switch g.Command {
	case "spawn":
		v = spawnVerdict(g, s)
	case goal.CommandTurn:
		v = turnVerdict(g, s)
	default:
		v = operationVerdict(g, s, b)
	}
	switch {
	case v.state.Terminal() && g.State == events.GoalUncertain:
		return g.Settle(v.state, v.fault, v.result)
	case v.state.Terminal():
		return g.End(v.state, v.fault, v.result)
	case g.State == events.GoalUncertain:
		return nil
	case g.Command == "spawn" && bound(g, s) && !now.Before(g.Ready):
		why := fault.New(fault.DeadlineExceeded, "the success signal did not arrive within the readiness deadline; %s is %s", g.Allocated.Name, s.Status()).
			WithOutcome(fault.Unknown).WithHint("`berth inspect %s` shows it; asking again would make a second one", g.Allocated.Name)
		return g.End(events.GoalUncertain, why, nil)
	case v.phase != "":
		return g.Progress(v.phase, "")
	}
	return nil
}

// Unclaimed says that a spawn's name was not claimed by its readiness
// deadline. Nothing was executed then, and it may be expired by whoever has
// made sure that no claim can come any more. Before that it is continued
// (decision 2).
func Unclaimed(g goal.State, s aggregates.Seat, now time.Time) bool {
	return g.Command == "spawn" && g.State != goal.None && !bound(g, s) && !now.Before(g.Ready)
}

// Expire ends a spawn of which Unclaimed is true.
func Expire(g goal.State) []events.Event {
	why := fault.New(fault.Expired, "the name %s was not claimed before the readiness deadline was over", g.Allocated.Name).
		WithOutcome(fault.NotExecuted).WithHint("nothing was made: spawn it again")
	return g.End(events.GoalExpired, why, nil)
}

type verdict struct {
	state  events.GoalState
	phase  string
	fault  *fault.Error
	result json.RawMessage
}

// spawnVerdict reads a spawn's end off the seat: the exact uid that was
// allocated, active or gone (2.6).
func spawnVerdict(g goal.State, s aggregates.Seat) verdict {
	if s.Slot.UID != g.Allocated.UID {
		return verdict{} // not claimed yet, or long gone: decided at claim
	}
	env := s.Environment
	switch s.Slot.Phase {
	case slot.Active:
		return verdict{state: events.GoalSucceeded, result: g.Answer()}
	case slot.Provisioning:
		if s.Status() == aggregates.StatusReserved {
			return verdict{state: events.GoalSucceeded, result: g.Answer()}
		}
		return verdict{phase: phaseOf(env)}
	}
	if s.Slot.Activated && s.Slot.Reason != "cancelled" {
		return verdict{state: events.GoalSucceeded, result: g.Answer()} // its end came before anybody had looked
	}
	if env.WrittenOff {
		return verdict{state: events.GoalFailed, fault: fault.New(fault.Cancelled, "%s was written off by an operator", s.Alias).WithOutcome(fault.Unknown)}
	}
	switch {
	case env.Refusal == nil && s.Slot.Phase != slot.Retired:
		// It was ended before it was ready; whether anything is left of it is
		// not known before its end (scenario 22).
		return verdict{phase: "retiring"}
	case s.Slot.Reason == "cancelled" || g.State == events.GoalStateCancelling:
		return verdict{state: events.GoalCancelled, fault: fault.New(fault.Cancelled, "the goal was cancelled").WithOutcome(fault.Executed)}
	case s.Slot.Reason == "expired":
		return verdict{state: events.GoalExpired, fault: fault.New(fault.Expired, "the lifetime was over before %s was ready", s.Alias).WithOutcome(fault.Executed)}
	case env.Refusal != nil:
		return verdict{state: events.GoalFailed, fault: env.Refusal}
	}
	return verdict{state: events.GoalFailed, fault: fault.New(fault.FailedPrecondition, "%s was retired before it was ready", s.Alias).WithOutcome(fault.Executed)}
}

// phaseOf is the progress of a spawn that a person sees.
func phaseOf(e environment.State) string {
	switch {
	case e.Operation != nil && e.Operation.Phase == environment.Uncertain:
		return "uncertain"
	case e.Provisioned:
		return "starting"
	case e.Ref != "":
		return "provisioning"
	case !e.ProbedAt.IsZero():
		return "reserving"
	}
	return ""
}

// operationVerdict reads the end of a checkpoint, a restore or an export off
// the journal.
func operationVerdict(g goal.State, s aggregates.Seat, b events.Boundary) verdict {
	op, ok := s.Environment.Find(g.Allocated.Operation)
	switch {
	case !ok && s.Slot.Held() && forgotten(g, s):
		return verdict{state: events.GoalUncertain, fault: untold(s)}
	case !ok && s.Environment.ID == g.Allocated.Environment && s.Slot.Held():
		return verdict{} // not planned yet
	case !ok:
		return verdict{state: events.GoalUncertain, fault: fault.New(fault.Expired, "the environment ended, and what became of this is not kept").WithOutcome(fault.Unknown)}
	case op.Phase == environment.Cancelled:
		return verdict{state: events.GoalCancelled, fault: op.Fault}
	case op.Phase == environment.Refused:
		return verdict{state: events.GoalFailed, fault: op.Fault}
	case op.Phase == environment.Excluded && op.Verb == events.VerbRestore:
		return verdict{state: events.GoalFailed, fault: fault.New(fault.Unavailable, "the provider proved that the restore never happened: %s has the state that it had, and may have been ended for it", s.Alias).
			WithOutcome(fault.NotExecuted).WithHint("`berth inspect %s` shows whether it runs; repeat the restore", s.Alias)}
	case op.Phase == environment.Excluded:
		return verdict{state: events.GoalFailed, fault: fault.New(fault.Unavailable, "the provider proved that %s never happened", op.Verb).WithOutcome(fault.NotExecuted).
			WithHint("nothing was done: repeat it")}
	case op.Succeeded() && op.Verb == events.VerbCheckpoint && op.Facts != nil:
		return verdict{state: events.GoalSucceeded, result: mustJSON(op.Facts.Checkpoint)}
	case op.Succeeded() && op.Verb == events.VerbRestore:
		return verdict{state: events.GoalSucceeded, result: mustJSON(restored(s.Environment, op))}
	case op.Verb == events.VerbExport && op.File != nil:
		return verdict{state: events.GoalSucceeded, result: mustJSON(op.File)}
	case op.Succeeded() && op.Fault != nil:
		return verdict{state: events.GoalFailed, fault: op.Fault}
	case op.Succeeded() && !s.Slot.Held():
		return verdict{state: events.GoalFailed, fault: fault.New(fault.FailedPrecondition, "the environment ended before its file was copied").WithOutcome(fault.Executed)}
	case op.Phase == environment.Uncertain:
		return verdict{phase: "uncertain"}
	case op.Phase == environment.Planned:
		return verdict{}
	}
	return verdict{phase: string(op.Verb)}
}

// forgotten says of an operation or a turn that the seat's record does not have
// that it had it: its id is that of the command that put it there, and is never
// planned twice.
func forgotten(g goal.State, s aggregates.Seat) bool {
	_, done, old := s.Commands.Seen(events.CommandID(g.Allocated.Operation), g.Fingerprint)
	return done || old != nil
}

func untold(s aggregates.Seat) *fault.Error {
	return fault.New(fault.Expired, "so much was done at %s since that its record does not tell how this ended", s.Alias).
		WithOutcome(fault.Unknown).WithHint("`berth history %s` does", s.Alias)
}

// restored is the checkpoint that a seat was put back to.
func restored(e environment.State, op environment.Operation) events.Checkpoint {
	for _, c := range e.Checkpoints {
		if c.ID == op.Arguments.CheckpointID {
			return c
		}
	}
	return events.Checkpoint{ID: op.Arguments.CheckpointID}
}

// turnVerdict reads the end of a turn off the seat that it was relayed to.
func turnVerdict(g goal.State, s aggregates.Seat) verdict {
	t, ok := s.Turns.Find(g.Allocated.Operation)
	switch {
	case !ok && s.Slot.Held() && forgotten(g, s):
		return verdict{state: events.GoalUncertain, fault: untold(s)}
	case !ok && means(g, s) && s.Slot.Held():
		return verdict{} // not relayed yet
	case !ok:
		return verdict{state: events.GoalUncertain, fault: fault.New(fault.Expired, "%s ended, and what became of the turn is not kept", g.Allocated.Name).WithOutcome(fault.Unknown)}
	case t.Phase == turns.Pending && !s.Slot.Held(): // it was written off
		return verdict{state: events.GoalFailed, fault: fault.New(fault.FailedPrecondition, "%s was written off before it gave the turn back", s.Alias).WithOutcome(fault.Unknown)}
	case t.Phase == turns.Pending:
		return verdict{phase: "relayed"}
	}
	state, why, result := t.Verdict(s.Alias)
	return verdict{state: state, fault: why, result: result}
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("sagas: a result does not marshal: " + err.Error())
	}
	return b
}
