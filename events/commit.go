package events

import "time"

// Event is one past-tense fact. Every type is declared once in the registry
// table; its zero value is made there.
type Event interface {
	// EventType is the versionless name, such as environment.operation-uncertain.
	EventType() string
}

// Writer is the manager that appended, and its epoch: the fence of law 3.
type Writer struct {
	Instance InstanceID `json:"instance"`
	Epoch    uint64     `json:"epoch"`
}

// Meta is what is true of a whole commit.
type Meta struct {
	ID          EventID     `json:"id"`
	Time        time.Time   `json:"time"` // of the writer's clock, UTC, milliseconds
	Caller      Caller      `json:"caller"`
	Writer      Writer      `json:"writer"`
	Command     CommandID   `json:"command,omitempty"`
	Fingerprint string      `json:"fingerprint,omitempty"` // of Command's input
	Operation   OperationID `json:"operation,omitempty"`
	Trace       string      `json:"trace,omitempty"` // W3C traceparent
}

// Commit is one decision on one boundary: its events are stored together or
// not at all.
type Commit struct {
	Boundary Boundary
	// Expect is the boundary's last sequence that the decision was made on;
	// zero says that the boundary must still be empty.
	Expect uint64
	Meta   Meta
	Events []Event
}

// Hash is the SHA-256 that chains a boundary's commits.
type Hash [32]byte

// Record is a commit as the log holds it.
type Record struct {
	Sequence uint64 // in the stream
	Previous uint64 // the boundary's sequence before this one, zero for the first
	Boundary Boundary
	Meta     Meta
	Events   []Event
	Prior    Hash // hash of the boundary's previous commit
	Hash     Hash // of this commit
	// Batch is set on a member of an atomic publish over several boundaries.
	Batch *Batch
	// Torn says that this is a member of an atomic publish of which other
	// members are missing, as a crash of the server may leave behind. It was
	// never acknowledged: Events is empty, and readers move only the sequence.
	Torn bool
	// Broken is why the payload could not be read: an unknown event type, a
	// newer version, a broken payload. Meta and Events are then empty or
	// partial, and the boundary is quarantined by whoever folds it (law 4).
	Broken error
}

// Batch ties the members of one atomic publish together (decision 3).
type Batch struct {
	ID         string     `json:"id"`
	Index      int        `json:"index"`
	Count      int        `json:"count"`
	Boundaries []Boundary `json:"boundaries"`
}

// MillisUTC is t as every event stores it: UTC, cut to milliseconds (R69).
func MillisUTC(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
