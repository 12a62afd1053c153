package commands

import (
	"berth/aggregates/numbering"
	"berth/events"
	"berth/events/fault"
)

// MaxPersona is the longest text of a persona, in bytes.
const MaxPersona = 16 << 10

// PersonaInput is the content of a persona: what an agent is told to be. It is
// content only, and never policy: nothing is allowed or limited by it.
type PersonaInput struct {
	Name  string `json:"name" doc:"name of the persona; environments of it are named after it" pattern:"^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,54}[A-Za-z0-9])?$"`
	Text  string `json:"text" doc:"what the agent is told to be; public text of several lines" maxLength:"16384"`
	Model string `json:"model,omitzero" doc:"model that it is meant for" maxLength:"128"`
}

// Check implements Input.
func (in PersonaInput) Check() error {
	if err := checkPersona("name", in.Name); err != nil {
		return err
	}
	if err := events.CheckDocument("text", in.Text, MaxPersona); err != nil {
		f := fault.From(err)
		return bad("text", "%s", f.Message).WithHint("%s", f.Hint)
	}
	return checkText("model", in.Model, MaxOptionName)
}

// PersonaRef names one persona.
type PersonaRef struct {
	Name string `json:"name" doc:"name of the persona" pattern:"^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$"`
}

// Check implements Input. A name longer than those that can be defined is
// accepted, so that it is answered with not-found.
func (in PersonaRef) Check() error { return Named{Name: in.Name}.Check() }

// checkPersona accepts the name of a persona: one behind which a number fits.
func checkPersona(field, s string) error {
	if _, err := events.ParseAlias(s); err != nil {
		return named(field, err)
	}
	if err := checkText(field, s, events.MaxName); err != nil {
		return err
	}
	if len(s) > numbering.MaxBase {
		return bad(field, "it has %d bytes; at most %d leave room for a number", len(s), numbering.MaxBase)
	}
	return nil
}

// PersonaWritten is the answer of a write to the catalog; a repeated id gets
// the same sequence.
type PersonaWritten struct {
	Name     events.Alias `json:"name"`
	Changed  bool         `json:"changed"` // false: it was so already
	Sequence uint64       `json:"sequence"`
}

// PersonaRow is one persona without its text.
type PersonaRow struct {
	Name      events.Alias `json:"name"`
	Model     string       `json:"model,omitempty"`
	Bytes     int          `json:"bytes"`
	SHA256    string       `json:"sha256"`
	DefinedAt string       `json:"definedAt"` // RFC 3339
}

// PersonaResult is one persona with its text.
type PersonaResult struct {
	PersonaRow
	Text string `json:"text"`
	AsOf uint64 `json:"asOf"`
}

// PersonasResult is a whole catalog, by name, at one sequence.
type PersonasResult struct {
	Items []PersonaRow `json:"items"`
	AsOf  uint64       `json:"asOf"`
}

// The commands about personas.
var (
	PersonaDefine = command[PersonaInput, PersonaWritten](Contract{
		Name: "persona-define", Kind: Write, Target: TargetAny, Modes: aboutOwner, Capability: CanPersona,
		Doc:     "Give a persona its content. One that is not answered may have been written: read it back, or ask again with the same id.",
		Example: `{"name":"reviewer","text":"You review changes."}`, Refusals: []fault.Code{fault.Conflict, fault.Expired, fault.FailedPrecondition},
	})
	PersonaRemove = command[PersonaRef, PersonaWritten](Contract{
		Name: "persona-remove", Kind: Write, Target: TargetAny, Modes: aboutOwner, Capability: CanPersona,
		Doc: "Take a persona out of the catalog; what was spawned as it goes on.", Example: `{"name":"reviewer"}`,
		Refusals: []fault.Code{fault.NotFound, fault.Conflict, fault.Expired, fault.FailedPrecondition},
	})
	PersonaList = command[Empty, PersonasResult](Contract{
		Name: "persona-list", Kind: Read, Target: TargetAny, Modes: aboutOwner, Capability: CanRead,
		Doc: "The personas of an owner, without their texts.", Example: `{}`, Refusals: []fault.Code{fault.FailedPrecondition},
	})
	PersonaShow = command[PersonaRef, PersonaResult](Contract{
		Name: "persona-show", Kind: Read, Target: TargetAny, Modes: aboutOwner, Capability: CanRead,
		Doc: "One persona with its text.", Example: `{"name":"reviewer"}`, Refusals: []fault.Code{fault.NotFound, fault.FailedPrecondition},
	})
)
