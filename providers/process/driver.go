//go:build linux

package process

import (
	"context"
	"sync"
	"time"

	"berth/events"
	"berth/providers"
	"berth/providers/process/cgroup"
	"berth/providers/process/custodian"
	"berth/providers/process/image"
	"berth/providers/seat"
)

// Name is the name under which the driver registers.
const Name = "process"

// imagesDir holds unpacked images, beside the seats that use them.
const imagesDir = ".images"

// Limits of the driver.
const (
	MaxSeats       = 4096 // directories with a life in them
	MaxCheckpoints = 64   // of one seat
	MaxFiles       = 64   // exported ones of one seat
)

// Config is what a driver is made with.
type Config struct {
	// Dir is the seats directory; it is made. It must be on a local filesystem
	// that keeps locks and modes, and belong to one manager.
	Dir string
	// Self is the program to re-execute, whose main calls Main; empty: the
	// running one. SelfEnv is added to the environment of custodians.
	Self    string
	SelfEnv []string
	// Clock is the wall clock; nil: the system's.
	Clock func() time.Time
	// Hide are more host directories that no seat may see, such as the
	// manager's data directory. Dir is always hidden.
	Hide []string
	// Probe replaces the trial of what the host offers; nil: the real one.
	Probe func(ctx context.Context) Host
}

// Driver is the process provider. It holds no state of environments: that is
// in the seats directory and in the processes themselves.
type Driver struct {
	*seat.Base
	hide   []string
	tryout func(ctx context.Context) Host
	groups cgroup.Finder

	mu     sync.Mutex
	probed Host
	probe  time.Time // by the monotonic clock; zero: not yet
}

var (
	_ providers.Driver   = (*Driver)(nil)
	_ providers.Watcher  = (*Driver)(nil)
	_ providers.Adopter  = (*Driver)(nil)
	_ providers.Terminal = (*Driver)(nil)
)

// New makes a driver over a seats directory. It starts nothing and looks at
// no seat; what runs is taken up by Adopt.
func New(cfg Config) (*Driver, error) {
	d := &Driver{hide: cfg.Hide, tryout: cfg.Probe}
	base, err := seat.New(seat.Config{Dir: cfg.Dir, Self: cfg.Self, SelfEnv: cfg.SelfEnv, Clock: cfg.Clock}, seat.Kind{
		Name: Name, Holder: "custodian", Role: custodian.Role,
		// Few threads and a small heap: one custodian lives per seat.
		Env:            append([]string{"PATH=" + defaultPath, "GOMAXPROCS=2", "GOGC=50"}, roleEnv...),
		Mode:           0o711, // passable for seats, whose user is another one; not listable
		Captures:       []events.ProviderState{events.StateCreating, events.StateRunning, events.StatePaused, events.StateStopped},
		MaxCheckpoints: MaxCheckpoints, MaxFiles: MaxFiles, CaptureExt: ".tar", ExportExt: ".tar",
		Network: resolved, Sees: network, Provision: d.provision, Start: d.startOf, Checkpoint: d.checkpoint,
		Restore: d.restore, Settle: settleHome,
	})
	if err != nil {
		return nil, err
	}
	d.Base = base
	return d, nil
}

// DescribeImage answers about template `host` or an OCI image in this host's
// files (R16-R20).
func (d *Driver) DescribeImage(ctx context.Context, im events.Image) (events.ImageDescription, error) {
	return image.Describe(ctx, im)
}
