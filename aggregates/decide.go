package aggregates

import (
	"time"

	"berth/aggregates/environment"
	"berth/aggregates/head"
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
func (s Seat) Claim(c Claim) ([]events.Event, error) { return s.claim(c, "") }

// claim is Claim by the intent that may hold the name, if one does (D17).
func (s Seat) claim(c Claim, by events.GoalID) ([]events.Event, error) {
	if err := s.readable(); err != nil {
		return nil, err
	}
	if err := s.unheld(by); err != nil {
		return nil, err
	}
	if c.UID == "" || c.Environment == "" || c.Environment == s.Environment.ID && c.UID != s.Slot.UID {
		return nil, fault.New(fault.BadRequest, "a claim of %s needs a fresh lifecycle uid and a fresh environment id", s.Alias) // R61
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

// DetailSlotHeld is the kind of the detail that says what holds a name.
const DetailSlotHeld = "berth.slot-held"

// taken says what holds the name, and what can be done (scenario 13).
func (s Seat) taken() *fault.Error {
	e := fault.New(fault.FailedPrecondition, "the name %s is held: its environment is %s", s.Alias, s.Status()).
		WithHint("choose another name, or `berth retire %s` first", s.Alias)
	kv := []string{"name", string(s.Alias), "owner", string(s.Owner), "slotLifecycleUid", string(s.Slot.UID), "slotPhase", string(s.Slot.Phase), "ownerInstanceId", string(s.Slot.Holder), "status", string(s.Status())}
	if op, ok := s.Environment.Last(); ok && op.Open() {
		kv = append(kv, "operation", string(op.ID), "verb", string(op.Verb), "phase", string(op.Phase))
	}
	e = e.WithDetail(DetailSlotHeld, kv...)
	if b, ok := s.Barrier(); ok {
		return b.on(e, s.Alias)
	}
	return e
}

// RetirementID is the one operation id of a lifecycle's retirement (decision 9).
func RetirementID(uid events.UID) events.OperationID {
	return events.OperationID("retire-" + string(uid))
}

// Retire begins the end of the current lifecycle. It is idempotent; with uid
// set, another lifecycle is refused with expired. Whatever is open is
// reconciled first: retiring is never refused because of it (scenario 19).
func (s Seat) Retire(uid events.UID, reason string, grace time.Duration) ([]events.Event, error) {
	if err := s.readable(); err != nil {
		return nil, err
	}
	if uid != "" && uid == s.Slot.UID && s.Slot.Phase == slot.Retired {
		return nil, nil
	}
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

// Release ends a retirement: gate, head and slot are retired in one commit and
// the name is free. It is refused until the host is cleaned, every credential
// is revoked and the environment is proved gone (2.5, law 2).
func (s Seat) Release() ([]events.Event, error) {
	if err := s.readable(); err != nil {
		return nil, err
	}
	if s.Slot.Phase == slot.Retired {
		return nil, nil
	}
	if err := s.Slot.Allow(slot.OnRetire); err != nil {
		return nil, err
	}
	es, err := s.Head.CompleteRetirement(RetirementID(s.Slot.UID))
	if err != nil {
		return nil, err
	}
	es = append(es, events.SlotRetired{UID: s.Slot.UID})
	es = append(es, s.finished()...)
	return es, s.Check(events.Meta{}, es...)
}

// free says that nothing of the lifecycle is left, or what is.
func (s Seat) free() error {
	env := s.Environment
	switch {
	case env.Operation != nil:
		return fault.New(fault.FailedPrecondition, "operation %s (%s) of %s is %s: the name stays held until it is proved", env.Operation.ID, env.Operation.Verb, s.Alias, env.Operation.Phase)
	case env.Ref != "" && !env.Gone:
		return fault.New(fault.FailedPrecondition, "the environment of %s is not proved gone yet", s.Alias)
	case !s.Slot.Cleaned:
		return fault.New(fault.FailedPrecondition, "the host is not cleaned of %s yet", s.Alias)
	case s.Head.Phase != head.Retired || s.Head.Gate.Phase != head.GateRetired:
		return fault.New(fault.FailedPrecondition, "the head of %s is %s and its gate %s", s.Alias, s.Head.Phase, s.Head.Gate.Phase)
	}
	return nil
}

// Advance moves the target of a seat that is on its way: reserve, provision
// and start are the same life, asked for in parts.
func (s Seat) Advance(t events.Target) ([]events.Event, error) {
	if err := s.held(); err != nil {
		return nil, err
	}
	order := map[events.Target]int{events.TargetReserved: 1, events.TargetProvisioned: 2, events.TargetRunning: 3}
	switch {
	case order[t] == 0:
		return nil, fault.New(fault.BadRequest, "%q is not a target to advance to: reserved, provisioned or running", t)
	case s.Slot.Phase == slot.Terminalizing:
		return nil, slot.Table.Refuse(s.Slot.Phase, slot.OnActivate)
	case s.Environment.Record == environment.Failed || s.Environment.Gone:
		return nil, fault.New(fault.FailedPrecondition, "%s is %s: it can only be retired", s.Alias, s.Status())
	case order[s.Environment.Target] >= order[t]:
		return nil, nil
	}
	return []events.Event{events.TargetChanged{Environment: s.Environment.ID, Target: t}}, nil
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
	if reason == "" {
		return nil, nil, fault.New(fault.BadRequest, "writing off %s needs a reason: history shows it for ever", s.Alias)
	}
	if op == nil || op.Phase != environment.Uncertain {
		return nil, nil, fault.New(fault.FailedPrecondition, "%s is %s: only an environment whose operation is uncertain can be written off", s.Alias, s.Status()).
			WithHint("`berth retire %s` ends one that can be reached", s.Alias)
	}
	seat = append([]events.Event{events.EnvironmentWrittenOff{Environment: env.ID, UID: env.UID, By: by, Reason: reason}}, s.writtenOff(by, reason)...)
	inherited = []events.Event{events.EnvironmentInherited{
		Environment: env.ID, From: s.Boundary(), UID: env.UID, Holder: s.Slot.Holder, Plan: env.Plan, Ref: env.Ref,
		Open: events.OperationDispatched{Environment: env.ID, Operation: op.ID, Verb: op.Verb, Arguments: op.Arguments, Deadline: op.Deadline},
	}}
	return seat, inherited, nil
}

// TakeOver moves the seat to another instance or a later epoch: the event that
// makes a stale holder's append lose (decision 1). An earlier epoch of the
// holder itself is refused with expired (law 3).
func (s Seat) TakeOver(holder events.InstanceID, epoch uint64) ([]events.Event, error) {
	if err := s.held(); err != nil {
		return nil, err
	}
	if s.Slot.Holder == holder {
		switch {
		case s.Slot.Epoch == epoch:
			return nil, nil
		case s.Slot.Epoch > epoch:
			return nil, fault.New(fault.Expired, "epoch %d of instance %s is over: %s is held by epoch %d", epoch, holder, s.Alias, s.Slot.Epoch)
		}
	}
	return []events.Event{events.SlotTakenOver{UID: s.Slot.UID, Holder: holder, Epoch: epoch}}, nil
}
