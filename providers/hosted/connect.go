package hosted

import (
	"context"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

const (
	// aboutWithin bounds a question about the provider itself: a spawn waits
	// for the answer.
	aboutWithin = 5 * time.Second
	// defaultsFor is how long the provider's defaults are believed unasked:
	// another driver may be served there after a restart.
	defaultsFor = time.Minute
)

// TakesConnector: whether the provider there runs it, its preflight says
// before anything is reserved; its sign comes with the facts.
func (d *Driver) TakesConnector(events.Connector) error { return nil }

// Defaults implements providers.Defaulter: they are those of the driver behind
// the endpoint. One that does not answer is believed to have what it had; one
// that never answered is refused, since what a spawn means is not known then.
func (d *Driver) Defaults(ctx context.Context) (providers.Defaults, error) {
	d.mu.Lock()
	last, asked := d.defaults, d.asked
	d.mu.Unlock()
	if last != nil && d.clock().Sub(asked) < defaultsFor {
		return *last, nil
	}
	ctx, cancel := context.WithTimeout(ctx, aboutWithin)
	defer cancel()
	p, err := d.Provider(ctx)
	switch {
	case err != nil && last == nil:
		return providers.Defaults{}, fault.From(err).WithOutcome(fault.NotExecuted).
			WithHint("try again when it answers, or say --image, --cpus and --memory")
	case err != nil:
		return *last, nil
	case p.Defaults == nil:
		p.Defaults = &providers.Defaults{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.defaults, d.asked = p.Defaults, d.clock()
	return *p.Defaults, nil
}
