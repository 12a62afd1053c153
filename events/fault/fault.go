// Package fault is the one error of Berth: a code, a message that names the
// thing and the next step, structured details and the outcome, carried
// unchanged from where it arises to the user's terminal (rules.md part 4).
//
// It is a leaf: it imports nothing of Berth, so that every room can use it.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Code is one stable token. The list is append-only: codes are stored in the
// log and read by scripts.
type Code string

// The codes of rules.md part 4.
const (
	BadRequest         Code = "bad-request"
	UnsupportedVersion Code = "unsupported-version"
	Unauthenticated    Code = "unauthenticated"
	PermissionDenied   Code = "permission-denied"
	NotFound           Code = "not-found"
	AlreadyExists      Code = "already-exists"
	Conflict           Code = "conflict"
	ContractMismatch   Code = "contract-mismatch"
	ContractInvalid    Code = "contract-invalid"
	FailedPrecondition Code = "failed-precondition"
	DeadlineExceeded   Code = "deadline-exceeded"
	Cancelled          Code = "cancelled"
	Expired            Code = "expired"
	Unavailable        Code = "unavailable"
	Unimplemented      Code = "unimplemented"
	ResourceExhausted  Code = "resource-exhausted"
	Internal           Code = "internal"
)

// Outcome says whether an effect was dispatched or an event appended for the
// request that failed (decision 22). An absent outcome reads as Unknown (E4).
type Outcome string

// The three outcomes of E1-E13.
const (
	Executed    Outcome = "executed"
	NotExecuted Outcome = "not-executed"
	Unknown     Outcome = "unknown"
)

// Detail is one structured fact about a failure; Kind is a reverse-DNS style
// name such as berth.lifecycle-blocked, Facts are its fields. No consumer
// parses prose.
type Detail struct {
	Kind  string            `json:"kind"`
	Facts map[string]string `json:"facts,omitempty"`
}

// Error is a failure as it is stored, sent and shown.
type Error struct {
	Code      Code     `json:"code"`
	Message   string   `json:"message"`
	Hint      string   `json:"hint,omitempty"`
	Outcome   Outcome  `json:"outcome"`
	Retryable bool     `json:"retryable"`
	Details   []Detail `json:"details,omitempty"`
	ID        string   `json:"id,omitempty"`
}

// Ended is New for what was given up because its context ended: cause is the
// context's error, and the code says whether the time was over
// (deadline-exceeded, outcome unknown by default) or it was cancelled.
func Ended(cause error, format string, args ...any) *Error {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](cause)
	if ok && timeout.Timeout() {
		return New(DeadlineExceeded, format, args...)
	}
	return New(Cancelled, format, args...)
}

// New makes an error whose outcome is the code's default: not-executed for a
// refusal, unknown for what may have happened.
func New(code Code, format string, args ...any) *Error {
	row := codes[code]
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Outcome: row.Outcome, Retryable: row.Retryable}
}

// Error implements error.
func (e *Error) Error() string {
	if e.Message == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Message
}

// WithHint returns a copy that tells the user what to do next.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// WithOutcome returns a copy with another outcome.
func (e *Error) WithOutcome(o Outcome) *Error {
	c := *e
	c.Outcome = o
	return &c
}

// WithDetail returns a copy that carries one more structured fact; kv are
// alternating names and values.
func (e *Error) WithDetail(kind string, kv ...string) *Error {
	c := *e
	d := Detail{Kind: kind, Facts: map[string]string{}}
	for i := 0; i+1 < len(kv); i += 2 {
		d.Facts[kv[i]] = kv[i+1]
	}
	c.Details = append(append([]Detail(nil), e.Details...), d)
	return &c
}

// Is makes errors.Is(err, fault.New(code, "")) match by code alone.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// From finds the Error in err's chain. Anything else is an unexpected failure
// of a provider or a store: unavailable, unknown, with its text (E13). A nil
// err gives nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return New(Unavailable, "%s", err).WithOutcome(Unknown)
}

// CodeOf is From(err).Code, and empty for nil.
func CodeOf(err error) Code {
	if e := From(err); e != nil {
		return e.Code
	}
	return ""
}

// UnmarshalJSON reads an error from the wire; a missing outcome is unknown (E4).
func (e *Error) UnmarshalJSON(b []byte) error {
	type plain Error
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return err
	}
	if e.Outcome == "" {
		e.Outcome = Unknown
	}
	return nil
}
