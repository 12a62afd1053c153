//go:build linux

package qemu

import (
	"berth/events"
	"berth/providers"
)

// TakesConnector implements providers.Connector: a machine is given prompt and
// persona with its material; its agent does not look for signs.
func (d *Driver) TakesConnector(c events.Connector) error {
	if c.Ready != nil {
		return providers.CannotConnect(d.Name(), "the agent of a machine does not look for signs of readiness")
	}
	return nil
}
