package aggregates

import (
	"time"

	"berth/aggregates/environment"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/fault"
)

// Claim is what begins a lifecycle on a name.
type Claim struct {
	UID         events.UID
	Environment events.EnvironmentID
	Activation  events.OperationID // that freezes the gate until reservation
	Goal        events.Boundary
	Holder      events.InstanceID
	Plan        events.Plan
	Target      events.Target
	Deadline    *time.Time
	Ready       time.Time
}

// Claim takes the name for a fresh lifecycle. A name that is held is refused
// with what holds it.
func (s Seat) Claim(c Claim) ([]events.Event, error) {
	if err := s.readable(); err != nil {
		return nil, err
	}
	if s.Slot.Held() {
		if s.Slot.UID == c.UID {
			return nil, nil
		}
		return nil, s.taken()
	}
	activated, err := s.Head.Activate(c.UID, c.Activation)
	if err != nil {
		return nil, err
	}
	claimed := events.SlotClaimed{
		UID: c.UID, Environment: c.Environment, Goal: string(c.Goal), Holder: c.Holder,
		Plan: c.Plan, Target: c.Target, Deadline: c.Deadline, Ready: c.Ready,
	}
	return append([]events.Event{claimed}, activated...), nil
}

// taken says what holds the name, and what can be done (scenario 13).
func (s Seat) taken() *fault.Error {
	e := fault.New(fault.FailedPrecondition, "the name %s is held: its environment is %s", s.Alias, s.Status()).
		WithHint("choose another name, or `berth retire %s` first", s.Alias)
	kv := []string{"name", string(s.Alias), "owner", string(s.Owner), "slotLifecycleUid", string(s.Slot.UID), "slotPhase", string(s.Slot.Phase), "ownerInstanceId", string(s.Slot.Holder), "status", string(s.Status())}
	if op, ok := s.Environment.Last(); ok && op.Open() {
		kv = append(kv, "operation", string(op.ID), "verb", string(op.Verb), "phase", string(op.Phase))
	}
	return e.WithDetail("berth.slot-held", kv...)
}

// RetirementID is the one operation id of a lifecycle's retirement (decision 9).
func RetirementID(uid events.UID) events.OperationID {
	return events.OperationID("retire-" + string(uid))
}

// Retire begins the end of the current lifecycle. It is idempotent; with uid
// set, another lifecycle is refused with expired. Whatever is open is
// reconciled first: retiring is never refused because of it (scenario 19).
func (s Seat) Retire(uid events.UID, reason string, grace time.Duration) ([]events.Event, error) {
	if err := s.held(); err != nil {
		return nil, err
	}
	if uid != "" {
		if err := s.Slot.Is(uid); err != nil {
			return nil, err
		}
	}
	if s.Slot.Phase == slot.Terminalizing {
		return nil, nil
	}
	barrier, err := s.Head.BeginRetirement(s.Slot.UID, RetirementID(s.Slot.UID))
	if err != nil {
		return nil, err
	}
	end := events.SlotTerminalizing{UID: s.Slot.UID, Reason: reason}
	if grace > 0 {
		end.Grace = grace.String()
	}
	return append([]events.Event{end}, barrier...), nil
}

// Advance moves the target of a seat that is on its way: reserve, provision
// and start are the same life, asked for in parts.
func (s Seat) Advance(t events.Target) ([]events.Event, error) {
	if err := s.held(); err != nil {
		return nil, err
	}
	order := map[events.Target]int{events.TargetReserved: 1, events.TargetProvisioned: 2, events.TargetRunning: 3}
	switch {
	case s.Slot.Phase == slot.Terminalizing:
		return nil, slot.Table.Refuse(s.Slot.Phase, slot.OnActivate)
	case order[s.Environment.Target] >= order[t]:
		return nil, nil
	}
	return []events.Event{events.TargetChanged{Environment: s.Environment.ID, Target: t}}, nil
}

// Plan queues a mutation of a running seat. It is dispatched when nothing
// else is open. Refusals are typed and before any effect (R7, R9, R26, R89).
func (s Seat) Plan(e events.OperationPlanned, now time.Time) ([]events.Event, error) {
	if err := s.held(); err != nil {
		return nil, err
	}
	env := s.Environment
	if _, ok := env.Find(e.Operation); ok {
		return nil, nil
	}
	if s.Slot.Phase != slot.Active {
		return nil, fault.New(fault.FailedPrecondition, "%s is %s: %s needs a running environment", s.Alias, s.Status(), e.Verb)
	}
	if len(env.Queue) >= environment.MaxQueue {
		return nil, fault.New(fault.ResourceExhausted, "%s has %d operations waiting, which is the limit", s.Alias, environment.MaxQueue)
	}
	if err := s.able(e, now); err != nil {
		return nil, err
	}
	e.Environment = env.ID
	return []events.Event{e}, nil
}

// able checks state and capability for one verb.
func (s Seat) able(e events.OperationPlanned, now time.Time) error {
	env, caps := s.Environment, s.Environment.Capabilities
	no := func(what string) error {
		return fault.New(fault.Unimplemented, "%s can't be %s: provider %s does not have that capability for it", s.Alias, what, env.Plan.Provider)
	}
	wrong := func(want string) error {
		return fault.New(fault.FailedPrecondition, "%s is %s: %s needs it to be %s", s.Alias, s.Status(), e.Verb, want)
	}
	running := env.Record == environment.Running
	switch e.Verb {
	case events.VerbPause:
		switch {
		case !caps.PauseKeepsMemory:
			return no("paused") // R9
		case !running || env.Paused:
			return wrong("running")
		}
	case events.VerbResume:
		if !running || !s.pausing() {
			return wrong("paused")
		}
	case events.VerbExtend:
		return s.extendable(e, now)
	case events.VerbCheckpoint:
		switch {
		case !caps.ColdCheckpoint && !caps.MemoryCheckpoint:
			return no("checkpointed")
		case len(env.Checkpoints) >= environment.MaxCheckpoints:
			return fault.New(fault.ResourceExhausted, "%s has %d checkpoints, which is the limit", s.Alias, environment.MaxCheckpoints)
		}
	case events.VerbExport:
		if !caps.Export {
			return no("exported")
		}
	default:
		return fault.New(fault.BadRequest, "%s is not something that can be asked for", e.Verb)
	}
	return nil
}

// pausing says that the seat is paused, or will be when its queue is done.
func (s Seat) pausing() bool {
	paused := s.Environment.Paused
	if op := s.Environment.Operation; op != nil {
		paused = after(op.Verb, paused)
	}
	for _, q := range s.Environment.Queue {
		paused = after(q.Verb, paused)
	}
	return paused
}

func after(v events.Verb, paused bool) bool {
	switch v {
	case events.VerbPause:
		return true
	case events.VerbResume:
		return false
	}
	return paused
}

// extendable keeps R26 and scenarios 30 and 31: an extension never shortens a
// life, and one that is over is not extended.
func (s Seat) extendable(e events.OperationPlanned, now time.Time) error {
	env := s.Environment
	switch {
	case env.Capabilities.Extend.StepMs == 0:
		return fault.New(fault.Unimplemented, "%s can't be extended: provider %s does not have that capability for it", s.Alias, env.Plan.Provider)
	case e.Arguments.ExtendTo == nil:
		return fault.New(fault.BadRequest, "extend needs a deadline")
	case env.Deadline == nil:
		return fault.New(fault.FailedPrecondition, "%s has no deadline to extend", s.Alias)
	case !now.Before(*env.Deadline):
		return fault.New(fault.Expired, "the lifetime of %s is over", s.Alias)
	case !e.Arguments.ExtendTo.After(*env.Deadline):
		return fault.New(fault.FailedPrecondition, "%s already lives until %s: an extension never shortens a life", s.Alias, env.Deadline.Format(time.RFC3339))
	}
	return nil
}

// WriteOff frees the name and the reservation of an environment that can't be
// proved gone, by an operator with a reason (decision 13). The second result
// opens the environment's own boundary.
func (s Seat) WriteOff(by events.Caller, reason string) (seat, inherited []events.Event, err error) {
	if err := s.held(); err != nil {
		return nil, nil, err
	}
	env := s.Environment
	op := env.Operation
	if op == nil || op.Phase != environment.Uncertain {
		return nil, nil, fault.New(fault.FailedPrecondition, "%s is %s: only an environment whose operation is uncertain can be written off", s.Alias, s.Status()).
			WithHint("`berth retire %s` ends one that can be reached", s.Alias)
	}
	seat = []events.Event{events.EnvironmentWrittenOff{Environment: env.ID, UID: env.UID, By: by, Reason: reason}}
	inherited = []events.Event{events.EnvironmentInherited{
		Environment: env.ID, From: s.Boundary(), UID: env.UID, Holder: s.Slot.Holder, Plan: env.Plan, Ref: env.Ref,
		Open: events.OperationDispatched{Environment: env.ID, Operation: op.ID, Verb: op.Verb, Arguments: op.Arguments, Deadline: op.Deadline},
	}}
	return seat, inherited, nil
}

// TakeOver moves the seat to another instance or a later epoch: the event that
// makes a stale holder's append lose (decision 1).
func (s Seat) TakeOver(holder events.InstanceID, epoch uint64) ([]events.Event, error) {
	if err := s.held(); err != nil {
		return nil, err
	}
	if s.Slot.Holder == holder && s.Slot.Epoch >= epoch {
		return nil, nil
	}
	return []events.Event{events.SlotTakenOver{UID: s.Slot.UID, Holder: holder, Epoch: epoch}}, nil
}
