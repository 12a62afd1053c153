package handoff

import (
	"encoding/hex"

	"berth/events"
	"berth/events/fault"
)

//house:pure

// Kinds of the recovery documents. They are shapes and no more: a parser proves
// that a document is whole, never that somebody may act on it (V7).
const (
	DescriptorKind = "berth-delegated-recovery/v1"
	RequestKind    = "berth-delegated-recovery-request/v1"
	ResultKind     = "berth-delegated-recovery-result/v1"
)

// MaxRecovery is the longest recovery document, in bytes.
const MaxRecovery = 8 << 10

// Descriptor tells which child a launch made, so that a later manager could
// ask for the same one: it is stored with the launch itself (V1).
type Descriptor struct {
	Kind        string            `json:"kind"`
	IntentID    string            `json:"intentId"`
	Space       events.Space      `json:"space"`
	Owner       events.Owner      `json:"owner"`
	Actor       events.Actor      `json:"actor"`
	UID         events.UID        `json:"lifecycleUid"`
	Instance    events.InstanceID `json:"instanceId"`
	Epoch       uint64            `json:"epoch"`
	LaunchKey   string            `json:"launchKey"`
	TokenDigest string            `json:"tokenDigest"` // SHA-256 of the token, 64 hexadecimal digits
}

// Request asks for the child of a descriptor on behalf of the original
// instance under its current registration (V2).
type Request struct {
	Kind       string            `json:"kind"`
	Descriptor Descriptor        `json:"descriptor"`
	Instance   events.InstanceID `json:"instanceId"`
	Epoch      uint64            `json:"epoch"` // above the descriptor's
}

// RecoveryState is what became of a request.
type RecoveryState string

// The states of a result: the same child is proved and bound, or it stays held
// (V6). There is no third that launches again.
const (
	Rebound RecoveryState = "rebound"
	Held    RecoveryState = "held"
)

// Result answers a request. Reason says why a child stays held.
type Result struct {
	Kind      string        `json:"kind"`
	LaunchKey string        `json:"launchKey"`
	State     RecoveryState `json:"state"`
	Reason    string        `json:"reason,omitempty"`
}

// ParseDescriptor reads a recovery descriptor; refusals are bad-request.
func ParseDescriptor(raw []byte) (Descriptor, error) {
	var d Descriptor
	if err := closed("the recovery descriptor", raw, MaxRecovery, &d); err != nil {
		return Descriptor{}, err
	}
	return d, d.check("")
}

// ParseRequest reads a recovery request; refusals are bad-request.
func ParseRequest(raw []byte) (Request, error) {
	var r Request
	if err := closed("the recovery request", raw, MaxRecovery, &r); err != nil {
		return Request{}, err
	}
	if r.Kind != RequestKind {
		return Request{}, bad("kind", "it is not "+RequestKind)
	}
	if err := r.Descriptor.check("descriptor."); err != nil {
		return Request{}, err
	}
	if r.Instance != r.Descriptor.Instance {
		return Request{}, bad("instanceId", "it is not the instance that launched the child")
	}
	if r.Epoch <= r.Descriptor.Epoch {
		return Request{}, bad("epoch", "it is not later than that of the launch")
	}
	return r, nil
}

// ParseResult reads the answer to a recovery request; refusals are bad-request.
func ParseResult(raw []byte) (Result, error) {
	var r Result
	if err := closed("the recovery result", raw, MaxRecovery, &r); err != nil {
		return Result{}, err
	}
	switch {
	case r.Kind != ResultKind:
		return Result{}, bad("kind", "it is not "+ResultKind)
	case !launchKey(r.LaunchKey):
		return Result{}, bad("launchKey", "it is not a launch key")
	case r.State != Rebound && r.State != Held:
		return Result{}, bad("state", "it is neither rebound nor held")
	case r.State == Rebound && r.Reason != "":
		return Result{}, bad("reason", "a child that is rebound has none")
	case r.State == Held && text(r.Reason, MaxText) != "":
		return Result{}, bad("reason", text(r.Reason, MaxText))
	}
	return r, nil
}

func (d Descriptor) check(at string) error {
	t := Target{Space: d.Space, Owner: d.Owner, Actor: d.Actor, UID: d.UID}
	if d.Kind != DescriptorKind {
		return bad(at+"kind", "it is not "+DescriptorKind)
	}
	if err := t.Check(); err != nil {
		return err
	}
	_, intent := events.ParseCommandID(d.IntentID)
	_, instance := events.ParseInstanceID(string(d.Instance))
	switch {
	case intent != nil:
		return bad(at+"intentId", "it is not a valid one")
	case instance != nil:
		return bad(at+"instanceId", "it is not a valid one")
	case d.Epoch == 0:
		return bad(at+"epoch", "it is missing")
	case d.LaunchKey != t.Key():
		return bad(at+"launchKey", "it is not the key of this lifecycle")
	case !digits(d.TokenDigest, 64):
		return bad(at+"tokenDigest", "it is not a SHA-256")
	}
	return nil
}

func launchKey(s string) bool {
	n := len(KeyPrefix)
	return len(s) > n && s[:n] == KeyPrefix && digits(s[n:], keyDigits)
}

func digits(s string, n int) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(s) == n && hex.EncodeToString(raw) == s
}

// Recover answers a recovery request. Nothing here can prove that a child is
// the same execution, so that every request that is whole is refused with
// unimplemented (V4, V8): the child stays held, and none is launched.
func Recover(r Request) error {
	return fault.New(fault.Unimplemented, "the recovery of a delegated seat is not supported: %s stays held", r.Descriptor.LaunchKey).
		WithOutcome(fault.NotExecuted).WithHint("retire the seat; its end is proved before its name is free")
}
