// Package head is the one current incarnation of (owner, actor) with its
// issuance gate and its credential ledger (rules.md 2.2, 2.3). One
// compare-and-append on the seat's boundary fences all three, so that a mint
// and a barrier can never both win.
package head

import (
	"slices"
	"time"

	"berth/aggregates/machine"
	"berth/events"
	"berth/events/fault"
)

// Phase is where the head stands.
type Phase string

// The phases of 2.2.
const (
	None     Phase = ""
	Active   Phase = "active"
	Retiring Phase = "retiring"
	Retired  Phase = "retired"
)

// On is what may happen to a head.
type On string

// The events of the head's table.
const (
	OnActivate On = "activate"
	OnAdvance  On = "advance-epoch"
	OnRelease  On = "release-credential"
	OnRetire   On = "begin-retirement"
	OnComplete On = "complete-retirement"
	OnWriteOff On = "write-off"
)

// Table is rules.md 2.2.
var Table = machine.Table[Phase, On]{Name: "head", Rows: []machine.Row[Phase, On]{
	{From: []Phase{None, Retired}, On: OnActivate, To: Active, Guard: "a fresh uid, epoch 1"},
	{From: []Phase{Active}, On: OnAdvance, To: Active, Guard: "epoch is the captured one; the current credential is cleared"},
	{From: []Phase{Active}, On: OnRelease, To: Active, Guard: "absent to value only"},
	{From: []Phase{Active}, On: OnRetire, To: Retiring, Guard: "uid equals; the same operation is idempotent"},
	{From: []Phase{Retiring}, On: OnComplete, To: Retired, Guard: "the same operation"},
	{From: []Phase{Active, Retiring}, On: OnWriteOff, To: Retired, Guard: "an operator, with a reason; every credential is revoked"},
}}

// GatePhase is whether credentials may be minted.
type GatePhase string

// The phases of 2.3.
const (
	GateNone    GatePhase = ""
	GateOpen    GatePhase = "open"
	GateFrozen  GatePhase = "frozen"
	GateRetired GatePhase = "retired"
)

// GateOn is what may happen to a gate.
type GateOn string

// The events of the gate's table.
const (
	OnFreezeFirst GateOn = "freeze-activation"
	OnFreeze      GateOn = "freeze"
	OnOpen        GateOn = "open"
	OnGateRetire  GateOn = "retire"
	OnMint        GateOn = "mint"
	OnGateOff     GateOn = "write-off"
)

// GateTable is rules.md 2.3.
var GateTable = machine.Table[GatePhase, GateOn]{Name: "gate", Rows: []machine.Row[GatePhase, GateOn]{
	{From: []GatePhase{GateNone, GateRetired}, On: OnFreezeFirst, To: GateFrozen, Guard: "activation of a fresh uid, generation 0"},
	{From: []GatePhase{GateOpen}, On: OnFreeze, To: GateFrozen, Guard: "takeover, registration or retirement"},
	{From: []GatePhase{GateFrozen}, On: OnFreeze, To: GateFrozen, Guard: "retirement of a lifecycle whose activation never finished"},
	{From: []GatePhase{GateFrozen}, On: OnOpen, To: GateOpen, Guard: "the same operation, never retirement; generation + 1"},
	{From: []GatePhase{GateFrozen}, On: OnGateRetire, To: GateRetired, Guard: "retirement or activation orphan, the same operation"},
	{From: []GatePhase{GateOpen}, On: OnMint, To: GateOpen, Guard: "a fresh credential id; the ledger is not full"},
	{From: []GatePhase{GateOpen, GateFrozen}, On: OnGateOff, To: GateRetired, Guard: "an operator, with a reason"},
}}

// MaxCredentials is how many rows one lifecycle's ledger may have.
const MaxCredentials = 64

// Gate is whether credentials may be minted, with what holds it.
type Gate struct {
	Phase      GatePhase
	Generation uint64
	Operation  events.OperationID
	Kind       string
}

// Credential is one row of the ledger.
type Credential struct {
	ID         events.CredentialID
	Holder     string
	Generation uint64
	ExpiresAt  *time.Time
	Source     *events.BearerSource // bound with it (R46); nil: none
	Revoked    bool
}

// State is the head as folded. The zero value is an actor that never was.
type State struct {
	Phase        Phase
	UID          events.UID
	Epoch        uint64
	Operation    events.OperationID // of the retirement, while retiring
	Current      events.CredentialID
	LastTakeOver events.OperationID
	Gate         Gate
	Ledger       []Credential
}

// Activate begins an incarnation: epoch 1, gate frozen under the activation.
func (s State) Activate(uid events.UID, op events.OperationID) ([]events.Event, error) {
	switch {
	case s.Phase == Active && s.UID != uid:
		return nil, fault.New(fault.AlreadyExists, "the actor is active at another lifecycle, %s", s.UID)
	case s.Phase == Active:
		return nil, nil
	case s.Phase == Retiring:
		return nil, s.blocked()
	case s.Phase == Retired && s.UID == uid:
		return nil, fault.New(fault.PermissionDenied, "lifecycle %s is retired and never returns", uid)
	}
	return []events.Event{events.HeadActivated{UID: uid, Operation: op}}, nil
}

// Open admits issuance: the final step of the operation that froze the gate.
func (s State) Open(op events.OperationID) ([]events.Event, error) {
	if s.Gate.Phase != GateFrozen {
		return nil, GateTable.Refuse(s.Gate.Phase, OnOpen)
	}
	if s.Gate.Operation != op || s.Gate.Kind == "retirement" {
		return nil, fault.New(fault.PermissionDenied, "the gate is frozen by %s %s", s.Gate.Kind, s.Gate.Operation)
	}
	return []events.Event{events.GateOpened{UID: s.UID, Operation: op, Generation: s.Gate.Generation + 1}}, nil
}

// Mint writes the ledger row of a credential, before its bytes leave (R52),
// and binds the bearer source with it (R46); nil is none.
func (s State) Mint(id events.CredentialID, holder string, expires *time.Time, source *events.BearerSource) ([]events.Event, error) {
	if source != nil {
		if err := source.Check(); err != nil {
			return nil, err
		}
	}
	if s.Phase != Active || s.Gate.Phase != GateOpen {
		return nil, s.blocked()
	}
	if c, ok := s.Credential(id); ok {
		if c.Holder == holder && !c.Revoked {
			return nil, nil
		}
		return nil, fault.New(fault.Conflict, "credential %s is in the ledger already", id).WithHint("mint under a fresh id")
	}
	if len(s.Ledger) >= MaxCredentials {
		return nil, fault.New(fault.ResourceExhausted, "this lifecycle has %d credentials, which is the limit", MaxCredentials)
	}
	return []events.Event{events.CredentialMinted{UID: s.UID, Credential: id, Holder: holder, Generation: s.Gate.Generation, ExpiresAt: expires, BearerSource: source}}, nil
}

// Credential is the ledger row of that id.
func (s State) Credential(id events.CredentialID) (Credential, bool) {
	i := slices.IndexFunc(s.Ledger, func(c Credential) bool { return c.ID == id })
	if i < 0 {
		return Credential{}, false
	}
	return s.Ledger[i], true
}

// Release makes a minted credential the current one: absent to value only
// (2.2). One that was revoked, or minted before the gate moved, is refused and
// nothing is released (2.3).
func (s State) Release(id events.CredentialID) ([]events.Event, error) {
	if s.Phase != Active || s.Gate.Phase != GateOpen {
		return nil, s.blocked()
	}
	c, ok := s.Credential(id)
	switch {
	case !ok:
		return nil, fault.New(fault.NotFound, "credential %s is not in the ledger", id)
	case c.Revoked || c.Generation != s.Gate.Generation:
		return nil, fault.New(fault.Expired, "credential %s is revoked or of an earlier generation of the gate", id)
	case s.Current == id:
		return nil, nil
	case s.Current != "":
		return nil, fault.New(fault.PermissionDenied, "another credential, %s, is current: it is replaced only through a barrier", s.Current)
	}
	return []events.Event{events.CredentialReleased{UID: s.UID, Credential: id}}, nil
}

// BeginRetirement freezes the gate and begins retirement, in one commit. The
// same operation again decides nothing.
func (s State) BeginRetirement(uid events.UID, op events.OperationID) ([]events.Event, error) {
	switch {
	case s.UID != uid:
		return nil, fault.New(fault.Expired, "lifecycle %s is no longer the current one", uid)
	case s.Phase == Retiring && s.Operation == op, s.Phase == Retired:
		return nil, nil
	case s.Phase != Active:
		return nil, fault.New(fault.PermissionDenied, "another retirement, %s, is in progress", s.Operation)
	}
	return []events.Event{
		events.GateFrozen{UID: uid, Operation: op, Kind: "retirement"},
		events.HeadRetiring{UID: uid, Operation: op},
	}, nil
}

// Revoke revokes every credential that still holds.
func (s State) Revoke() []events.Event {
	var out []events.Event
	for _, c := range s.Ledger {
		if !c.Revoked {
			out = append(out, events.CredentialRevoked{UID: s.UID, Credential: c.ID})
		}
	}
	return out
}

// CompleteRetirement asserts finished cleanup: every credential revoked.
func (s State) CompleteRetirement(op events.OperationID) ([]events.Event, error) {
	switch {
	case s.Phase == Retired:
		return nil, nil
	case s.Phase != Retiring || s.Operation != op:
		return nil, fault.New(fault.PermissionDenied, "retirement %s does not hold this head", op)
	case len(s.Revoke()) > 0:
		return nil, fault.New(fault.FailedPrecondition, "credentials of this lifecycle are not revoked yet")
	}
	return []events.Event{
		events.GateRetired{UID: s.UID, Operation: op},
		events.HeadRetired{UID: s.UID, Operation: op},
	}, nil
}

// Advance is a takeover: epoch N+1 under op (2.2).
func (s State) Advance(captured uint64, op events.OperationID) ([]events.Event, error) {
	switch {
	case s.Phase != Active:
		return nil, Table.Refuse(s.Phase, OnAdvance)
	case s.Epoch == captured+1 && s.LastTakeOver == op:
		return nil, nil
	case s.Epoch != captured:
		return nil, fault.New(fault.Conflict, "the epoch is %d, not %d", s.Epoch, captured)
	}
	return []events.Event{events.HeadEpochAdvanced{UID: s.UID, Operation: op, Epoch: captured + 1}}, nil
}

// DetailBlocked is the kind of the detail that says which operation holds a
// lifecycle, and where head and gate stand.
const DetailBlocked = "berth.lifecycle-blocked"

func (s State) blocked() *fault.Error {
	return fault.New(fault.FailedPrecondition, "the lifecycle's gate is %s and its head is %s", s.Gate.Phase, s.Phase).
		WithDetail(DetailBlocked, "blockedOp", s.Gate.Kind, "opId", string(s.Gate.Operation), "gateState", string(s.Gate.Phase), "headState", string(s.Phase), "remedy", "retry")
}
