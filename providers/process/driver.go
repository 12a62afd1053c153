//go:build linux

package process

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
const Name = "process"

// imagesDir holds unpacked images, beside the seats that use them.
const imagesDir = ".images"

// Limits of the driver.
const (
	MaxSeats        = 4096           // directories with a life in them
	ExtendStep      = 24 * time.Hour // the most that one extend adds (R28)
	DefaultGrace    = 10 * time.Second
	MaxMaterial     = 64 // pieces of staged material
	MaxMaterialSize = 1 << 20
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
	cfg     Config
	host    string
	watches *watches

	mu     sync.Mutex
	probed Host
	probe  time.Time // by the monotonic clock; zero: not yet
}

var (
	_ providers.Driver  = (*Driver)(nil)
	_ providers.Watcher = (*Driver)(nil)
	_ providers.Adopter = (*Driver)(nil)
)

// New makes a driver over a seats directory. It starts nothing and looks at
// no seat; what runs is taken up by Adopt.
func New(cfg Config) (*Driver, error) {
	if cfg.Dir == "" || !filepath.IsAbs(cfg.Dir) {
		return nil, fault.New(fault.BadRequest, "seats directory %q: an absolute path", cfg.Dir)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Self == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding our own program: %w", err)
		}
		cfg.Self = self
	}
	// Passable for seats, whose user is another one; not listable.
	if err := os.MkdirAll(cfg.Dir, 0o711); err != nil {
		return nil, fault.New(fault.FailedPrecondition, "seats directory: %s", err)
	}
	real, err := filepath.EvalSymlinks(cfg.Dir)
	if err != nil {
		return nil, fault.New(fault.FailedPrecondition, "seats directory: %s", err)
	}
	cfg.Dir = real
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host's name: %w", err)
	}
	w, err := newWatches()
	if err != nil {
		return nil, err
	}
	return &Driver{cfg: cfg, host: host, watches: w}, nil
}

// Name is "process".
func (d *Driver) Name() string { return Name }

// Close releases what the driver holds. Custodians and seats go on.
func (d *Driver) Close() error { return d.watches.close() }

// DescribeImage answers about template `host` or an OCI image in this host's
// files (R16-R20).
func (d *Driver) DescribeImage(ctx context.Context, im events.Image) (events.ImageDescription, error) {
	return image.Describe(ctx, im)
}

// List names the seats directory's environments (R92: evidence for a person).
func (d *Driver) List(ctx context.Context) ([]providers.Listed, error) {
	entries, err := os.ReadDir(d.cfg.Dir)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "seats directory: %s", err)
	}
	var out []providers.Listed
	for _, e := range entries {
		id, err := events.ParseEnvironmentID(e.Name())
		if err != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		j, err := d.seat(id).LoadJournal()
		if err != nil || j.Phase == seatdir.PhaseNone || j.Phase == seatdir.PhaseDestroyed {
			continue
		}
		state := events.StateUnknown
		if f, err := d.observe(ctx, d.seat(id), j, false); err == nil {
			state = f.State
		}
		out = append(out, providers.Listed{Environment: id, Ref: j.Ref, State: state})
	}
	return out, nil
}

func (d *Driver) seat(id events.EnvironmentID) seatdir.Dir { return seatdir.In(d.cfg.Dir, id) }

func (d *Driver) now() time.Time { return events.MillisUTC(d.cfg.Clock()) }

// ref is the reference that this driver binds at reserve. It names the host,
// because the seat can't be anywhere else.
func (d *Driver) ref(id events.EnvironmentID) string {
	return fmt.Sprintf("process:%s:%s", d.host, id)
}

// known loads the journal of an environment that the driver has and whose
// reference is ref; an empty ref matches before the reservation.
func (d *Driver) known(id events.EnvironmentID, ref string) (seatdir.Dir, *seatdir.Journal, error) {
	dir := d.seat(id)
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
