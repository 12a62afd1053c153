//go:build linux

package qemu

import (
	"context"
	"fmt"

	"berth/events"
	"berth/providers"
)

// TakesConnector implements providers.Connector: a machine is given prompt and
// persona with its material, its agent looks for signs, and its first process is
// this program.
func (d *Driver) TakesConnector(events.Connector) error { return nil }

// Defaults implements providers.Defaulter: a machine has an image of its own,
// whole processors, and room for its kernel.
func (d *Driver) Defaults(context.Context) (providers.Defaults, error) {
	return providers.Defaults{Image: &events.Image{Kind: "template", Reference: Template}, CPUs: "1", Memory: fmt.Sprintf("%dMiB", DefaultMemory)}, nil
}
