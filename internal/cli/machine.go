//go:build linux

package cli

import (
	"context"
	"os"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process"
)

// MachineChecks is the preflight of a plain plan of the process provider on
// this machine. It leaves nothing behind.
func MachineChecks(ctx context.Context) ([]events.Check, error) {
	dir, err := os.MkdirTemp("", "berth-doctor-")
	if err != nil {
		return nil, fault.New(fault.FailedPrecondition, "no temporary directory: %s", err)
	}
	defer os.RemoveAll(dir)
	d, err := process.New(process.Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	p, err := d.Preflight(ctx, events.Plan{
		Provider: process.Name, Image: events.Image{Kind: "template", Reference: "host"},
		Resources: events.Resources{CPUs: events.MustQuantity("0.1"), MemoryMiB: 32}, Command: []string{"sh", "-c", "true"},
	})
	return p.Checks, err
}
