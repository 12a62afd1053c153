package berth

import (
	"os"
	"time"

	"berth/events/fault"
	"berth/providers"
	"berth/providers/adapter"
	"berth/providers/docker"
	"berth/providers/fly"
)

// openAdapters registers the providers that speak to somebody else's API: only
// those that the options name, and a Docker Engine that this directory has
// environments of, since what it holds must stay reachable.
func openAdapters(d *DataDir, o Options, now func() time.Time) (bundles []providers.Bundle, closers []func() error, err error) {
	add := func(p *adapter.Driver, bundle func(*adapter.Driver) providers.Bundle) {
		bundles, closers = append(bundles, bundle(p)), append(closers, p.Close)
	}
	_, known := os.Stat(d.File(dockerDir))
	if o.Docker != "" || known == nil {
		p, err := docker.Open(docker.Config{Dir: d.File(dockerDir), Socket: o.Docker, Clock: now})
		if err != nil {
			return bundles, closers, badConfig("--docker: %s", fault.From(err).Message)
		}
		add(p, docker.Bundle)
	}
	if o.Fly == "" {
		return bundles, closers, nil
	}
	cfg, err := fly.Parse(o.Fly)
	if err != nil {
		return bundles, closers, badConfig("%s", fault.From(err).Message)
	}
	cfg.Dir, cfg.Clock = d.File(flyDir), now
	p, err := fly.Open(cfg)
	if err != nil {
		return bundles, closers, badConfig("--fly: %s", fault.From(err).Message)
	}
	add(p, fly.Bundle)
	return bundles, closers, nil
}
