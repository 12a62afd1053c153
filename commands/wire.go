package commands

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/gowebpki/jcs"

	"berth/events"
	"berth/events/fault"
)

// Request is the payload of every command.
type Request struct {
	// ID is the caller's id of this request: the same id with the same input
	// gets the same answer, with another input a conflict. Reads need none.
	ID events.CommandID `json:"id,omitzero" doc:"the caller's id of this request; needed for writes, and the goal id of a goal that names none" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	// MinSequence makes a read wait until that sequence is folded.
	MinSequence uint64 `json:"minSequence,omitzero" doc:"answer from a fold of at least this sequence"`
	// TimeoutMs shortens or lengthens the deadline, within MaxTimeout.
	TimeoutMs int64 `json:"timeoutMs,omitzero" doc:"deadline of the call in milliseconds" max:"120000"`
	// DryRun says what would be appended and appends nothing.
	DryRun bool `json:"dryRun,omitzero" doc:"answer with the events that would be appended; append nothing"`
	// Input is the command's own input, {} if absent.
	Input json.RawMessage `json:"input,omitzero" doc:"the input of the command"`
}

// Reply is the answer of every command: OK with Result, or Error.
type Reply struct {
	OK     bool            `json:"ok"`
	Result json.RawMessage `json:"result,omitempty"`
	// WouldAppend is the answer of a dry run.
	WouldAppend []Draft      `json:"wouldAppend,omitempty"`
	Error       *fault.Error `json:"error,omitempty"`
}

// Draft is one commit of a dry run.
type Draft struct {
	Boundary events.Boundary `json:"boundary"`
	Expect   uint64          `json:"expect"` // the boundary's last sequence
	Events   []DraftEvent    `json:"events"`
}

// DraftEvent is one event of a draft, as it would be stored.
type DraftEvent struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// DraftOf renders events that are not appended.
func DraftOf(b events.Boundary, expect uint64, es []events.Event) (Draft, error) {
	d := Draft{Boundary: b, Expect: expect, Events: []DraftEvent{}}
	for _, e := range es {
		typ, err := events.VersionedType(e)
		if err != nil {
			return Draft{}, err
		}
		data, err := json.Marshal(e)
		if err != nil {
			return Draft{}, fault.New(fault.Internal, "event %s can't be written as JSON", typ).WithOutcome(fault.NotExecuted)
		}
		d.Events = append(d.Events, DraftEvent{Type: typ, Data: data})
	}
	return d, nil
}

// Headers of a reply that carries an error, as other NATS services set them,
// and of a request.
const (
	HeaderErrorCode = "Nats-Service-Error-Code" // HTTP status of the code
	HeaderError     = "Nats-Service-Error"      // the code itself
	HeaderTrace     = "traceparent"             // W3C, carried into the log
)

// Fingerprint binds an id to one request: the hex SHA-256 of the RFC 8785 form
// of who asks for what with which input, and of id. Spelling and order of the
// JSON do not matter, and neither do deadlines or dry runs.
func Fingerprint(a Address, id string, input any) (string, error) {
	doc := struct {
		Command string        `json:"command"`
		Mode    Mode          `json:"mode"`
		Owner   events.Owner  `json:"targetOwner,omitempty"`
		Caller  events.Caller `json:"caller"`
		ID      string        `json:"id"`
		Input   any           `json:"input"`
	}{a.Command, a.Mode, a.Owner, a.Caller, id, input}
	b, err := json.Marshal(doc)
	if err != nil {
		return "", fault.New(fault.BadRequest, "the input can't be written as JSON")
	}
	canonical, err := jcs.Transform(b)
	if err != nil {
		return "", fault.New(fault.BadRequest, "the input has no canonical form")
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}
