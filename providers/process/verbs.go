//go:build linux

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/cgroup"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/image"
	"berth/providers/process/seatdir"
	"berth/providers/process/stage"
)

func (c *call) facts(ctx context.Context) (events.Facts, error) {
	return c.d.observe(ctx, c.dir, c.j, true)
}

// reserve binds the reference (R92). The journal's one write is the effect.
func (c *call) reserve(ctx context.Context) (events.Facts, error) {
	if c.op.Expires != nil && !c.d.now().Before(*c.op.Expires) {
		return events.Facts{}, fault.New(fault.FailedPrecondition, "environment %s would be over before it begins", c.op.Environment)
	}
	c.j.Alias, c.j.Ref, c.j.Plan, c.j.Phase = c.op.Alias, c.d.ref(c.op.Environment), c.op.Plan, seatdir.PhaseReserved
	if c.op.Expires != nil {
		at := events.MillisUTC(*c.op.Expires)
		c.j.Expires = &at
	}
	return c.facts(ctx)
}

// provision makes the root filesystem's parts and the private home. Done
// again after a crash, it begins from the start.
func (c *call) provision(ctx context.Context) (events.Facts, error) {
	p := c.op.Plan
	ch, err := choices(p)
	if err != nil {
		return events.Facts{}, err
	}
	if ch.isolated && os.Geteuid() == 0 {
		c.j.IDBase = stage.IDBase
	}
	if p.Image.Kind == "oci" {
		img, err := image.Open(ctx, p.Image.Reference)
		if err != nil {
			return events.Facts{}, err
		}
		if _, err := img.Unpack(ctx, filepath.Join(c.d.cfg.Dir, imagesDir), c.j.IDBase, stage.IDCount, stage.MountPoints); err != nil {
			return events.Facts{}, err
		}
		c.j.Digest, c.j.Path = img.Digest, img.Path
	}
	for name, mode := range map[string]os.FileMode{seatdir.DirHome: 0o700, seatdir.DirMaterial: 0o700, seatdir.DirRoot: 0o755} {
		if err := c.makeDir(name, mode); err != nil {
			return events.Facts{}, err
		}
	}
	if err := c.stageMaterial(); err != nil {
		return events.Facts{}, err
	}
	c.j.Plan, c.j.Phase = p, seatdir.PhaseProvisioned
	return c.facts(ctx)
}

func (c *call) makeDir(name string, mode os.FileMode) error {
	p := c.dir.File(name)
	if err := os.Mkdir(p, mode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if c.j.IDBase == 0 || name == seatdir.DirRoot {
		return nil
	}
	return os.Lchown(p, c.j.IDBase, c.j.IDBase)
}

var materialRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func checkMaterial(m providers.Material) error {
	if len(m) > MaxMaterial {
		return fault.New(fault.BadRequest, "%d pieces of material: at most %d", len(m), MaxMaterial)
	}
	for name, b := range m {
		if !materialRE.MatchString(name) || len(b) > MaxMaterialSize {
			return fault.New(fault.BadRequest, "a piece of material has a name that is no file name, or more than %d bytes", MaxMaterialSize)
		}
	}
	return nil
}

// stageMaterial puts secrets where only the seat reads them, before it starts
// (R54-R56). They are in no journal, environment or argument list.
func (c *call) stageMaterial() error {
	for name, b := range c.op.Material {
		p := c.dir.File(seatdir.DirMaterial, name)
		if err := os.WriteFile(p, b, 0o600); err != nil {
			return err
		}
		if c.j.IDBase != 0 {
			if err := os.Lchown(p, c.j.IDBase, c.j.IDBase); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *call) ask(ctx context.Context, r custodian.Request) error {
	var id seatdir.Ident
	if err := c.dir.ReadJSON(seatdir.FileIdent, &id); err != nil {
		return err
	}
	_, err := custodian.Ask(ctx, c.dir, id.Custodian, r)
	return err
}

func (c *call) pause(ctx context.Context) (events.Facts, error) {
	if err := c.ask(ctx, custodian.Request{Ask: custodian.AskFreeze}); err != nil {
		return events.Facts{}, err
	}
	return c.facts(ctx)
}

func (c *call) resume(ctx context.Context) (events.Facts, error) {
	if err := c.ask(ctx, custodian.Request{Ask: custodian.AskThaw}); err != nil {
		return events.Facts{}, err
	}
	return c.facts(ctx)
}

// extend raises the deadline by at most the step and never lowers it; the
// result is the deadline that the custodian will read (R28, R30). What has no
// deadline keeps none (R31).
func (c *call) extend(ctx context.Context) (events.Facts, error) {
	to := c.op.Arguments.ExtendTo
	if to == nil {
		return events.Facts{}, fault.New(fault.BadRequest, "extend of environment %s without a deadline", c.op.Environment)
	}
	dl, err := c.d.deadline(c.dir, c.j)
	if err != nil {
		return events.Facts{}, err
	}
	if dl.At != nil && to.After(*dl.At) {
		boot, err := identity.BootID()
		if err != nil {
			return events.Facts{}, err
		}
		at := *to
		if most := dl.At.Add(ExtendStep); at.After(most) {
			at = most
		}
		now := c.d.cfg.Clock() // before the boot-time clock: never early
		next := dl.Move(at, boot, identity.Boottime(), now)
		next.Operation = c.op.ID
		if err := c.dir.WriteJSON(seatdir.FileDeadline, next); err != nil {
			return events.Facts{}, err
		}
		// A hint only: the custodian reads the file again before it acts.
		if c.j.Phase == seatdir.PhaseStarted {
			hint, cancel := context.WithTimeout(ctx, askPatience)
			_ = c.ask(hint, custodian.Request{Ask: custodian.AskDeadline})
			cancel()
		}
	}
	return c.facts(ctx)
}

// stop ends the seat: SIGTERM to its tree, the grace, then the kill. It is
// done when the exit is proved (R67).
func (c *call) stop(ctx context.Context) (events.Facts, error) {
	grace := DefaultGrace
	if g := c.op.Arguments.Grace; g != "" {
		v, err := time.ParseDuration(g)
		if err != nil || v < 0 || v > custodian.MaxGrace {
			return events.Facts{}, fault.New(fault.BadRequest, "grace %q: a duration from 0s to %s", g, custodian.MaxGrace)
		}
		grace = v
	}
	f, err := c.facts(ctx)
	if err != nil {
		return f, err
	}
	switch f.State {
	case events.StateStopped:
		return f, nil
	case events.StateReserved, events.StateCreating: // nothing ever ran
		if err := c.dir.WriteJSON(seatdir.FileExit, seatdir.Exit{Why: seatdir.EndStopped, At: c.d.now()}); err != nil {
			return f, err
		}
		return c.facts(ctx)
	}
	return c.end(ctx, grace)
}

// end asks the custodian to stop its seat; whatever it answered, only the
// proof counts.
func (c *call) end(ctx context.Context, grace time.Duration) (events.Facts, error) {
	asked := c.ask(ctx, custodian.Request{Ask: custodian.AskStop, Grace: grace})
	f, err := c.facts(ctx)
	if err == nil && f.State != events.StateStopped {
		err = asked
		if err == nil {
			err = fault.New(fault.Unavailable, "environment %s is still %s after the stop", c.op.Environment, f.State)
		}
	}
	return f, err
}

// destroy removes everything but the tombstone. Done again after a crash
// anywhere, it goes on.
func (c *call) destroy(ctx context.Context) (events.Facts, error) {
	var id seatdir.Ident
	err := c.dir.ReadJSON(seatdir.FileIdent, &id)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return events.Facts{}, err
	}
	if err == nil {
		if err := c.endForGood(ctx, id); err != nil {
			return events.Facts{}, err
		}
	}
	if err := c.leftGroup().Remove(groupPatience); err != nil {
		return events.Facts{}, err
	}
	if err := c.dir.Bury(); err != nil {
		return events.Facts{}, err
	}
	c.d.watches.forget(c.op.Environment)
	c.j.Phase = seatdir.PhaseDestroyed
	for i := range c.j.Operations { // the tombstone stays small
		c.j.Operations[i].Fault = shorten(c.j.Operations[i].Fault)
	}
	return c.facts(ctx)
}

func shorten(f *fault.Error) *fault.Error {
	if f == nil {
		return nil
	}
	return &fault.Error{Code: f.Code, Message: f.Message, Outcome: f.Outcome}
}

// groupPatience bounds how long the last processes may take to leave a
// control group.
const groupPatience = 10 * time.Second

func (c *call) leftGroup() cgroup.Group {
	var s seatdir.Start
	if c.dir.ReadJSON(seatdir.FileStart, &s) != nil {
		return cgroup.Group{}
	}
	return s.Group
}

func (c *call) endForGood(ctx context.Context, id seatdir.Ident) error {
	h, err := identity.Open(id.Custodian)
	if err == nil {
		defer h.Close()
		if _, err := custodian.Ask(ctx, c.dir, id.Custodian, custodian.Request{Ask: custodian.AskStop}); err != nil && ctx.Err() != nil {
			return err
		}
		for !h.WaitExit(20 * time.Millisecond) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	} else if !errors.Is(err, identity.ErrGone) {
		return err
	}
	c.j.Phase = seatdir.PhaseStarted // observe it as it was, to prove the end
	f, err := c.facts(ctx)
	c.j.Phase = seatdir.PhaseDestroying
	if err == nil && f.State != events.StateStopped {
		err = fault.New(fault.Unavailable, "the end of environment %s is not proved: it is %s", c.op.Environment, f.State)
	}
	return err
}
