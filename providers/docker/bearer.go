package docker

import (
	"berth/events"
	"berth/providers"
)

// ExposeBearer: a container on the engine's bridge reaches an https source; no
// socket of the manager's host is mounted into one (R51).
func (b *backend) ExposeBearer(plan events.Plan, s events.BearerSource) error {
	net, err := network(plan)
	if err != nil {
		return err
	}
	if s.Kind != events.BearerHTTPS || net != "bridge" {
		return providers.CannotExpose(Name, s.Kind).WithHint("a container with network bridge reaches an https source")
	}
	return nil
}
