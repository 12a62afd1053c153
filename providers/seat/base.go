//go:build linux

package seat

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/seatdir"
)

// Limits that hold for every kind of seat.
const (
	ExtendStep      = 24 * time.Hour // the most that one extend adds (R28)
	DefaultGrace    = 10 * time.Second
	MaxMaterial     = 64 // pieces of staged material
	MaxMaterialSize = providers.MaxTranscript
)

// Config is what the drivers of this host's seats are made with.
type Config struct {
	// Dir is the directory of the environments; it is made. It must be on a
	// local filesystem that keeps locks and modes, and belong to one manager.
	Dir string
	// Self is the program to re-execute as holder, whose main knows the role;
	// empty: the running one. SelfEnv is added to the environment of holders.
	Self    string
	SelfEnv []string
	// Clock is the wall clock; nil: the system's.
	Clock func() time.Time
}

// Kind is what one driver adds to Base. All fields are needed.
type Kind struct {
	Name   string   // under which the driver registers; references begin with it
	Holder string   // what a person calls the process that holds a seat
	Role   string   // the program's first argument that makes it the holder
	Env    []string // the holder's environment, before Config.SelfEnv
	Mode   os.FileMode
	// Captures are the states in which a checkpoint can be made.
	Captures                 []events.ProviderState
	MaxCheckpoints, MaxFiles int    // of one environment
	CaptureExt, ExportExt    string // endings of captured and exported files
	// Network is what a plan resolves to; the plan was accepted at the
	// preflight, and never changes (R22-R24).
	Network func(events.Plan) string
	// Sees is the network that a running seat really has; empty: it can't be
	// told (R25).
	Sees func(seatdir.Ident) string
	// Provision makes what a seat is started from. Done again after a crash, it
	// begins from the start. What it learns it writes into the call's journal.
	Provision func(context.Context, *Call) error
	// Start returns what the holder reads from seatdir.FileStart.
	Start func(context.Context, *Call) (any, error)
	// Checkpoint makes checkpoint id, durably, and last its seatdir.Kept.
	Checkpoint func(ctx context.Context, c *Call, id string) (events.Facts, error)
	// Restore returns what the holder reads from seatdir.FileStart to begin from
	// a checkpoint, with its verified file, in the place of the seat as it is,
	// which it does not touch. Settle ends what a restore that is not under way
	// left behind; done again, it does nothing.
	Restore func(ctx context.Context, c *Call, from events.Checkpoint, file io.Reader) (any, error)
	Settle  func(*Call) error
}

// Base implements a driver but for what its host offers: HostFacts,
// DescribeImage and Preflight. It holds no state of environments: that is in
// their directories and in the processes themselves.
type Base struct {
	Config
	Host    string // this host's name
	kind    Kind
	watches *watches
	asking  *asking
}

// New makes the base over a directory. It starts nothing and looks at no
// environment; what runs is taken up by Adopt.
func New(cfg Config, kind Kind) (*Base, error) {
	if cfg.Dir == "" || !filepath.IsAbs(cfg.Dir) {
		return nil, fault.New(fault.BadRequest, "directory %q of the %s provider: an absolute path", cfg.Dir, kind.Name)
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
	err := os.MkdirAll(cfg.Dir, kind.Mode)
	if err == nil {
		cfg.Dir, err = filepath.EvalSymlinks(cfg.Dir)
	}
	if err != nil {
		return nil, fault.New(fault.FailedPrecondition, "directory of the %s provider: %s", kind.Name, err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host's name: %w", err)
	}
	w, err := newWatches()
	if err != nil {
		return nil, err
	}
	return &Base{Config: cfg, Host: host, kind: kind, watches: w, asking: newAsking()}, nil
}

// Name is the name under which the driver registers.
func (d *Base) Name() string { return d.kind.Name }

// Close releases what the driver holds. Holders and seats go on.
func (d *Base) Close() error {
	d.asking.stop()
	return d.watches.close()
}

// List names the environments of the directory (R92: evidence for a person).
func (d *Base) List(ctx context.Context) ([]providers.Listed, error) {
	var out []providers.Listed
	err := d.Each(ctx, func(dir seatdir.Dir, j *seatdir.Journal) {
		state := events.StateUnknown
		if f, err := d.observe(ctx, dir, j, false, status); err == nil {
			state = f.State
		}
		out = append(out, providers.Listed{Environment: dir.ID, Ref: j.Ref, State: state})
	})
	return out, err
}

// Each visits every environment that has a life, until ctx ends.
func (d *Base) Each(ctx context.Context, visit func(seatdir.Dir, *seatdir.Journal)) error {
	entries, err := os.ReadDir(d.Dir)
	if err != nil {
		return fault.New(fault.Unavailable, "directory of the %s provider: %s", d.kind.Name, err)
	}
	for _, e := range entries {
		id, err := events.ParseEnvironmentID(e.Name())
		if err != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		j, err := d.Seat(id).LoadJournal()
		if err != nil || j.Phase == seatdir.PhaseNone || j.Phase == seatdir.PhaseDestroyed {
			continue
		}
		visit(d.Seat(id), j)
	}
	return nil
}

// Seat is the directory of an environment.
func (d *Base) Seat(id events.EnvironmentID) seatdir.Dir { return seatdir.In(d.Dir, id) }

// Now is the wall clock, as records have it.
func (d *Base) Now() time.Time { return events.MillisUTC(d.Clock()) }

// Ref is the reference that is bound at reserve. It names the host, because
// the seat can't be anywhere else.
func (d *Base) Ref(id events.EnvironmentID) string {
	return fmt.Sprintf("%s:%s:%s", d.kind.Name, d.Host, id)
}

// known loads the journal of an environment that the driver has and whose
// reference is ref; an empty ref matches before the reservation.
func (d *Base) known(id events.EnvironmentID, ref string) (seatdir.Dir, *seatdir.Journal, error) {
	dir := d.Seat(id)
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
