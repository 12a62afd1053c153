package commands

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"berth/events/fault"
)

// Input is the input of a command: Check refuses, with bad-request that names
// the field, what can't be meant. It has no effect and asks nobody.
type Input interface{ Check() error }

// DecodeRequest reads the envelope of a request. It refuses what is too long,
// not JSON, has an unknown or repeated member, or an id that is not one.
func DecodeRequest(payload []byte) (Request, error) {
	var r Request
	if len(payload) > MaxRequest {
		return r, fault.New(fault.BadRequest, "the request has %d bytes; at most %d are read", len(payload), MaxRequest)
	}
	if len(bytes.TrimSpace(payload)) == 0 {
		return r, nil
	}
	if err := strict("request", payload, &r); err != nil {
		return Request{}, err
	}
	if r.ID != "" {
		if err := checkID(string(r.ID)); err != nil {
			return Request{}, err
		}
	}
	if r.TimeoutMs < 0 || r.TimeoutMs > MaxTimeout.Milliseconds() {
		return Request{}, bad("timeoutMs", "%d is not between 0 and %d", r.TimeoutMs, MaxTimeout.Milliseconds())
	}
	return r, nil
}

// DecodeInput reads and checks the input of one command.
func DecodeInput[In Input](payload []byte) (In, error) {
	var in In
	if len(bytes.TrimSpace(payload)) == 0 {
		payload = []byte("{}")
	}
	if err := strict("input", payload, &in); err != nil {
		var zero In
		return zero, err
	}
	return in, in.Check()
}

// strict reads an object: unknown and repeated members, another case of a
// name and invalid UTF-8 are refused.
func strict(what string, payload []byte, v any) error {
	if !bytes.HasPrefix(bytes.TrimSpace(payload), []byte("{")) {
		return bad(what, "it is not a JSON object")
	}
	err := json.Unmarshal(payload, v, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	field := what
	var se *json.SemanticError
	var xe *jsontext.SyntacticError
	switch {
	case errors.As(err, &se):
		field = pointer(what, se.JSONPointer)
	case errors.As(err, &xe):
		field = pointer(what, xe.JSONPointer)
	}
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return bad(field, "%s", f.Message)
	case errors.Is(err, json.ErrUnknownName):
		return bad(field, "there is no such field")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return bad(field, "it is given twice")
	case xe != nil:
		return bad(field, "it is not valid JSON")
	case se != nil && se.GoType != nil:
		return bad(field, "it is not of the type that the schema says")
	}
	return bad(field, "it can't be read")
}

// pointer writes a JSON pointer as a person writes a field: a.b.0.
func pointer(what string, p jsontext.Pointer) string {
	if p == "" {
		return what
	}
	return clip(strings.ReplaceAll(strings.TrimPrefix(string(p), "/"), "/", "."))
}
