package projections

import (
	"fmt"
	"strings"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/head"
	"berth/events/fault"
)

// Explanation is in words why a name is as it is, and what may be done next.
type Explanation struct {
	Why  []string `json:"why"`
	Next []string `json:"next"`
}

func (e *Explanation) why(format string, args ...any) {
	e.Why = append(e.Why, fmt.Sprintf(format, args...))
}

func (e *Explanation) next(format string, args ...any) {
	e.Next = append(e.Next, fmt.Sprintf(format, args...))
}

// Explain says why a name is held, uncertain or refused, by what its boundary
// says, and what may be done about it.
func (i Inspection) Explain(now time.Time) Explanation {
	e := Explanation{Why: []string{}, Next: []string{}}
	i.explainStatus(&e, now)
	i.explainOperation(&e, now)
	i.explainGate(&e)
	if i.HolderAway {
		e.why("its instance %s was stopped: what is asked for is kept, and nothing is carried out until that instance is started", i.Slot.Holder)
		e.next("start that instance, or `berth takeover %s` at another one that reaches its provider", i.Slot.Holder)
	}
	if n := len(i.Queue); n > 0 {
		e.why("%s asked for and not begun, one after the other: %s", many(n, "operation is", "operations are"), verbs(i.Queue))
	}
	if i.Drift != "" && i.Environment != nil {
		e.why("its network was observed as %q, and %q was planned: it is not used for anything that needs the planned one (R25)", i.Drift, i.Environment.Network)
	}
	if n := i.Machines - 1 - i.Restores; n > 0 {
		e.why("the provider has replaced its machine %s: what was in its memory is gone", many(n, "time", "times"))
	}
	return e
}

// explainStatus is the one sentence about where it stands.
func (i Inspection) explainStatus(e *Explanation, now time.Time) {
	name := i.Alias
	switch i.Status {
	case aggregates.StatusHeld:
		e.why("a record of %s can't be read by this program, so nothing is decided on it; every other name goes on", name)
		e.next("use a newer berth: `berth doctor` names the record")
	case aggregates.StatusUncertain:
		e.why("the name and the reservation stay held until it is proved what became of its operation: absence from a list is no proof (law 2)")
	case aggregates.StatusReserved:
		e.why("it was asked to go as far as %s, and is there", i.Target)
		e.next("`berth start %s` goes on", name)
	case aggregates.StatusStarting:
		if sign := i.Plan.Sign(); sign != nil && i.Ready == nil && i.Environment != nil && i.Environment.State == environment.Running {
			e.why("its process runs, and it has not shown that it is ready: %s", sign)
			e.next("`berth logs %s` shows what it says; `berth retire %s` ends it", name, name)
			return
		}
		e.why("it is on its way to %s", i.Target)
		e.next("`berth history %s` shows how far it is", name)
	case aggregates.StatusRunning, aggregates.StatusPaused:
		e.why("it is %s%s", i.Status, until(i.Deadline, now))
		if i.Status == aggregates.StatusPaused {
			e.next("`berth resume %s` lets it go on", name)
		}
	case aggregates.StatusStopped:
		e.why("its seat has ended%s; the environment is kept until it is retired", exit(i.ExitCode))
		e.next("`berth logs %s` shows its last words, `berth retire %s` frees the name", name, name)
		if n := len(i.Checkpoints); n > 0 && i.Environment != nil && i.Environment.Capabilities.Snapshot && !i.Plan.Delegated {
			e.next("`berth restore %s %s` runs it again from its newest checkpoint", name, i.Checkpoints[n-1].ID)
		}
	case aggregates.StatusFailed:
		e.why("it failed%s, and nothing more is begun", because(i.Fault))
		e.next("`berth retire %s` frees the name; then it can be spawned again", name)
		return
	case aggregates.StatusStopping, aggregates.StatusRetiring:
		e.why("it is retired because of: %s; the name is freed only when the exit is proved, every credential is revoked and the environment is gone", or(i.Slot.Reason, "a request"))
		e.next("`berth retire %s --wait` returns when the name is free", name)
	case aggregates.StatusWrittenOff:
		e.why("it was written off by an operator without proof: it goes on being looked for, and is destroyed when it is found")
		e.next("`berth history %s` shows by whom and why; the name is free", name)
	case aggregates.StatusRetired:
		e.why("its last lifecycle has ended%s; the name is free", exit(i.ExitCode))
		e.next("`berth spawn %s` takes it again", name)
	}
	if i.Fault != nil {
		e.why("it was refused%s", because(i.Fault))
	}
}

// explainOperation is about the operation that is open or was last.
func (i Inspection) explainOperation(e *Explanation, now time.Time) {
	op := i.Operation
	if op == nil {
		return
	}
	since := now.Sub(time.UnixMilli(op.At)).Round(time.Second)
	switch op.State {
	case environment.Uncertain:
		e.why("the answer to %s (operation %s) was lost %s ago%s; the same operation is asked about, with growing pauses, and no other is sent", op.Verb, op.ID, since, because(op.Fault))
		e.next("wait: it ends as landed or as excluded; `berth history %s` shows each attempt", i.Alias)
		if op.Stuck {
			e.why("that has lasted longer than it should: look at the provider itself")
		}
		e.next("`berth write-off %s --reason TEXT` gives it up without proof, if two of it would do no harm", i.Alias)
	case environment.Dispatched:
		e.why("%s (operation %s) was sent to the provider %s ago and is not answered yet", op.Verb, op.ID, since)
		if op.Stuck {
			e.why("that has lasted longer than it should: look at the provider itself")
		}
	case environment.Refused:
		e.why("%s (operation %s) was refused%s; nothing of it was executed", op.Verb, op.ID, because(op.Fault))
		if op.Fault != nil && fault.RowOf(op.Fault.Code).Retryable {
			e.next("it is tried again with growing pauses, or ask again")
		}
	case environment.Excluded:
		e.why("%s (operation %s) is proved never to have happened and never to happen any more", op.Verb, op.ID)
	}
}

// explainGate is about what keeps credentials from being minted.
func (i Inspection) explainGate(e *Explanation) {
	if h := i.Head; h.Gate == head.GateFrozen {
		e.why("no credential is minted for it: %s %s has frozen the gate, and the head is %s", h.Kind, h.Operation, h.State)
	}
}

func until(deadline *int64, now time.Time) string {
	if deadline == nil {
		return ", until it is retired"
	}
	return " and may live for another " + time.UnixMilli(*deadline).Sub(now).Round(time.Second).String()
}

func exit(code *int) string {
	if code == nil {
		return ""
	}
	return fmt.Sprintf(" with exit code %d", *code)
}

func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func verbs(ops []OperationView) string {
	out := make([]string, len(ops))
	for i, o := range ops {
		out[i] = string(o.Verb)
	}
	return strings.Join(out, ", ")
}

func or(s, d string) string {
	if s == "" {
		return d
	}
	return s
}
