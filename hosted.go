package berth

import (
	"time"

	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted"
)

// hostedOf reads the providers on other machines.
func hostedOf(specs []string) ([]hosted.Config, error) {
	var out []hosted.Config
	for _, spec := range specs {
		c, err := hosted.ParseSpec(spec)
		if err != nil {
			f := fault.From(err)
			return nil, badConfig("--hosted: %s", f.Message).WithHint("%s", f.Hint)
		}
		out = append(out, c)
	}
	return out, nil
}

// openHosted registers the providers on other machines. Nothing is connected
// yet: a manager starts while a provider is away.
func openHosted(o Options, now func() time.Time) (bundles []providers.Bundle, closers []func() error, err error) {
	configs, err := hostedOf(o.Hosted)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range configs {
		c.Clock = now
		d, err := hosted.New(c)
		if err != nil {
			f := fault.From(err)
			return bundles, closers, badConfig("--hosted %s: %s", c.Name, f.Message).WithHint("%s", f.Hint)
		}
		bundles = append(bundles, providers.BundleOf(d, map[providers.Surface]string{
			providers.SurfaceAdopt: "the other machine takes up its own environments",
		}))
		closers = append(closers, d.Close)
	}
	return bundles, closers, nil
}
