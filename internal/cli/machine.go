//go:build linux

package cli

import (
	"context"
	"os"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process"
	"berth/providers/qemu"
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
	if err != nil {
		return nil, err
	}
	return append(p.Checks, microVMs()), nil
}

// microVMs says whether the qemu provider can run here. A host without it is
// whole: it is one provider less.
func microVMs() events.Check {
	if err := qemu.Available(); err != nil {
		return events.Check{Name: "microvm", OK: true, Detail: "not on this host: " + events.Scrub(fault.From(err).Message)}
	}
	return events.Check{Name: "microvm", OK: true, Detail: "QEMU and a kernel are there; limits by control groups: " + qemu.Limits()}
}
