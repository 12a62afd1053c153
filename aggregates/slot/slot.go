// Package slot is the durable claim of an alias by an instance (rules.md 2.1).
// A slot is told apart from the name's earlier ones by its lifecycle uid.
package slot

import (
	"time"

	"berth/aggregates/machine"
	"berth/events"
	"berth/events/fault"
)

// Phase is where a claim stands.
type Phase string

// The phases of 2.1; None is a name that was never claimed.
const (
	None          Phase = ""
	Provisioning  Phase = "provisioning"
	Active        Phase = "active"
	Terminalizing Phase = "terminalizing"
	Retired       Phase = "retired"
)

// On is what may happen to a slot.
type On string

// The events of the table.
const (
	OnClaim       On = "claim"
	OnActivate    On = "activate"
	OnTerminalize On = "terminalize"
	OnClean       On = "clean"
	OnRetire      On = "retire"
	OnTakeOver    On = "take-over"
	OnWriteOff    On = "write-off"
)

// Table is rules.md 2.1.
var Table = machine.Table[Phase, On]{Name: "slot", Rows: []machine.Row[Phase, On]{
	{From: []Phase{None, Retired}, On: OnClaim, To: Provisioning, Guard: "a fresh uid"},
	{From: []Phase{Provisioning}, On: OnActivate, To: Active, Guard: "the seat runs"},
	{From: []Phase{Provisioning, Active}, On: OnTerminalize, To: Terminalizing, Guard: "uid equals the target"},
	{From: []Phase{Terminalizing}, On: OnClean, To: Terminalizing, Guard: "once"},
	{From: []Phase{Terminalizing}, On: OnRetire, To: Retired, Guard: "cleaned, gate and head retired, environment gone by proof"},
	{From: []Phase{Provisioning}, On: OnTakeOver, To: Provisioning, Guard: "higher epoch or another holder"},
	{From: []Phase{Active}, On: OnTakeOver, To: Active, Guard: "higher epoch or another holder"},
	{From: []Phase{Terminalizing}, On: OnTakeOver, To: Terminalizing, Guard: "higher epoch or another holder"},
	{From: []Phase{Provisioning, Active, Terminalizing}, On: OnWriteOff, To: Retired, Guard: "an operator, with a reason"},
}}

// State is the slot as folded. The zero value is a name never claimed.
type State struct {
	Phase     Phase
	UID       events.UID
	Holder    events.InstanceID
	Epoch     uint64 // of Holder when it claimed or took over (decision 1)
	Goal      events.Boundary
	ClaimedAt time.Time
	Ready     time.Time // readiness deadline of the spawn
	Reason    string    // why it ends
	Grace     time.Duration
	EndedAt   time.Time // when terminalizing began
	Cleaned   bool
	Activated bool // it was active, whatever came later
}

// Meaning is what an event means to a slot, and for which lifecycle; ok is
// false when it does not concern one.
func Meaning(e events.Event) (uid events.UID, on On, ok bool) {
	switch e := e.(type) {
	case events.SlotClaimed:
		return e.UID, OnClaim, true
	case events.SlotActivated:
		return e.UID, OnActivate, true
	case events.SlotTerminalizing:
		return e.UID, OnTerminalize, true
	case events.SlotCleaned:
		return e.UID, OnClean, true
	case events.SlotRetired:
		return e.UID, OnRetire, true
	case events.SlotTakenOver:
		return e.UID, OnTakeOver, true
	case events.EnvironmentWrittenOff:
		return e.UID, OnWriteOff, true
	}
	return "", "", false
}

// Check refuses an event that the table does not allow now
// (failed-precondition) or that is of another lifecycle (expired).
func (s *State) Check(e events.Event) error {
	uid, on, ok := Meaning(e)
	if !ok {
		return nil
	}
	return s.check(uid, on)
}

func (s *State) check(uid events.UID, on On) error {
	if err := s.Allow(on); err != nil {
		return err
	}
	if on == OnClaim {
		if uid == s.UID {
			return fault.New(fault.PermissionDenied, "lifecycle %s is retired and never returns", uid)
		}
		return nil
	}
	return s.Is(uid)
}

// Apply folds one event. What does not concern a slot, is of another
// lifecycle or is not in the table leaves it as it is.
func (s State) Apply(m events.Meta, e events.Event) State {
	s.Fold(&m, e)
	return s
}

// Fold is Apply in place. It answers false if the event concerns a slot and
// was not taken, else true.
func (s *State) Fold(m *events.Meta, e events.Event) bool {
	uid, on, ok := Meaning(e)
	if !ok {
		return true
	}
	if s.check(uid, on) != nil {
		return false
	}
	s.Phase, _ = Table.Next(s.Phase, on)
	switch e := e.(type) {
	case events.SlotClaimed:
		*s = State{Phase: s.Phase, UID: e.UID, Holder: e.Holder, Goal: events.Boundary(e.Goal), ClaimedAt: m.Time, Ready: e.Ready}
		if m.Writer.Instance == e.Holder {
			s.Epoch = m.Writer.Epoch
		}
	case events.SlotActivated:
		s.Activated = true
	case events.SlotTerminalizing:
		s.Reason, s.EndedAt = e.Reason, m.Time
		if e.Grace != "" {
			s.Grace, _ = time.ParseDuration(e.Grace)
		}
	case events.SlotCleaned:
		s.Cleaned = true
	case events.SlotTakenOver:
		s.Holder, s.Epoch = e.Holder, e.Epoch
	}
	return true
}

// Held says that the alias is not free.
func (s State) Held() bool { return s.Phase != None && s.Phase != Retired }

// Allow is the guard of the table: nil, or the typed refusal.
func (s State) Allow(on On) error {
	if _, ok := Table.Next(s.Phase, on); !ok {
		return Table.Refuse(s.Phase, on)
	}
	return nil
}

// Is refuses a uid that is not the current one: expired, not-executed.
func (s State) Is(uid events.UID) error {
	if s.UID != uid {
		return fault.New(fault.Expired, "lifecycle %s is no longer the current one of this name", uid)
	}
	return nil
}
