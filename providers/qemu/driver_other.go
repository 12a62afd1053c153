//go:build !linux

package qemu

import (
	"runtime"
	"time"

	"berth/events/fault"
	"berth/providers"
)

// Name is the name under which the driver registers.
const Name = "qemu"

// Config is what a driver is made with; see the Linux build.
type Config struct {
	Dir, Self, Kernel string
	SelfEnv           []string
	Clock             func() time.Time
}

// Driver exists on Linux only.
type Driver struct{ providers.Driver }

// New refuses with unimplemented: supervisors need Linux's pidfds.
func New(Config) (*Driver, error) { return nil, Available() }

// Available says why microVMs can't run here.
func Available() error {
	return fault.New(fault.Unimplemented, "the qemu provider needs Linux, and this is %s", runtime.GOOS)
}

// Main handles nothing here.
func Main([]string) (handled bool, code int) { return false, 0 }
