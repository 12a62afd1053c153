package adapter

import (
	"berth/events"
	"berth/providers"
)

// ExposeBearer asks the backend, if it exposes any source at all (R51).
func (d *Driver) ExposeBearer(plan events.Plan, s events.BearerSource) error {
	if x, ok := d.b.(providers.BearerExposer); ok {
		return x.ExposeBearer(plan, s)
	}
	return providers.CannotExpose(d.Name(), s.Kind)
}
