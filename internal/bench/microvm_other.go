//go:build !linux

package bench

import (
	"context"

	"berth/providers/qemu"
)

// microVMs says why none runs here.
func microVMs() error { return qemu.Available() }

func measureMicroVM(context.Context, Options) ([]Row, error) { return nil, microVMs() }
