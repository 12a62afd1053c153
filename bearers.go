package berth

import (
	"strings"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// bearers reads Options.BearerSources; each provider that it names must be
// registered, and has one source.
func bearers(specs []string, drivers *providers.Registry) (map[string]events.BearerSource, error) {
	out := map[string]events.BearerSource{}
	for _, spec := range specs {
		name, text, ok := strings.Cut(spec, "=")
		if !ok {
			return nil, badConfig("a bearer source is PROVIDER=socket:/PATH or PROVIDER=https://HOST[:PORT][/PATH]")
		}
		if _, err := drivers.Get(name); err != nil {
			return nil, badConfig("a bearer source of provider %q, which is not registered here", events.Scrub(name))
		}
		if _, twice := out[name]; twice {
			return nil, badConfig("provider %s has two bearer sources: a guest has one", name)
		}
		source, err := events.ParseBearerSource(text)
		if err != nil {
			return nil, badConfig("provider %s: %s", name, fault.From(err).Message)
		}
		out[name] = source
	}
	return out, nil
}
