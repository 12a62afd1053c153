package hosted

import (
	"context"

	"berth/events/fault"
	"berth/internal/handoff"
)

// TakesHandoff implements providers.Delegator: the driver on the other machine
// stages the hand-off, so it is asked. It is unimplemented where that one does
// not, and where the provider is of a version that does not say.
func (d *Driver) TakesHandoff(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, aboutWithin)
	defer cancel()
	p, err := d.Provider(ctx)
	switch {
	case err != nil:
		return fault.From(err).WithOutcome(fault.NotExecuted)
	case !p.Delegates:
		return handoff.Refused(fault.Unimplemented, "provider "+d.name+" does not begin delegated seats where it is served")
	}
	return nil
}
