package events

import (
	"encoding/json"
	"time"
)

// ---- seat.<owner>.<alias>: what a user allows a manager to do once, for them
// (D1-D20). It is on the boundary of the name that it is about, so that one
// compare-and-append fences the intent, its use and the name.

// IntentKind is what an intent allows.
type IntentKind string

// The kinds.
const (
	IntentLaunch IntentKind = "launch"
	IntentRetire IntentKind = "retire"
)

// IntentOutcome is how a used intent ended.
type IntentOutcome string

// The outcomes (D7, D8, D10).
const (
	IntentEnrolled       IntentOutcome = "enrolled"        // the seat runs
	IntentAborted        IntentOutcome = "aborted"         // it was undone, to the proof that nothing is left
	IntentRetired        IntentOutcome = "retired"         // the lifecycle was ended under it
	IntentAlreadyRetired IntentOutcome = "already-retired" // it had ended before
)

// IntentAdmitted is one permission of a user, for one instance in one of its
// runs, to be used once before ExpiresAt (D1, D2).
type IntentAdmitted struct {
	Intent   GoalID     `json:"intent"`
	Kind     IntentKind `json:"kind"`
	By       Caller     `json:"by"` // the user: parent and owner of what is launched (D18)
	Instance InstanceID `json:"instance"`
	// Epoch is the run of the instance that may use it; zero: the instance is
	// gone, and whoever holds the seat does it (D19).
	Epoch     uint64          `json:"epoch,omitempty"`
	UID       UID             `json:"uid,omitempty"`     // retire: the lifecycle that is meant
	Request   json.RawMessage `json:"request,omitempty"` // launch: what is launched, public text
	ExpiresAt time.Time       `json:"expiresAt"`
}

// IntentConsumed uses an intent up: it pins the request, the lifecycle, the
// operation and the run that executes it, before any effect (D4).
type IntentConsumed struct {
	Intent    GoalID      `json:"intent"`
	Request   CommandID   `json:"request"`
	UID       UID         `json:"uid"`
	Operation OperationID `json:"operation"` // activation of a launch, retirement
	Executor  Writer      `json:"executor"`
}

// IntentSwept gives an intent whose executor is gone to another run, which may
// only bring it to its end (D11).
type IntentSwept struct {
	Intent GoalID `json:"intent"`
	By     Writer `json:"by"`
}

// IntentEnded is the one outcome of an intent.
type IntentEnded struct {
	Intent  GoalID        `json:"intent"`
	Outcome IntentOutcome `json:"outcome"`
}

// IntentReleased lets go of a name that a swept intent held: the executor's
// instance has started again, so that its run is over, or an operator vouches
// for it with a reason (D16).
type IntentReleased struct {
	Intent GoalID  `json:"intent"`
	By     *Caller `json:"by,omitempty"` // an operator; nil: the executor's instance
	Reason string  `json:"reason"`
}
