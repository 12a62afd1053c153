//go:build linux

package qemu

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/cgroup"
	"berth/providers/process/image"
	"berth/providers/qemu/machine"
	"berth/providers/seat"
)

// Name is the name under which the driver registers.
const Name = "qemu"

// Template is the one image: an agent and basic programs of this host.
const Template = "minimal"

// bootDir holds what machines boot, beside their directories.
const bootDir = ".boot"

// Limits of the driver.
const (
	MaxMachines    = 32  // that run at a time
	DefaultMemory  = 256 // MiB
	MinMemory      = 192 // MiB: less does not hold the kernel and the agent
	MaxMemory      = 64 << 10
	MaxCPUs        = 8
	MaxCheckpoints = 16
	MaxFiles       = 16
)

// Config is what a driver is made with.
type Config struct {
	// Dir is the directory of the machines; it is made. It must be on a local
	// filesystem that keeps locks and modes, and belong to one manager.
	Dir string
	// Self is the program to re-execute as supervisor and to pack as agent,
	// whose main calls Main; empty: the running one. SelfEnv is added to the
	// environment of supervisors.
	Self    string
	SelfEnv []string
	// Clock is the wall clock; nil: the system's.
	Clock func() time.Time
	// Root is where /boot and /lib/modules are looked for; empty: the host's.
	Root string
	// Door is the directory of the socket of this host's manager, which the
	// seats that start while it is there can ask; empty: none.
	Door string
	// QEMU is the program; empty: qemu-system-x86_64 from PATH.
	QEMU string
}

// Driver is the microVM provider. It holds no state of environments: that is
// in their directories, in the supervisors and in the machines.
type Driver struct {
	*seat.Base
	root, program, door string // Config's Root, QEMU and Door

	candidate func() error          // why KVM need not be tried
	available func() (int64, error) // memory of the host in MiB
	groups    cgroup.Finder

	mu     sync.Mutex // one probe, one packing and one trial at a time
	probed *probe
	trying bool // a trial of KVM runs by itself
	trials sync.WaitGroup
	ctx    context.Context // of such trials
	stop   context.CancelFunc
}

var (
	_ providers.Driver  = (*Driver)(nil)
	_ providers.Watcher = (*Driver)(nil)
	_ providers.Adopter = (*Driver)(nil)
)

// New makes a driver over a machines directory. It starts nothing; what runs
// is taken up by Adopt. Whether machines can run is a matter of Preflight.
func New(cfg Config) (*Driver, error) {
	d := &Driver{root: cmp.Or(cfg.Root, "/"), program: cfg.QEMU, door: cfg.Door, candidate: candidate, available: available}
	d.ctx, d.stop = context.WithCancel(context.Background())
	base, err := seat.New(seat.Config{Dir: cfg.Dir, Self: cfg.Self, SelfEnv: cfg.SelfEnv, Clock: cfg.Clock}, seat.Kind{
		Name: Name, Holder: "supervisor", Role: machine.Role,
		Env:            []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "GOMAXPROCS=2"},
		Mode:           0o700,
		Captures:       []events.ProviderState{events.StateRunning, events.StatePaused},
		MaxCheckpoints: MaxCheckpoints, MaxFiles: MaxFiles, CaptureExt: machine.StateExt, ExportExt: ".bin",
		Network: resolved, Sees: card, Provision: d.provision, Start: d.startOf, Checkpoint: d.checkpoint, Restore: d.restore, Settle: settle,
	})
	if err != nil {
		return nil, err
	}
	d.Base = base
	if err := os.MkdirAll(filepath.Join(d.Dir, bootDir), 0o700); err != nil {
		return nil, fault.New(fault.FailedPrecondition, "machines directory: %s", err)
	}
	return d, nil
}

// Close releases what the driver holds, and ends a trial that runs.
// Supervisors and machines go on.
func (d *Driver) Close() error {
	d.stop()
	d.trials.Wait()
	return d.Base.Close()
}

// DescribeImage answers about template minimal (R16-R20).
func (d *Driver) DescribeImage(_ context.Context, im events.Image) (events.ImageDescription, error) {
	if im.Kind != "template" {
		return events.ImageDescription{}, fault.New(fault.Unimplemented, "the qemu provider has template %s and takes no %s image", Template, events.Scrub(im.Kind))
	}
	if im.Reference != Template {
		return events.ImageDescription{}, fault.New(fault.NotFound, "the qemu provider has no template %q; it has %s", events.Scrub(im.Reference), Template).
			WithHint("--image template:%s, with whole --cpus and a --memory of at least %dMiB", Template, MinMemory)
	}
	host, err := image.Describe(context.Background(), events.Image{Kind: "template", Reference: image.HostTemplate})
	if err != nil {
		return events.ImageDescription{}, err
	}
	return events.ImageDescription{Image: im, Architecture: host.Architecture, ABI: host.ABI}, nil
}
