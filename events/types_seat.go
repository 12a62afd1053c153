package events

import (
	"time"

	"berth/events/fault"
)

// Every type below is folded on a seat boundary (EnvironmentX also on
// environment.<id> after a write-off).

// ---- slot

// SlotClaimed begins a lifecycle: the alias is held for it from here. It
// carries the plan, so that the rest of the life follows from the log alone.
type SlotClaimed struct {
	UID         UID           `json:"uid"`
	Environment EnvironmentID `json:"environment"`
	Goal        string        `json:"goal,omitempty"` // boundary of the goal that asked
	Holder      InstanceID    `json:"holder"`         // who runs its steps (decision 11)
	Plan        Plan          `json:"plan"`
	Target      Target        `json:"target"`
	// Deadline is the absolute end of life; null: none asked.
	Deadline *time.Time `json:"deadline"`
	// Ready is until when the seat must be ready, else the goal is uncertain.
	Ready time.Time `json:"ready"`
}

// SlotActivated says that the seat is managed and running.
type SlotActivated struct {
	UID UID `json:"uid"`
}

// SlotTerminalizing begins the end: from here nothing is minted.
type SlotTerminalizing struct {
	UID    UID    `json:"uid"`
	Reason string `json:"reason"` // retired, expired, exited, failed, cancelled
	// Grace is how long the stop may take before it becomes a kill; a Go duration.
	Grace string `json:"grace,omitempty"`
}

// SlotCleaned says that host-side material of the lifecycle is gone.
type SlotCleaned struct {
	UID UID `json:"uid"`
}

// SlotRetired frees the alias; the row stays for ever.
type SlotRetired struct {
	UID UID `json:"uid"`
}

// SlotTakenOver moves the seat to another instance or epoch (decision 1).
type SlotTakenOver struct {
	UID    UID        `json:"uid"`
	Holder InstanceID `json:"holder"`
	Epoch  uint64     `json:"epoch"`
}

// ---- head, gate, ledger

// HeadActivated makes the lifecycle current, epoch 1, with its gate frozen
// under an activation (2.2, 2.3).
type HeadActivated struct {
	UID       UID         `json:"uid"`
	Operation OperationID `json:"operation"`
}

// GateOpened admits issuance; Generation is one more than before.
type GateOpened struct {
	UID        UID         `json:"uid"`
	Operation  OperationID `json:"operation"`
	Generation uint64      `json:"generation"`
}

// GateFrozen stops issuance under an operation of a kind.
type GateFrozen struct {
	UID       UID         `json:"uid"`
	Operation OperationID `json:"operation"`
	Kind      string      `json:"kind"` // activation, takeover, registration, retirement
}

// GateRetired ends issuance for ever.
type GateRetired struct {
	UID       UID         `json:"uid"`
	Operation OperationID `json:"operation"`
}

// HeadEpochAdvanced is a takeover of the identity by another process: epoch
// N+1, the current credential cleared (rules.md 2.2). Nothing appends it yet: a
// seat keeps its process when another instance takes it over (SlotTakenOver),
// and no provider has a successor animate an identity.
type HeadEpochAdvanced struct {
	UID       UID         `json:"uid"`
	Operation OperationID `json:"operation"`
	Epoch     uint64      `json:"epoch"`
}

// CredentialMinted is a ledger row, written before the credential leaves (R52, R53).
// The bytes are never here (R55).
type CredentialMinted struct {
	UID        UID          `json:"uid"`
	Credential CredentialID `json:"credential"`
	Holder     string       `json:"holder"` // public nkey
	Generation uint64       `json:"generation"`
	ExpiresAt  *time.Time   `json:"expiresAt,omitempty"`
	// BearerSource is bound with the credential here and never changed for it
	// (R45-R47); null: nobody gives bearers.
	BearerSource *BearerSource `json:"bearerSource,omitempty"`
}

// CredentialReleased makes a minted credential the current one.
type CredentialReleased struct {
	UID        UID          `json:"uid"`
	Credential CredentialID `json:"credential"`
}

// CredentialRevoked ends one credential (deny-new).
type CredentialRevoked struct {
	UID        UID          `json:"uid"`
	Credential CredentialID `json:"credential"`
}

// HeadRetiring begins retirement of the lifecycle under one operation.
type HeadRetiring struct {
	UID       UID         `json:"uid"`
	Operation OperationID `json:"operation"`
}

// HeadRetired asserts finished cleanup; the uid never returns.
type HeadRetired struct {
	UID       UID         `json:"uid"`
	Operation OperationID `json:"operation"`
}

// ---- environment and its operation journal

// EnvironmentProbed replaces the whole capability set (R12) and records the image.
type EnvironmentProbed struct {
	Environment  EnvironmentID    `json:"environment"`
	Image        ImageDescription `json:"image"`
	Network      string           `json:"network,omitempty"`
	Checks       []Check          `json:"checks"`
	Capabilities Capabilities     `json:"capabilities"`
	ProbedAt     time.Time        `json:"probedAt"`
	// Host, Architecture and Engine come from the host facts (R65).
	Host         string `json:"host"`
	Architecture string `json:"architecture"`
	Engine       string `json:"engine"`
}

// EnvironmentRefused ends a life before anything was dispatched: a failed
// check or a missing capability (R7, R8).
type EnvironmentRefused struct {
	Environment EnvironmentID `json:"environment"`
	Fault       *fault.Error  `json:"fault"`
	Checks      []Check       `json:"checks,omitempty"`
}

// TargetChanged is what the operator asks next of the seat.
type TargetChanged struct {
	Environment EnvironmentID `json:"environment"`
	Target      Target        `json:"target"`
}

// OperationPlanned queues an operation behind the open one (decision 12).
type OperationPlanned struct {
	Environment EnvironmentID `json:"environment"`
	Operation   OperationID   `json:"operation"`
	Verb        Verb          `json:"verb"`
	Arguments   Arguments     `json:"arguments"`
	Goal        string        `json:"goal,omitempty"`
}

// OperationDispatched is the intent before the effect (law 1): durable before
// the provider is called.
type OperationDispatched struct {
	Environment EnvironmentID `json:"environment"`
	Operation   OperationID   `json:"operation"`
	Verb        Verb          `json:"verb"`
	Arguments   Arguments     `json:"arguments"`
	Goal        string        `json:"goal,omitempty"`
	Deadline    time.Time     `json:"deadline"` // of the call
}

// OperationConfirmed is an answer: done, with facts.
type OperationConfirmed struct {
	Environment EnvironmentID `json:"environment"`
	Operation   OperationID   `json:"operation"`
	Facts       Facts         `json:"facts"`
}

// OperationRefused is an answer: nothing was executed.
type OperationRefused struct {
	Environment EnvironmentID `json:"environment"`
	Operation   OperationID   `json:"operation"`
	Fault       *fault.Error  `json:"fault"`
}

// OperationUncertain says that the answer was lost (law 2).
type OperationUncertain struct {
	Environment EnvironmentID `json:"environment"`
	Operation   OperationID   `json:"operation"`
	Fault       *fault.Error  `json:"fault"`
}

// OperationLanded is proof that the operation was done.
type OperationLanded struct {
	Environment EnvironmentID `json:"environment"`
	Operation   OperationID   `json:"operation"`
	Facts       Facts         `json:"facts"`
	Evidence    string        `json:"evidence"`
}

// OperationExcluded is proof that the operation can never land.
type OperationExcluded struct {
	Environment EnvironmentID `json:"environment"`
	Operation   OperationID   `json:"operation"`
	Evidence    string        `json:"evidence"`
}

// OperationStuck is an alarm: an operation has been open or uncertain longer
// than its patience. It changes nothing else.
type OperationStuck struct {
	Environment EnvironmentID `json:"environment"`
	Operation   OperationID   `json:"operation"`
	Since       time.Time     `json:"since"`
}

// OperationCancelled drops a planned operation that was never dispatched.
type OperationCancelled struct {
	Environment EnvironmentID `json:"environment"`
	Operation   OperationID   `json:"operation"`
	Reason      string        `json:"reason"`
}

// EnvironmentObserved is what a provider showed of its own accord: an exit, an
// expiry, a replaced machine.
type EnvironmentObserved struct {
	Environment EnvironmentID `json:"environment"`
	Facts       Facts         `json:"facts"`
}

// DeadlineChanged is an accepted extension of the whole life; the provider's
// own deadline follows by bounded extend operations (R28, R29).
type DeadlineChanged struct {
	Environment EnvironmentID `json:"environment"`
	Deadline    time.Time     `json:"deadline"`
}

// FileAccepted says that an exported file was copied and its length and
// digest were verified (R37).
type FileAccepted struct {
	Environment EnvironmentID `json:"environment"`
	Operation   OperationID   `json:"operation"`
	File        File          `json:"file"`
}

// FileRejected says that an exported file was refused; nothing of it was kept.
type FileRejected struct {
	Environment EnvironmentID `json:"environment"`
	Operation   OperationID   `json:"operation"`
	Fault       *fault.Error  `json:"fault"`
}

// EnvironmentWrittenOff frees alias and reservation without proof, by an
// operator with a reason (decision 13). The environment goes on being
// reconciled on its own boundary.
type EnvironmentWrittenOff struct {
	Environment EnvironmentID `json:"environment"`
	UID         UID           `json:"uid"`
	By          Caller        `json:"by"`
	Reason      string        `json:"reason"`
}

// EnvironmentInherited opens environment.<id> with all that is needed to go
// on reconciling what was written off.
type EnvironmentInherited struct {
	Environment EnvironmentID       `json:"environment"`
	From        Boundary            `json:"from"`
	UID         UID                 `json:"uid"`
	Holder      InstanceID          `json:"holder"`
	Plan        Plan                `json:"plan"`
	Ref         string              `json:"ref,omitempty"`
	Open        OperationDispatched `json:"open"`
}

// CommandAnswered keeps the answer of a command that changed nothing else, so
// that the same id gets the same answer for ever (decision 5).
type CommandAnswered struct {
	Command     CommandID `json:"command"`
	Fingerprint string    `json:"fingerprint"`
}
