package berth

import (
	"context"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"berth/aggregates/instance"
	"berth/events"
	"berth/events/fault"
	"berth/providers/process"
	"berth/providers/qemu"
)

// Limits of what an operator says of an instance.
const (
	MaxLabels = 32 // on one instance
	MaxLabel  = 63 // bytes of a label's name, and of its value
)

// factsEvery is how often the providers are asked again what they offer; it is
// published when it has changed.
const factsEvery = 5 * time.Minute

// shared says which providers make environments on the manager's own host. The
// others have a host, or an account, of their own.
func shared(provider string) bool { return provider == process.Name || provider == qemu.Name }

// hostFacts are those of the first provider that can tell, the process driver
// before others, with the engines of all; a host that no provider knows offers
// nothing. Beside them is what each provider that can tell offers (R76-R82).
func (m *Manager) hostFacts(ctx context.Context) (events.HostFacts, []events.ProviderFacts) {
	name, _ := os.Hostname()
	facts := events.HostFacts{Host: orElse(name, "unknown"), Architecture: runtime.GOARCH, OS: runtime.GOOS, ObservedAt: events.MillisUTC(m.clock.Now())}
	var engines []events.Engine
	offers := []events.ProviderFacts{}
	for _, n := range m.drivers.Names() {
		e, err := m.drivers.Get(n)
		if err != nil {
			continue
		}
		f, err := e.Driver.HostFacts(ctx)
		if err != nil {
			m.logger.Warn("a provider can't tell of its host", "provider", n, "reason", err)
			continue
		}
		if n == process.Name || len(engines) == 0 {
			facts = f
		}
		for _, one := range f.Engines {
			if !slices.Contains(engines, one) {
				engines = append(engines, one)
			}
		}
		offers = append(offers, events.ProviderFacts{Provider: n, Shared: shared(n), Facts: f})
	}
	facts.Engines = engines
	return facts, offers
}

// observed is what this instance publishes of itself.
func (m *Manager) observed(epoch uint64, offers []events.ProviderFacts) events.InstanceObserved {
	return events.InstanceObserved{Instance: m.dir.Identity.Instance, Epoch: epoch, Labels: m.opts.Labels, Providers: offers}
}

// observe publishes again what the providers offer, if that has changed.
func (k *keeper) observe(ctx context.Context) {
	_, offers := k.m.hostFacts(ctx)
	k.record(ctx, func(s instance.State) ([]events.Event, error) {
		return s.Observe(k.m.observed(k.m.writer.Epoch, offers)), nil
	})
}

// checkLabels accepts the labels of an instance: few, short, public text (R71).
func checkLabels(labels map[string]string) error {
	if len(labels) > MaxLabels {
		return badConfig("--host-label: there are %d; at most %d are possible", len(labels), MaxLabels)
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		v := labels[k]
		if k == "" || v == "" || len(k) > MaxLabel || len(v) > MaxLabel {
			return badConfig("--host-label: name and value have 1 to %d bytes", MaxLabel)
		}
		if err := events.CheckText("--host-label", k+"="+v); err != nil {
			return badConfig("%s", fault.From(err).Message)
		}
	}
	return nil
}
