//go:build !linux

package cli

import (
	"context"

	"berth/events"
	"berth/events/fault"
)

// MachineChecks has nothing to check where the process provider does not run.
func MachineChecks(context.Context) ([]events.Check, error) {
	return nil, fault.New(fault.Unimplemented, "environments on this host need Linux")
}
