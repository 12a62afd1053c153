package fly

import (
	"berth/events"
	"berth/providers"
)

// ExposeBearer: a machine in the cloud reaches an https source, and no socket of
// the manager's host (R51).
func (b *backend) ExposeBearer(_ events.Plan, s events.BearerSource) error {
	if s.Kind != events.BearerHTTPS {
		return providers.CannotExpose(Name, s.Kind)
	}
	return nil
}
