package head

import (
	"slices"

	"berth/events"
	"berth/events/fault"
)

// Meaning is what an event means to the head and to its gate, and for which
// lifecycle; an empty On says that it does not move that one.
type Meaning struct {
	UID  events.UID
	Head On
	Gate GateOn
}

// MeaningOf is the meaning of an event; ok is false when it does not concern
// a head.
func MeaningOf(e events.Event) (m Meaning, ok bool) {
	switch e := e.(type) {
	case events.HeadActivated:
		return Meaning{e.UID, OnActivate, OnFreezeFirst}, true
	case events.HeadEpochAdvanced:
		return Meaning{e.UID, OnAdvance, ""}, true
	case events.HeadRetiring:
		return Meaning{e.UID, OnRetire, ""}, true
	case events.HeadRetired:
		return Meaning{e.UID, OnComplete, ""}, true
	case events.GateOpened:
		return Meaning{e.UID, "", OnOpen}, true
	case events.GateFrozen:
		return Meaning{e.UID, "", OnFreeze}, true
	case events.GateRetired:
		return Meaning{e.UID, "", OnGateRetire}, true
	case events.CredentialMinted:
		return Meaning{e.UID, "", OnMint}, true
	case events.CredentialReleased:
		return Meaning{e.UID, OnRelease, ""}, true
	case events.CredentialRevoked:
		return Meaning{e.UID, "", ""}, true
	case events.EnvironmentWrittenOff:
		return Meaning{e.UID, OnWriteOff, OnGateOff}, true
	}
	return Meaning{}, false
}

// Check refuses an event that the tables do not allow now
// (failed-precondition), that is of another lifecycle (expired) or brings back
// one that is over (permission-denied), or that would write a credential's row
// a second time (conflict).
func (s *State) Check(e events.Event) error {
	m, ok := MeaningOf(e)
	if !ok {
		return nil
	}
	return s.check(m, e)
}

func (s *State) check(m Meaning, e events.Event) error {
	if m.Head != OnActivate && m.UID != s.UID {
		return fault.New(fault.Expired, "lifecycle %s is no longer the current one", m.UID)
	}
	if m.Head != "" {
		if _, ok := Table.Next(s.Phase, m.Head); !ok {
			return Table.Refuse(s.Phase, m.Head)
		}
	}
	if m.Gate != "" {
		if _, ok := GateTable.Next(s.Gate.Phase, m.Gate); !ok {
			return GateTable.Refuse(s.Gate.Phase, m.Gate)
		}
	}
	switch e := e.(type) {
	case events.HeadActivated:
		if e.UID == s.UID {
			return fault.New(fault.PermissionDenied, "lifecycle %s is retired and never returns", e.UID)
		}
	case events.CredentialMinted:
		if _, twice := s.Credential(e.Credential); twice {
			return fault.New(fault.Conflict, "credential %s is in the ledger already", e.Credential)
		}
	}
	return nil
}

// Apply folds one event. What does not concern a head, is of another lifecycle
// or is not in the tables leaves it as it is: nothing brings back a revoked
// credential or a retired lifecycle.
func (s State) Apply(e events.Event) State {
	s.Fold(e)
	return s
}

// Fold is Apply in place. The ledger is shared with other copies, and is
// replaced, never changed.
func (s *State) Fold(e events.Event) {
	m, ok := MeaningOf(e)
	if !ok || s.check(m, e) != nil {
		return
	}
	head, _ := Table.Next(s.Phase, m.Head)
	gate, _ := GateTable.Next(s.Gate.Phase, m.Gate)
	s.take(e)
	s.Phase, s.Gate.Phase = head, gate
}

// take is what an allowed event changes beside the phases.
func (s *State) take(e events.Event) {
	switch e := e.(type) {
	case events.HeadActivated:
		*s = State{UID: e.UID, Epoch: 1, Gate: Gate{Operation: e.Operation, Kind: "activation"}}
	case events.GateOpened:
		s.Gate = Gate{Generation: e.Generation}
	case events.GateFrozen:
		s.Gate = Gate{Generation: s.Gate.Generation, Operation: e.Operation, Kind: e.Kind}
	case events.GateRetired:
		s.Gate = Gate{Generation: s.Gate.Generation, Operation: e.Operation, Kind: s.Gate.Kind}
	case events.HeadEpochAdvanced:
		s.Epoch, s.Current, s.LastTakeOver = e.Epoch, "", e.Operation
	case events.CredentialMinted:
		s.Ledger = append(slices.Clip(s.Ledger), Credential{ID: e.Credential, Holder: e.Holder, Generation: e.Generation, ExpiresAt: e.ExpiresAt, Source: e.BearerSource})
	case events.CredentialReleased:
		s.Current = e.Credential
	case events.CredentialRevoked:
		s.revoke(func(c Credential) bool { return c.ID == e.Credential })
	case events.HeadRetiring:
		s.Operation = e.Operation
	case events.HeadRetired:
		s.Operation = ""
	case events.EnvironmentWrittenOff:
		s.Operation = ""
		s.revoke(func(Credential) bool { return true })
	}
}

func (s *State) revoke(which func(Credential) bool) {
	s.Ledger = slices.Clone(s.Ledger)
	for i := range s.Ledger {
		s.Ledger[i].Revoked = s.Ledger[i].Revoked || which(s.Ledger[i])
	}
}
