package hosted

import (
	"berth/events"
	"berth/providers"
)

// ExposeBearer: a guest on another machine reaches https and no socket of this
// one (R43, R51). Whether a guest of the plan really does, the provider there
// says when the launch comes.
func (d *Driver) ExposeBearer(_ events.Plan, s events.BearerSource) error {
	if s.Kind != events.BearerHTTPS {
		return providers.CannotExpose(d.name, s.Kind)
	}
	return nil
}
