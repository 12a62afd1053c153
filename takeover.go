package berth

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"berth/commands"
	"berth/events"
	"berth/events/fault"
)

// drillProvider is the name of the provider of --drill.
const drillProvider = "drill"

// silentFor is how long an instance that is asked whether it serves may take.
const silentFor = 2 * time.Second

// bound says which providers' environments only the manager that made them can
// reach: they are on its host, or, simulated, in its directory.
func bound(provider string) bool { return shared(provider) || provider == drillProvider }

// silent says that nobody answers in the place of an instance: no connection
// serves its commands. One that is connected and mute may go on.
func (m *Manager) silent(ctx context.Context, id events.InstanceID) error {
	to := commands.Address{Target: string(id), Command: commands.Status.Name, Mode: commands.ModeNone, Caller: m.dir.Identity.Caller}
	ctx, cancel := context.WithTimeout(ctx, silentFor)
	defer cancel()
	_, err := m.nc.RequestWithContext(ctx, to.Subject(m.opts.Space), []byte(`{"input":{}}`))
	switch {
	case err == nil:
		return fault.New(fault.FailedPrecondition, "instance %s serves", id).WithHint("`berth stop` ends it in order; its environments go on, and stay its own until then")
	case errors.Is(err, nats.ErrNoResponders):
		return nil
	}
	return fault.New(fault.Unavailable, "whether instance %s serves is not known: %s", id, events.Scrub(err.Error())).WithOutcome(fault.NotExecuted).
		WithHint("a manager that hangs may go on: end its process first, then ask again")
}
