//go:build linux

package qemu

import (
	"context"
	"errors"
	"os"
	"regexp"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
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

// provision packs what is booted, keeps the material for the start, and takes
// the checkpoint that the plan begins from. Done again after a crash, it
// begins from the start.
func (c *call) provision(ctx context.Context) (events.Facts, error) {
	p := c.op.Plan
	ch, err := choices(p)
	if err != nil {
		return events.Facts{}, err
	}
	if _, err := c.d.DescribeImage(ctx, p.Image); err != nil {
		return events.Facts{}, err
	}
	if _, err := c.d.packed(ctx); err != nil {
		return events.Facts{}, err
	}
	if err := c.stageMaterial(); err != nil {
		return events.Facts{}, err
	}
	if ch.from != nil {
		if err := c.takeCheckpoint(*ch.from, ch); err != nil {
			return events.Facts{}, err
		}
	}
	c.j.Plan, c.j.Phase = p, seatdir.PhaseProvisioned
	return c.facts(ctx)
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

// stageMaterial keeps secrets until the supervisor gives them to the guest
// (R54-R56). They are in no journal, environment or argument list.
func (c *call) stageMaterial() error {
	if len(c.op.Material) == 0 {
		return nil
	}
	if err := os.Mkdir(c.dir.File(seatdir.DirMaterial), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	for name, b := range c.op.Material {
		if err := os.WriteFile(c.dir.File(seatdir.DirMaterial, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) ask(ctx context.Context, r custodian.Request) error {
	id, err := readIdent(c.dir)
	if err != nil {
		return err
	}
	_, err = custodian.Ask(ctx, c.dir, id.Custodian, r)
	return err
}

// pause stops the machine's processors; its memory stays as it is.
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
// result is the deadline that the supervisor will read (R28, R30). What has
// no deadline keeps none (R31).
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
		// A hint only: the supervisor reads the file again before it acts.
		if c.j.Phase == seatdir.PhaseStarted {
			hint, cancel := context.WithTimeout(ctx, askPatience)
			_ = c.ask(hint, custodian.Request{Ask: custodian.AskDeadline})
			cancel()
		}
	}
	return c.facts(ctx)
}

// stop ends the machine: SIGTERM to the seat's processes, the grace, then the
// end of QEMU. It is done when the exit is proved (R67).
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
	// Whatever the supervisor answers, only the proof counts.
	asked := c.ask(ctx, custodian.Request{Ask: custodian.AskStop, Grace: grace})
	f, err = c.facts(ctx)
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
	id, err := readIdent(c.dir)
	if err != nil {
		return events.Facts{}, err
	}
	if id.Custodian.PID != 0 {
		if err := c.endForGood(ctx, id); err != nil {
			return events.Facts{}, err
		}
	}
	if err := c.dir.Bury(); err != nil {
		return events.Facts{}, err
	}
	c.j.Phase = seatdir.PhaseDestroyed
	for i := range c.j.Operations { // the tombstone stays small
		if f := c.j.Operations[i].Fault; f != nil {
			c.j.Operations[i].Fault = &fault.Error{Code: f.Code, Message: f.Message, Outcome: f.Outcome}
		}
	}
	return c.facts(ctx)
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
