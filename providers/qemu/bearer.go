//go:build linux

package qemu

import (
	"berth/events"
	"berth/providers"
)

// ExposeBearer: a machine shares no socket with this host, and reaches https
// with the user network (R51).
func (d *Driver) ExposeBearer(plan events.Plan, s events.BearerSource) error {
	ch, err := choices(plan)
	if err != nil {
		return err
	}
	if s.Kind != events.BearerHTTPS || ch.network != "user" {
		return providers.CannotExpose(d.Name(), s.Kind).WithHint("a machine with network user reaches an https source")
	}
	return nil
}
