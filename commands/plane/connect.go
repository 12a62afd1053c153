package plane

import (
	"context"

	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/internal/connector"
	"berth/providers"
)

// beginnable refuses what this instance can't begin of a plan, before
// anything is made for it; it says nothing of others.
func (p *Plane) beginnable(ctx context.Context, plan events.Plan) error {
	if err := p.delegable(ctx, plan); err != nil {
		return err
	}
	e, err := p.Providers.Get(plan.Provider)
	if err != nil {
		return err
	}
	if _, err := p.Connectors.Use(nameOf(plan)); err != nil {
		return err
	}
	return e.Connectable(plan)
}

// ApartFromClass are the commands that this plane takes at its own address
// only: without a usable connector it leaves the class of those that spawn,
// and another instance gets what it could only refuse. It is decided once, at
// the start.
func (p *Plane) ApartFromClass() []string {
	if p.classSpawn {
		return nil
	}
	return []string{commands.Spawn.Name, commands.Reserve.Name}
}

// nameOf is the connector of a plan; a plain command is run as it is.
func nameOf(plan events.Plan) string {
	if plan.Connector == nil {
		return connector.Exec
	}
	return plan.Connector.Name
}

// connected is the plan with the command line of its connector.
func (p *Plane) connected(plan events.Plan) events.Plan {
	if row, err := connector.Find(nameOf(plan)); err == nil {
		plan.Command = row.Command(plan.Command)
	}
	return plan
}

// commanded refuses a spawn that says nothing of what is to run, where the
// provider has nothing to run of its own: before a number is used up for it.
func (p *Plane) commanded(plan events.Plan) error {
	e, err := p.Providers.Get(plan.Provider)
	if err != nil {
		return nil // another instance may have it, and know
	}
	if len(p.connected(plan).Command) > 0 || !providers.NeedsCommand(e.Driver) || plan.Options[providers.OptionFrom] != "" {
		return nil // what begins from a checkpoint is refused for that first
	}
	return fault.New(fault.BadRequest, "there is nothing to run: provider %s needs a command", plan.Provider).WithOutcome(fault.NotExecuted).
		WithHint("give one after --, or --connector %s for a shell", connector.Shell)
}
