package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// Material is secret bytes by purpose. It formats as [redacted]; it is only
// ever written by the JSON of a request body.
type Material map[string][]byte

// String hides the bytes.
func (Material) String() string { return "[redacted]" }

// GoString hides the bytes.
func (Material) GoString() string { return "[redacted]" }

// Operation is the body of a mutation, and of the questions about one.
type Operation struct {
	ID          events.OperationID   `json:"id"`
	Environment events.EnvironmentID `json:"environment"`
	Alias       events.Alias         `json:"alias,omitempty"`
	Verb        events.Verb          `json:"verb"`
	Arguments   events.Arguments     `json:"arguments"`
	Plan        events.Plan          `json:"plan"`
	Ref         string               `json:"ref,omitempty"`
	Writer      events.Writer        `json:"writer"`
	Expires     *time.Time           `json:"expires,omitempty"`
	Material    Material             `json:"material,omitempty"`
}

// Of is an operation as it is sent, with its material.
func Of(op providers.Operation) Operation {
	return Operation{ID: op.ID, Environment: op.Environment, Alias: op.Alias, Verb: op.Verb, Arguments: op.Arguments, Plan: op.Plan,
		Ref: op.Ref, Writer: op.Writer, Expires: op.Expires, Material: Material(op.Material)}
}

// Asked is an operation as a question about it is sent: without material,
// which no answer needs (R55).
func Asked(op providers.Operation) Operation {
	w := Of(op)
	w.Material = nil
	return w
}

// Operation is the operation for a driver, without a deadline.
func (o Operation) Operation() providers.Operation {
	return providers.Operation{ID: o.ID, Environment: o.Environment, Alias: o.Alias, Verb: o.Verb, Arguments: o.Arguments, Plan: o.Plan,
		Ref: o.Ref, Writer: o.Writer, Expires: o.Expires, Material: providers.Material(o.Material)}
}

// Check refuses ids and names that can't be journaled, with bad-request.
func (o Operation) Check() error {
	if _, err := events.ParseOperationID(string(o.ID)); err != nil {
		return err
	}
	if _, err := events.ParseEnvironmentID(string(o.Environment)); err != nil {
		return err
	}
	if o.Alias != "" {
		if _, err := events.ParseAlias(string(o.Alias)); err != nil {
			return err
		}
	}
	if o.Ref != "" {
		return events.CheckText("ref", o.Ref)
	}
	return nil
}

// Digest is equal for operations that mean the same: verb, environment,
// arguments and plan. Writer and reference change in a life, and material is
// secret.
func (o Operation) Digest() string {
	b, err := json.Marshal(struct {
		V events.Verb
		E events.EnvironmentID
		A events.Arguments
		P events.Plan
	}{o.Verb, o.Environment, o.Arguments, o.Plan})
	if err != nil {
		panic("wire: an operation that does not marshal: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Outcome is the typed answer of a mutation. It repeats the operation's id,
// so that an answer that belongs to another request is known for what it is.
type Outcome struct {
	Operation events.OperationID `json:"operation"`
	Outcome   providers.Kind     `json:"outcome"`
	Facts     *events.Facts      `json:"facts,omitempty"`
	Fault     *fault.Error       `json:"fault,omitempty"`
}

// OutcomeOf is an outcome as it is sent.
func OutcomeOf(id events.OperationID, out providers.Outcome) Outcome {
	w := Outcome{Operation: id, Outcome: out.Kind, Fault: out.Fault}
	if out.Kind == providers.Done {
		w.Facts = &out.Facts
	}
	return w
}

// Finding is the typed answer of reconcile and exclude.
type Finding struct {
	Operation events.OperationID `json:"operation"`
	Verdict   providers.Verdict  `json:"verdict"`
	Facts     *events.Facts      `json:"facts,omitempty"`
	Evidence  string             `json:"evidence,omitempty"`
	Fault     *fault.Error       `json:"fault,omitempty"`
}

// FindingOf is a finding as it is sent.
func FindingOf(id events.OperationID, f providers.Finding) Finding {
	w := Finding{Operation: id, Verdict: f.Verdict, Evidence: f.Evidence, Fault: f.Fault}
	if f.Verdict == providers.Landed {
		w.Facts = &f.Facts
	}
	return w
}

// Failure is the body of every answer whose status is not 2xx.
type Failure struct {
	Error *fault.Error `json:"error"`
}

// Seen asks for one environment: the body of inspect.
type Seen struct {
	Environment events.EnvironmentID `json:"environment"`
	Ref         string               `json:"ref,omitempty"`
}

// Typed is the body of input: bytes for a seat's terminal, which may be secret.
type Typed struct {
	Environment events.EnvironmentID `json:"environment"`
	Ref         string               `json:"ref,omitempty"`
	Data        Keys                 `json:"data"`
}

// Keys are bytes that a person types. They format as [redacted].
type Keys []byte

// String hides the bytes.
func (Keys) String() string { return "[redacted]" }

// GoString hides the bytes.
func (Keys) GoString() string { return "[redacted]" }

// Delivered answers an input: how many bytes the terminal took, and what kept
// it from taking all.
type Delivered struct {
	Delivered int          `json:"delivered"`
	Fault     *fault.Error `json:"fault,omitempty"`
}

// Resized is the body of resize.
type Resized struct {
	Environment events.EnvironmentID `json:"environment"`
	Ref         string               `json:"ref,omitempty"`
	Size        providers.Size       `json:"size"`
}

// Imaged is the body of image.
type Imaged struct {
	Image events.Image `json:"image"`
}

// Planned is the body of preflight.
type Planned struct {
	Plan events.Plan `json:"plan"`
}

// Preflight is the answer of preflight. The capabilities are kept as they
// came, so that a missing or an extra key is seen (R1).
type Preflight struct {
	Checks       []events.Check  `json:"checks"`
	Capabilities json.RawMessage `json:"capabilities"`
	Network      string          `json:"network,omitempty"`
	ProbedAt     int64           `json:"probedAt"` // epoch ms (R3)
}

// Listed is one line of list.
type Listed struct {
	Environment events.EnvironmentID `json:"environment"`
	Ref         string               `json:"ref,omitempty"`
	State       events.ProviderState `json:"state"`
}

// List is the answer of list: evidence for a person, never proof (R92).
type List struct {
	Environments []Listed `json:"environments"`
}

// Changes is the answer of changes. Reset says that changes may have been
// missed, and everything is to be looked at.
type Changes struct {
	Cursor       string                 `json:"cursor"`
	Reset        bool                   `json:"reset,omitempty"`
	Environments []events.EnvironmentID `json:"environments"`
}

// Provider is who answers: the driver behind the endpoint, whether it tells of
// changes, whether it begins delegated seats, and what it makes where a spawn
// does not say.
type Provider struct {
	Name      string              `json:"name"`
	Protocol  string              `json:"protocol"`
	Watches   bool                `json:"watches"`
	Delegates bool                `json:"delegates,omitempty"`
	Defaults  *providers.Defaults `json:"defaults,omitempty"`
}
