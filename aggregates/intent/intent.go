// Package intent is what a user allows a manager to do once, in the user's own
// name: to launch one seat or to retire one (rules.md 6, D1-D20). It is admitted
// by the user, used up by one compare-and-append that pins who executes it, and
// holds its name until there is an outcome. Where the executor is gone, another
// run sweeps it, and may then only end what it began.
package intent

import (
	"time"

	"berth/aggregates/machine"
	"berth/events"
	"berth/events/fault"
)

// Phase is where an intent stands.
type Phase string

// The phases; None was never admitted.
const (
	None     Phase = ""
	Admitted Phase = "admitted"
	Consumed Phase = "consumed"
	Swept    Phase = "swept"    // its executor is gone; only its end is left
	Held     Phase = "held"     // ended after a sweep; the name is not let go yet
	Ended    Phase = "ended"    // it has an outcome
	Released Phase = "released" // the name was let go
)

// On is what may happen to an intent.
type On string

// The events of the table.
const (
	OnAdmit   On = "admit"
	OnConsume On = "consume"
	OnSweep   On = "sweep"
	OnEnroll  On = "enroll"
	OnFinish  On = "finish"
	OnRelease On = "release"
)

// Table is rules.md 6, delegated user intent.
var Table = machine.Table[Phase, On]{Name: "intent", Rows: []machine.Row[Phase, On]{
	{From: []Phase{None}, On: OnAdmit, To: Admitted, Guard: "by the user, for one run of one instance, at most 300 s; no intent holds the name (D1, D2, D17)"},
	{From: []Phase{Admitted}, On: OnConsume, To: Consumed, Guard: "same instance, run, kind and target, not expired; pins the executor (D3-D6)"},
	{From: []Phase{Consumed}, On: OnEnroll, To: Ended, Guard: "a launch, active at the pinned uid, by the executor (D7, D15)"},
	{From: []Phase{Consumed}, On: OnFinish, To: Ended, Guard: "the pinned uid is retired by proof (D8, D10)"},
	{From: []Phase{Consumed}, On: OnSweep, To: Swept, Guard: "the executor is gone; the first wins (D11)"},
	{From: []Phase{Swept}, On: OnFinish, To: Held, Guard: "the pinned uid is retired by proof; never enrolled (D11)"},
	{From: []Phase{Consumed, Swept, Held}, On: OnRelease, To: Released, Guard: "the executor's instance started again, or an operator with a reason (D16)"},
}}

// MaxLife is how long an intent may wait to be used.
const MaxLife = 300 * time.Second

// State is an intent as folded. Nothing that it points to is changed in place.
type State struct {
	ID         events.GoalID
	Kind       events.IntentKind
	By         events.Caller
	Instance   events.InstanceID
	Epoch      uint64     // zero: the instance is gone, whoever holds the seat does it
	UID        events.UID // retire: the target; launch: what it was used for
	Request    string     // launch: JSON of what is launched, until it is used
	AdmittedAt time.Time
	ExpiresAt  time.Time
	Phase      Phase
	Used       events.CommandID   // the request that used it up
	Operation  events.OperationID // of its effect
	Executor   events.Writer
	SweptBy    events.Writer
	Outcome    events.IntentOutcome
	Reason     string // of its release
}

// Meaning is what an event means to an intent, and to which; ok is false when
// it does not concern one.
func Meaning(e events.Event) (id events.GoalID, on On, ok bool) {
	switch e := e.(type) {
	case events.IntentAdmitted:
		return e.Intent, OnAdmit, true
	case events.IntentConsumed:
		return e.Intent, OnConsume, true
	case events.IntentSwept:
		return e.Intent, OnSweep, true
	case events.IntentEnded:
		if e.Outcome == events.IntentEnrolled {
			return e.Intent, OnEnroll, true
		}
		return e.Intent, OnFinish, true
	case events.IntentReleased:
		return e.Intent, OnRelease, true
	}
	return "", "", false
}

// Apply folds one event of this intent; what the table does not allow leaves it
// as it is.
func (s State) Apply(m *events.Meta, e events.Event) State {
	_, on, ok := Meaning(e)
	if !ok {
		return s
	}
	if s.Phase, ok = Table.Next(s.Phase, on); !ok {
		return s
	}
	switch e := e.(type) {
	case events.IntentAdmitted:
		return State{ID: e.Intent, Kind: e.Kind, By: e.By, Instance: e.Instance, Epoch: e.Epoch, UID: e.UID, Request: string(e.Request),
			AdmittedAt: m.Time, ExpiresAt: e.ExpiresAt, Phase: s.Phase}
	case events.IntentConsumed:
		s.Used, s.UID, s.Operation, s.Executor = e.Request, e.UID, e.Operation, e.Executor
		s.Request = "" // the goal has it now
	case events.IntentSwept:
		s.SweptBy = e.By
	case events.IntentEnded:
		s.Outcome = e.Outcome
	case events.IntentReleased:
		s.Reason = e.Reason
	}
	return s
}

// Holds says that the name is held for it (D16): it was used, and its end is
// not proved or not vouched for yet.
func (s State) Holds() bool { return s.Phase == Consumed || s.Phase == Swept || s.Phase == Held }

// Over says that it can't be used any more and holds nothing: it may be
// forgotten.
func (s State) Over(now time.Time) bool {
	return s.Phase == Ended || s.Phase == Released || s.Phase == Admitted && now.After(s.ExpiresAt)
}

// Use is one request to execute an intent, as the manager that was asked for it
// says it.
type Use struct {
	Intent   events.GoalID
	Request  events.CommandID
	Kind     events.IntentKind
	Instance events.InstanceID
	Epoch    uint64
}

// Usable refuses a use that is not exactly what was admitted, by the run that it
// was admitted for (D3), one that is too late (D6), and one after another won
// (D5). done is true for a repeat of the request that used it: it reads the
// outcome and uses nothing (D12); another input under its id is a conflict. holder is who holds the seat, for an intent
// whose instance is gone (D19).
func (s State) Usable(u Use, self events.Writer, holder events.InstanceID, now time.Time) (done bool, err error) {
	instance, epoch := s.Instance, s.Epoch
	if epoch == 0 {
		instance, epoch = holder, self.Epoch
	}
	switch {
	case s.Phase != Admitted && s.Used == u.Request && s.Used != "":
		if u.Kind != s.Kind || (events.Writer{Instance: u.Instance, Epoch: u.Epoch}) != s.Executor {
			return false, fault.New(fault.Conflict, "request %s used intent %s with another input", u.Request, s.ID).WithHint("give each request an id of its own")
		}
		return true, nil
	case s.Phase != Admitted:
		return false, fault.New(fault.Conflict, "intent %s was used before, by request %s", s.ID, s.Used)
	case now.After(s.ExpiresAt):
		return false, fault.New(fault.FailedPrecondition, "intent %s had to be used before %s", s.ID, s.ExpiresAt.Format(time.RFC3339)).WithHint("let the user admit another")
	case u.Kind != s.Kind:
		return false, fault.New(fault.PermissionDenied, "intent %s allows to %s, nothing else", s.ID, s.Kind)
	case u.Instance != instance || self.Instance != instance:
		return false, fault.New(fault.PermissionDenied, "intent %s is for instance %s", s.ID, instance)
	case u.Epoch != self.Epoch:
		return false, fault.New(fault.Conflict, "the request names epoch %d, and the instance is in epoch %d", u.Epoch, self.Epoch)
	case u.Epoch != epoch:
		return false, fault.New(fault.PermissionDenied, "intent %s is for epoch %d of the instance, not for %d", s.ID, epoch, u.Epoch)
	}
	return false, nil
}
