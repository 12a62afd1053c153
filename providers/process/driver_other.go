//go:build !linux

package process

import (
	"runtime"
	"time"

	"berth/events/fault"
	"berth/providers"
)

// Name is how the provider is registered.
const Name = "process"

// Config is what a driver is made with; see the Linux build.
type Config struct {
	Dir     string
	Self    string
	SelfEnv []string
	Clock   func() time.Time
	Hide    []string
}

// Driver exists on Linux only.
type Driver struct{ providers.Driver }

// New refuses with unimplemented: namespaces, pidfds and control groups are
// Linux's.
func New(Config) (*Driver, error) {
	return nil, fault.New(fault.Unimplemented, "the process provider needs Linux, and this is %s", runtime.GOOS)
}

// Main handles nothing here.
func Main([]string) (handled bool, code int) { return false, 0 }
