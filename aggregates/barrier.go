package aggregates

import (
	"fmt"

	"berth/aggregates/environment"
	"berth/aggregates/head"
	"berth/events"
	"berth/events/fault"
)

// The remedies of a barrier, as its detail carries them.
const (
	// RemedyWait is to wait: what holds the name ends by itself.
	RemedyWait = "retry"
	// RemedyReconcile is to wait for the proof of an operation whose answer was
	// lost, or to write the environment off.
	RemedyReconcile = "reconcile"
)

// Barrier is the operation on a lifecycle that keeps another one from its name:
// an activation, a retirement, a takeover or a registration that has frozen the
// gate. Head and gate are on the seat's own boundary, so both were read.
type Barrier struct {
	Operation string // kind of the operation
	ID        events.OperationID
	Gate      head.GatePhase
	Head      head.Phase
	Remedy    string
}

// Barrier is what freezes the gate of the current lifecycle; false if it is
// open or over.
func (s Seat) Barrier() (Barrier, bool) {
	g := s.Head.Gate
	if !s.Slot.Held() || g.Phase != head.GateFrozen {
		return Barrier{}, false
	}
	b := Barrier{Operation: g.Kind, ID: g.Operation, Gate: g.Phase, Head: s.Head.Phase, Remedy: RemedyWait}
	if op := s.Environment.Operation; op != nil && op.Phase == environment.Uncertain {
		b.Remedy = RemedyReconcile
	}
	return b, true
}

// String is what a person must know who sees only the message.
func (b Barrier) String() string {
	return fmt.Sprintf("%s %s holds it; its head is %s and its gate %s", b.Operation, b.ID, b.Head, b.Gate)
}

// on adds the barrier to a refusal: as a detail, in the message and with what
// can be done (rules.md 4).
func (b Barrier) on(e *fault.Error, name events.Alias) *fault.Error {
	e = e.WithDetail(head.DetailBlocked, "blockedOp", b.Operation, "opId", string(b.ID), "gateState", string(b.Gate), "headState", string(b.Head), "remedy", b.Remedy)
	e.Message += ": " + b.String()
	switch {
	case b.Remedy == RemedyReconcile:
		return e.WithHint("what became of its operation is not proved: `berth inspect %s --explain` says what can be done; or choose another name", name)
	case b.Operation == "retirement":
		return e.WithHint("`berth retire %s --wait` returns when it is free; or choose another name", name)
	}
	return e.WithHint("choose another name, or `berth retire %s` first", name)
}
