package sagas

import (
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

//house:pure

// Outcome turns the answer of a call into the events that record it, for the
// operation that is open on the seat. An answer for an operation that is not
// open any more decides nothing; one for an operation that became uncertain
// meanwhile is a late answer and ends the uncertainty (scenario 6). fresh is
// the id of the follow-up, if one is needed.
func Outcome(s aggregates.Seat, id events.OperationID, out providers.Outcome, fresh events.OperationID) []events.Event {
	op := s.Environment.Operation
	if op == nil || op.ID != id {
		return nil
	}
	env := s.Environment.ID
	late := op.Phase == environment.Uncertain
	switch {
	case out.Kind == providers.Done && late:
		e := events.OperationLanded{Environment: env, Operation: id, Facts: out.Facts, Evidence: "the late answer of the call"}
		return append([]events.Event{e}, followUp(s, *op, out.Facts, fresh)...)
	case out.Kind == providers.Done:
		e := events.OperationConfirmed{Environment: env, Operation: id, Facts: out.Facts}
		return append([]events.Event{e}, followUp(s, *op, out.Facts, fresh)...)
	case out.Kind == providers.Refused && late:
		return []events.Event{events.OperationExcluded{Environment: env, Operation: id, Evidence: "the late answer of the call: " + out.Fault.Message}}
	case out.Kind == providers.Refused:
		return []events.Event{events.OperationRefused{Environment: env, Operation: id, Fault: out.Fault}}
	case late:
		return nil
	}
	why := out.Fault
	if why == nil {
		why = fault.New(fault.Unavailable, "the answer was lost")
	}
	return []events.Event{events.OperationUncertain{Environment: env, Operation: id, Fault: why.WithOutcome(fault.Unknown)}}
}

// Found turns a finding about the open, uncertain operation into events: none
// while it is still unknown.
func Found(s aggregates.Seat, id events.OperationID, f providers.Finding, fresh events.OperationID) []events.Event {
	op := s.Environment.Operation
	if op == nil || op.ID != id || op.Phase != environment.Uncertain {
		return nil
	}
	switch f.Verdict {
	case providers.Landed:
		e := events.OperationLanded{Environment: s.Environment.ID, Operation: id, Facts: f.Facts, Evidence: f.Evidence}
		return append([]events.Event{e}, followUp(s, *op, f.Facts, fresh)...)
	case providers.Excluded:
		e := events.OperationExcluded{Environment: s.Environment.ID, Operation: id, Evidence: f.Evidence}
		return append([]events.Event{e}, onceMore(s, *op, fresh)...)
	}
	return nil
}

// onceMore plans the step of an extension again, under a new id, that was
// proved never to have happened: it had no effect, and what was asked for
// still stands (R29). It gives up after MaxExcluded in a row, when the life is
// ending, and when its end is as far away as was asked for already.
func onceMore(s aggregates.Seat, op environment.Operation, fresh events.OperationID) []events.Event {
	wanted := op.Arguments.Wanted
	env := s.Environment
	switch {
	case op.Verb != events.VerbExtend, wanted == nil, s.Slot.Phase != slot.Active, env.Gone,
		env.Deadline != nil && !env.Deadline.Before(*wanted), len(env.Queue) >= environment.MaxQueue, env.Unmoved(*wanted)+1 >= MaxExcluded:
		return nil
	}
	return []events.Event{events.OperationPlanned{Environment: env.ID, Operation: fresh, Verb: events.VerbExtend, Arguments: events.Arguments{ExtendTo: wanted}, Goal: string(op.Goal)}}
}

// followUp is what the success of an operation means beside its facts: a
// longer life, and the next bounded step of an extension (R29, R30).
func followUp(s aggregates.Seat, op environment.Operation, f events.Facts, fresh events.OperationID) []events.Event {
	if op.Verb != events.VerbExtend || op.Arguments.Wanted == nil {
		return nil
	}
	wanted := *op.Arguments.Wanted
	reached := wanted
	if f.ExpiresAt != nil && f.ExpiresAt.Before(wanted) {
		reached = *f.ExpiresAt
	}
	var es []events.Event
	if d := s.Environment.Deadline; d == nil || reached.After(*d) {
		es = append(es, events.DeadlineChanged{Environment: s.Environment.ID, Deadline: reached})
	}
	grew := op.Arguments.ExtendTo != nil && f.ExpiresAt != nil && (s.Environment.ExpiresAt == nil || f.ExpiresAt.After(*s.Environment.ExpiresAt))
	if reached.Before(wanted) && grew && len(s.Environment.Queue) < environment.MaxQueue {
		es = append(es, events.OperationPlanned{Environment: s.Environment.ID, Operation: fresh, Verb: events.VerbExtend, Arguments: events.Arguments{ExtendTo: &wanted}, Goal: string(op.Goal)})
	}
	return es
}

// Probed turns the answers of the read-only probe into one event: the whole
// capability set, or the refusal of the life (R7, R8, R12).
func Probed(s aggregates.Seat, image events.ImageDescription, pre providers.Preflight, host events.HostFacts) []events.Event {
	env := s.Environment
	if c, bad := pre.Failed(); bad {
		why := fault.New(fault.FailedPrecondition, "provider %s can't run this: check %s failed: %s", env.Plan.Provider, c.Name, c.Detail).
			WithDetail("berth.preflight", "check", c.Name, "detail", c.Detail)
		return []events.Event{events.EnvironmentRefused{Environment: env.ID, Fault: why, Checks: pre.Checks}}
	}
	return []events.Event{events.EnvironmentProbed{
		Environment: env.ID, Image: image, Network: pre.Network, Checks: pre.Checks, Capabilities: pre.Capabilities,
		ProbedAt: pre.ProbedAt, Host: host.Host, Architecture: host.Architecture, Engine: engineOf(host, env.Plan.Provider),
	}}
}

// engineOf is the engine that the host's facts name (R65). A host that names
// none runs the provider itself.
func engineOf(host events.HostFacts, provider string) string {
	if len(host.Engines) == 0 {
		return provider
	}
	return host.Engines[0].Name
}

// NotProbed ends the life when the probe itself was refused for good.
func NotProbed(s aggregates.Seat, why *fault.Error) []events.Event {
	return []events.Event{events.EnvironmentRefused{Environment: s.Environment.ID, Fault: why}}
}

// Observed turns an inspection into an event, if it says anything new.
func Observed(s aggregates.Seat, f events.Facts) []events.Event {
	e := s.Environment
	if e.ID == "" || e.Gone {
		return nil
	}
	after := e.Apply(events.Meta{}, events.EnvironmentObserved{Environment: e.ID, Facts: f})
	same := after.Record == e.Record && after.Paused == e.Paused && after.Ref == e.Ref && after.Incarnation == e.Incarnation &&
		after.Gone == e.Gone && after.Network == e.Network && after.Drift == e.Drift && sameTime(after.ExpiresAt, e.ExpiresAt) && (after.Ready == nil) == (e.Ready == nil)
	if same {
		return nil
	}
	return []events.Event{events.EnvironmentObserved{Environment: e.ID, Facts: f}}
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
