//go:build linux

package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/image"
	"berth/providers/process/seatdir"
)

// Name is the name under which the driver registers.
const Name = "qemu"

// Template is the one image: an agent and basic programs of this host.
const Template = "minimal"

// bootDir holds what machines boot, beside their directories.
const bootDir = ".boot"

// Limits of the driver.
const (
	MaxMachines     = 32             // that run at a time
	ExtendStep      = 24 * time.Hour // the most that one extend adds (R28)
	DefaultGrace    = 10 * time.Second
	DefaultMemory   = 256 // MiB
	MinMemory       = 192 // MiB: less does not hold the kernel and the agent
	MaxMemory       = 64 << 10
	MaxCPUs         = 8
	MaxMaterial     = 64
	MaxMaterialSize = 1 << 20
	MaxCheckpoints  = 16
	MaxFiles        = 16
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
	// QEMU is the program; empty: qemu-system-x86_64 from PATH.
	QEMU string
}

// Driver is the microVM provider. It holds no state of environments: that is
// in their directories, in the supervisors and in the machines.
type Driver struct {
	cfg     Config
	host    string
	watches *watches

	mu     sync.Mutex // one probe and one packing at a time
	probed *probe
}

var (
	_ providers.Driver  = (*Driver)(nil)
	_ providers.Watcher = (*Driver)(nil)
	_ providers.Adopter = (*Driver)(nil)
)

// New makes a driver over a machines directory. It starts nothing; what runs
// is taken up by Adopt. Whether machines can run is a matter of Preflight.
func New(cfg Config) (*Driver, error) {
	if cfg.Dir == "" || !filepath.IsAbs(cfg.Dir) {
		return nil, fault.New(fault.BadRequest, "machines directory %q: an absolute path", cfg.Dir)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Root == "" {
		cfg.Root = "/"
	}
	if cfg.Self == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding our own program: %w", err)
		}
		cfg.Self = self
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, bootDir), 0o700); err != nil {
		return nil, fault.New(fault.FailedPrecondition, "machines directory: %s", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host's name: %w", err)
	}
	return &Driver{cfg: cfg, host: host, watches: newWatches()}, nil
}

// Name is "qemu".
func (d *Driver) Name() string { return Name }

// Close releases what the driver holds. Supervisors and machines go on.
func (d *Driver) Close() error { return d.watches.close() }

// DescribeImage answers about template minimal (R16-R20).
func (d *Driver) DescribeImage(_ context.Context, im events.Image) (events.ImageDescription, error) {
	if im.Kind != "template" {
		return events.ImageDescription{}, fault.New(fault.Unimplemented, "the qemu provider has template %s and takes no %s image", Template, events.Scrub(im.Kind))
	}
	if im.Reference != Template {
		return events.ImageDescription{}, fault.New(fault.NotFound, "the qemu provider has no template %q; it has %s", events.Scrub(im.Reference), Template)
	}
	host, err := image.Describe(context.Background(), events.Image{Kind: "template", Reference: image.HostTemplate})
	if err != nil {
		return events.ImageDescription{}, err
	}
	return events.ImageDescription{Image: im, Architecture: host.Architecture, ABI: host.ABI}, nil
}

// List names the environments of the directory (R92: evidence for a person).
func (d *Driver) List(ctx context.Context) ([]providers.Listed, error) {
	var out []providers.Listed
	err := d.each(ctx, func(dir seatdir.Dir, j *seatdir.Journal) {
		state := events.StateUnknown
		if f, err := d.observe(ctx, dir, j, false); err == nil {
			state = f.State
		}
		out = append(out, providers.Listed{Environment: dir.ID, Ref: j.Ref, State: state})
	})
	return out, err
}

// each visits every environment that has a life.
func (d *Driver) each(ctx context.Context, visit func(seatdir.Dir, *seatdir.Journal)) error {
	entries, err := os.ReadDir(d.cfg.Dir)
	if err != nil {
		return fault.New(fault.Unavailable, "machines directory: %s", err)
	}
	for _, e := range entries {
		id, err := events.ParseEnvironmentID(e.Name())
		if err != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		j, err := d.machine(id).LoadJournal()
		if err != nil || j.Phase == seatdir.PhaseNone || j.Phase == seatdir.PhaseDestroyed {
			continue
		}
		visit(d.machine(id), j)
	}
	return nil
}

func (d *Driver) machine(id events.EnvironmentID) seatdir.Dir { return seatdir.In(d.cfg.Dir, id) }

func (d *Driver) now() time.Time { return events.MillisUTC(d.cfg.Clock()) }

// ref is the reference that this driver binds at reserve.
func (d *Driver) ref(id events.EnvironmentID) string {
	return fmt.Sprintf("qemu:%s:%s", d.host, id)
}

// known loads the journal of an environment that the driver has and whose
// reference is ref; an empty ref matches before the reservation.
func (d *Driver) known(id events.EnvironmentID, ref string) (seatdir.Dir, *seatdir.Journal, error) {
	dir := d.machine(id)
	if _, err := events.ParseEnvironmentID(string(id)); err != nil {
		return dir, nil, err
	}
	j, err := dir.LoadJournal()
	switch {
	case err != nil:
		return dir, nil, fault.New(fault.Unavailable, "journal of environment %s: %s", id, err)
	case j.Phase == seatdir.PhaseNone:
		return dir, nil, fault.New(fault.NotFound, "this host has no environment %s", id)
	case ref != "" && ref != j.Ref:
		return dir, nil, fault.New(fault.NotFound, "environment %s is %s here, not the reference asked for", id, j.Ref)
	}
	return dir, j, nil
}

// seen turns any error into a fault that says what it was about.
func seen(what string, id events.EnvironmentID, err error) *fault.Error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f
	}
	code := fault.Unavailable
	if errors.Is(err, context.DeadlineExceeded) {
		code = fault.DeadlineExceeded
	}
	return fault.New(code, "%s of environment %s: %s", what, id, err).WithOutcome(fault.Unknown)
}
