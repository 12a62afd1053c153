package providers

import (
	"berth/events"
	"berth/events/fault"
	"context"
)

// Connector is implemented by drivers whose seats can run a connector: they
// put events.FilePrompt and events.FilePersona where the seat finds its material, and tell
// in Facts.Ready of the sign that the plan asks for.
type Connector interface {
	// TakesConnector refuses, with unimplemented and before any effect, what
	// the driver can't do of it: a kind of sign, or text that it can't deliver.
	TakesConnector(c events.Connector) error
}

// Connectable refuses a plan whose connector this provider can't run, with
// unimplemented and before any effect.
func (e Entry) Connectable(plan events.Plan) error { return connectable(e.Driver, plan) }

func connectable(d Driver, plan events.Plan) error {
	c := plan.Connector
	if c == nil {
		return nil
	}
	if x, ok := Raw(d).(Connector); ok {
		return x.TakesConnector(*c)
	}
	switch {
	case c.Ready != nil:
		return CannotConnect(d.Name(), "its seats can't show that they are ready: by "+string(c.Ready.Kind))
	case c.Prompt != "" || c.Persona != "":
		return CannotConnect(d.Name(), "it can't hand a prompt or a persona to its seats")
	}
	return nil
}

// CannotConnect is the refusal of a connector, and why in public text.
func CannotConnect(driver, why string) *fault.Error {
	return fault.New(fault.Unimplemented, "provider %s does not run this connector: %s", driver, why).WithOutcome(fault.NotExecuted).
		WithHint("take another provider, or a plain command without --connector, --persona and --prompt")
}

// Commander is implemented by drivers that may run nothing of their own: an
// environment without a command can't start there.
type Commander interface {
	// NeedsCommand says that a plan has to have a command.
	NeedsCommand() bool
}

// NeedsCommand says that a plan without a command can't start at a driver.
// One that does not say is asked by its preflight.
func NeedsCommand(d Driver) bool {
	c, ok := Raw(d).(Commander)
	return ok && c.NeedsCommand()
}

// Defaults are what a spawn gets that does not say: an image, and sizes as
// people write them. Empty: as for every provider.
type Defaults struct {
	Image  *events.Image `json:"image,omitempty"`
	CPUs   string        `json:"cpus,omitempty"`   // an exact decimal
	Memory string        `json:"memory,omitempty"` // such as 256MiB
}

// Defaulter is implemented by drivers whose environments can't be made with
// what others begin with.
type Defaulter interface {
	// Defaults fit the driver's own limits. A driver that has to ask another
	// machine refuses, not-executed, when it gets no answer and never had one.
	Defaults(context.Context) (Defaults, error)
}

// DefaultsOf are the defaults of a driver, none if it has none of its own.
func DefaultsOf(ctx context.Context, d Driver) (Defaults, error) {
	if x, ok := Raw(d).(Defaulter); ok {
		return x.Defaults(ctx)
	}
	return Defaults{}, nil
}
