//go:build linux

package qemu

import (
	"fmt"

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

// Defaults implements providers.Defaulter: a machine has an image of its own,
// whole processors, and room for its kernel.
func (d *Driver) Defaults() providers.Defaults {
	return providers.Defaults{Image: &events.Image{Kind: "template", Reference: Template}, CPUs: "1", Memory: fmt.Sprintf("%dMiB", DefaultMemory)}
}
