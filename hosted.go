package berth

import (
	"time"

	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted"
)

// checkHosted refuses what can't be read as a provider on another machine, before
// anything is opened.
func checkHosted(specs []string) error {
	for _, spec := range specs {
		if _, err := hosted.ParseSpec(spec); err != nil {
			f := fault.From(err)
			return badConfig("--hosted: %s", f.Message).WithHint("%s", f.Hint)
		}
	}
	return nil
}

// openHosted registers the providers on other machines. Nothing is connected
// yet: a manager starts while a provider is away.
func openHosted(o Options, now func() time.Time) (bundles []providers.Bundle, closers []func() error, err error) {
	for _, spec := range o.Hosted {
		c, err := hosted.ParseSpec(spec)
		if err != nil {
			return bundles, closers, badConfig("--hosted: %s", fault.From(err).Message)
		}
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
