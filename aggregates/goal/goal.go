// Package goal is a long-running command: accepted durably, with progress and
// exactly one terminal (rules.md 2.6). Terminals are immutable; an uncertain
// one may be followed by a settlement that stands beside it (decision 14).
package goal

import (
	"encoding/json"
	"slices"
	"time"

	"berth/aggregates/machine"
	"berth/events"
	"berth/events/fault"
)

// On is what may happen to a goal.
type On string

// The events of the table.
const (
	OnAccept    On = "accept"
	OnOffer     On = "offer"
	OnDecline   On = "decline"
	OnClaim     On = "claim"
	OnRename    On = "rename"
	OnProgress  On = "progress"
	OnWait      On = "wait"
	OnCancel    On = "cancel"
	OnSucceed   On = "succeed"
	OnFail      On = "fail"
	OnCancelled On = "end-cancelled"
	OnExpire    On = "expire"
	OnLose      On = "end-uncertain"
	OnSettle    On = "settle"
)

// CommandTurn is the command of a goal that is one turn of a seat.
const CommandTurn = "turn"

// PhaseWaiting is the progress that says: nothing can be done now.
const PhaseWaiting = "waiting"

// None is a goal that was never accepted.
const None events.GoalState = ""

// live is where an instance works on the goal; open is there also while none does.
var (
	live = []events.GoalState{events.GoalStateAccepted, events.GoalStateRunning, events.GoalStateWaiting, events.GoalStateCancelling}
	open = append([]events.GoalState{events.GoalStateOffered}, live...)
)

// Table is rules.md 2.6.
var Table = machine.Table[events.GoalState, On]{Name: "goal", Rows: []machine.Row[events.GoalState, On]{
	{From: []events.GoalState{None}, On: OnAccept, To: events.GoalStateAccepted, Guard: "create-only"},
	{From: []events.GoalState{events.GoalStateAccepted}, On: OnOffer, To: events.GoalStateOffered, Guard: "in the commit of the acceptance: it can't run there"},
	{From: []events.GoalState{events.GoalStateOffered}, On: OnDecline, To: events.GoalStateOffered, Guard: "once for each instance"},
	{From: []events.GoalState{events.GoalStateOffered}, On: OnClaim, To: events.GoalStateAccepted, Guard: "before the offer's deadline; the first wins"},
	{From: []events.GoalState{events.GoalStateAccepted}, On: OnRename, To: events.GoalStateAccepted, Guard: "nobody chose the name, and it was lost before anything was made"},
	{From: []events.GoalState{events.GoalStateAccepted, events.GoalStateRunning, events.GoalStateWaiting}, On: OnProgress, To: events.GoalStateRunning, Guard: "a step that a person may want to see"},
	{From: []events.GoalState{events.GoalStateAccepted, events.GoalStateRunning, events.GoalStateWaiting}, On: OnWait, To: events.GoalStateWaiting, Guard: "progress of the phase waiting"},
	{From: []events.GoalState{events.GoalStateAccepted, events.GoalStateRunning, events.GoalStateWaiting}, On: OnCancel, To: events.GoalStateCancelling, Guard: "repeat is idempotent"},
	{From: live, On: OnSucceed, To: events.GoalSucceeded, Guard: "first terminal wins"},
	{From: live, On: OnFail, To: events.GoalFailed, Guard: "first terminal wins"},
	{From: open, On: OnCancelled, To: events.GoalCancelled, Guard: "first terminal wins"},
	{From: open, On: OnExpire, To: events.GoalExpired, Guard: "first terminal wins"},
	{From: live, On: OnLose, To: events.GoalUncertain, Guard: "not before the readiness deadline"},
	{From: []events.GoalState{events.GoalUncertain}, On: OnSettle, To: events.GoalUncertain, Guard: "once, beside the terminal"},
}}

// State is the goal as folded. The zero value was never accepted.
type State struct {
	State       events.GoalState
	Command     string
	Fingerprint string
	Request     json.RawMessage
	Holder      events.InstanceID
	Allocated   events.Allocation
	AcceptedAt  time.Time
	AcceptedBy  events.Writer
	Ready       time.Time
	Until       time.Time // deadline of the offer, zero if it never was offered
	Declined    []Decline // never changed in place
	Phase       string    // last progress
	CancelMode  string
	EndedAt     time.Time
	Fault       *fault.Error
	Result      json.RawMessage
	Settled     *events.GoalSettled
}

// ends is what each terminal means.
var ends = map[events.GoalState]On{events.GoalSucceeded: OnSucceed, events.GoalFailed: OnFail, events.GoalCancelled: OnCancelled,
	events.GoalExpired: OnExpire, events.GoalUncertain: OnLose}

// Meaning is what an event means to a goal; ok is false when it does not
// concern one.
func Meaning(e events.Event) (on On, ok bool) {
	switch e := e.(type) {
	case events.GoalAccepted:
		return OnAccept, true
	case events.GoalOffered:
		return OnOffer, true
	case events.GoalDeclined:
		return OnDecline, true
	case events.GoalClaimed:
		return OnClaim, true
	case events.GoalRenamed:
		return OnRename, true
	case events.GoalProgressed:
		if e.Phase == PhaseWaiting {
			return OnWait, true
		}
		return OnProgress, true
	case events.GoalCancelRequested:
		return OnCancel, true
	case events.GoalEnded:
		return ends[e.State], true
	case events.GoalSettled:
		return OnSettle, true
	}
	return "", false
}

// Apply folds one event. What the table does not allow leaves the goal as it
// is: the first terminal wins, and the first settlement stands beside it.
func (s State) Apply(m events.Meta, e events.Event) State {
	on, ok := Meaning(e)
	if !ok {
		return s
	}
	if s.State, ok = Table.Next(s.State, on); !ok {
		return s
	}
	switch e := e.(type) {
	case events.GoalAccepted:
		return State{State: s.State, Command: e.Command, Fingerprint: e.Fingerprint, Request: e.Request, Holder: e.Holder, Allocated: e.Allocated, AcceptedAt: m.Time, AcceptedBy: m.Writer, Ready: e.Ready}
	case events.GoalOffered:
		s.Holder, s.Until, s.Declined = "", e.Until, []Decline{{e.By, e.Reason}}
	case events.GoalDeclined:
		s.Declined = append(slices.Clip(s.Declined), Decline{e.Instance, e.Reason})
	case events.GoalClaimed:
		s.Holder = e.Instance
	case events.GoalRenamed:
		s.Allocated = e.Allocated
	case events.GoalProgressed:
		s.Phase = e.Phase
	case events.GoalCancelRequested:
		s.CancelMode = e.Mode
	case events.GoalEnded:
		s.Fault, s.Result, s.EndedAt = e.Fault, e.Result, m.Time
	case events.GoalSettled:
		if s.Settled == nil {
			s.Settled = &e
		}
	}
	return s
}

// Accept binds the id to a request. A repeat with the same fingerprint decides
// nothing; another fingerprint is a conflict.
func (s State) Accept(e events.GoalAccepted) ([]events.Event, error) {
	if s.State != None {
		if s.Fingerprint != e.Fingerprint {
			return nil, fault.New(fault.Conflict, "this goal id was used for another request").
				WithHint("use a new goal id, or ask for the first request's result with `berth goal`")
		}
		return nil, nil
	}
	return []events.Event{e}, nil
}

// Rename goes on under another identity after the one that was lost; nothing if
// the goal has gone on meanwhile.
func (s State) Rename(lost events.UID, next events.Allocation, reason string) []events.Event {
	if _, ok := Table.Next(s.State, OnRename); !ok || s.Allocated.UID != lost {
		return nil
	}
	return []events.Event{events.GoalRenamed{Allocated: next, Reason: reason}}
}

// Progress tells a step; nothing once the goal is ending.
func (s State) Progress(phase, detail string) []events.Event {
	if _, ok := Table.Next(s.State, OnProgress); !ok || s.Phase == phase {
		return nil
	}
	return []events.Event{events.GoalProgressed{Phase: phase, Detail: detail}}
}

// Cancel asks the goal to end. Repeats decide nothing; unknown and terminal
// goals refuse with failed-precondition.
func (s State) Cancel(mode string) ([]events.Event, error) {
	switch {
	case mode != "graceful" && mode != "terminate":
		return nil, fault.New(fault.BadRequest, "mode %q is not valid: graceful or terminate", mode)
	case s.State == events.GoalStateCancelling:
		return nil, nil
	case s.State == events.GoalStateOffered: // nobody has begun it, and nobody can any more
		return s.End(events.GoalCancelled, fault.New(fault.Cancelled, "the goal was cancelled before an instance claimed it").WithOutcome(fault.NotExecuted), nil), nil
	}
	if _, ok := Table.Next(s.State, OnCancel); !ok {
		return nil, Table.Refuse(s.State, OnCancel)
	}
	return []events.Event{events.GoalCancelRequested{Mode: mode}}, nil
}

// End takes the one terminal; a goal that has one decides nothing. Whoever ends
// a spawn as uncertain has waited for its readiness deadline first (2.6).
func (s State) End(state events.GoalState, why *fault.Error, result json.RawMessage) []events.Event {
	if s.State == None || s.State.Terminal() || !state.Terminal() {
		return nil
	}
	return []events.Event{events.GoalEnded{State: state, Fault: why, Result: result}}
}

// Settle tells what an uncertain goal turned out to be, once.
func (s State) Settle(state events.GoalState, why *fault.Error, result json.RawMessage) []events.Event {
	if s.State != events.GoalUncertain || s.Settled != nil || state == events.GoalUncertain || !state.Terminal() {
		return nil
	}
	return []events.Event{events.GoalSettled{State: state, Fault: why, Result: result}}
}

// Unsettled says that the goal ended uncertain and may still be settled
// (decision 14). One that ended so because nothing is kept of what it was about
// (expired) never will be.
func (s State) Unsettled() bool {
	return s.State == events.GoalUncertain && s.Settled == nil && (s.Fault == nil || s.Fault.Code != fault.Expired)
}

// Answer is what the acceptance of a spawn promised, as its result.
func (s State) Answer() json.RawMessage {
	b, err := json.Marshal(s.Allocated)
	if err != nil {
		return nil
	}
	return b
}
