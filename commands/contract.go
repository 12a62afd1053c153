package commands

import (
	"encoding/json"
	"reflect"
	"time"

	"berth/events/fault"
)

// Kind is how a command behaves.
type Kind string

// The kinds. A read appends nothing; a write is one decision, repeatable under
// its id; a goal is accepted durably and ends later; an effect appends nothing
// and is done at most once, so that it is never repeated by itself.
const (
	Read   Kind = "read"
	Write  Kind = "write"
	Goal   Kind = "goal"
	Effect Kind = "effect"
)

// Targets is which instances can be asked.
type Targets string

// The targets. A holder command is asked of any instance, and one that does
// not hold the thing answers who does (DetailBindRefused).
const (
	TargetAny    Targets = "any"
	TargetOne    Targets = "one"
	TargetHolder Targets = "holder"
)

// DetailBindRefused is the kind of detail that names the instance that can
// answer, as boundTo, and the one that was asked, as servedBy.
const DetailBindRefused = "berth.bind-refused"

// Capability is what a credential must grant for a command.
type Capability string

// The capabilities.
const (
	Baseline  Capability = "baseline" // every credential has it
	CanRead   Capability = "manager.read"
	CanSpawn  Capability = "manager.spawn"
	CanManage Capability = "manager.lifecycle"
	CanFiles  Capability = "manager.files"
	CanAdmin  Capability = "manager.admin"
	// CanSelf is what a seat may ask of itself; every seat's credential has it.
	CanSelf Capability = "manager.self"
	// CanPersona defines and removes personas.
	CanPersona Capability = "manager.persona"
)

// Contract is one row of the table: everything that any surface derives from a
// command.
type Contract struct {
	Name       string
	Kind       Kind
	Target     Targets
	Modes      []Mode
	Capability Capability
	Timeout    time.Duration // default deadline of a call
	Refusals   []fault.Code  // beside those that every command has (CommonRefusals)
	Doc        string        // one sentence, for the docs and the program's help
	Example    string        // an input, as JSON
	Keyed      bool          // a write whose input names what is done once; any other write needs the id of its request

	In, Out reflect.Type
	check   func([]byte) error
}

// Command is a row with the Go types of its input and result.
type Command[In Input, Out any] struct{ *Contract }

// Check decodes and checks an input without doing anything.
func (c *Contract) Check(input json.RawMessage) error { return c.check(input) }

// Find is the row of a name; unimplemented if there is none.
func Find(name string) (*Contract, error) {
	for _, c := range Table {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fault.New(fault.Unimplemented, "there is no command %q", clip(name)).WithHint("`describe` lists the commands")
}

// CommonRefusals are the codes that every command may answer with.
var CommonRefusals = []fault.Code{fault.BadRequest, fault.PermissionDenied, fault.DeadlineExceeded, fault.ResourceExhausted, fault.Unavailable, fault.Unimplemented}

var (
	aboutOwner  = []Mode{ModeOwner, ModeAny}
	aboutNobody = []Mode{ModeNone}
	// aboutCaller is for goals: they belong to the caller triple itself.
	aboutCaller = []Mode{ModeSelf}
)

func command[In Input, Out any](c Contract) Command[In, Out] {
	var in In
	var out Out
	c.In, c.Out = reflect.TypeOf(in), reflect.TypeOf(out)
	c.check = func(b []byte) error { _, err := DecodeInput[In](b); return err }
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	return Command[In, Out]{&c}
}
