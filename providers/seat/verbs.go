//go:build linux

package seat

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// Facts observes the environment.
func (c *Call) Facts(ctx context.Context) (events.Facts, error) {
	return c.d.observe(ctx, c.Dir, c.J, true, status)
}

// reserve binds the reference (R92). The journal's one write is the effect.
func (c *Call) reserve(ctx context.Context) (events.Facts, error) {
	if c.Op.Expires != nil && !c.d.Now().Before(*c.Op.Expires) {
		return events.Facts{}, fault.New(fault.FailedPrecondition, "environment %s would be over before it begins", c.Op.Environment)
	}
	c.J.Alias, c.J.Ref, c.J.Plan, c.J.Phase = c.Op.Alias, c.d.Ref(c.Op.Environment), c.Op.Plan, seatdir.PhaseReserved
	c.J.Network = c.d.kind.Network(c.Op.Plan)
	if c.Op.Expires != nil {
		at := events.MillisUTC(*c.Op.Expires)
		c.J.Expires = &at
	}
	return c.Facts(ctx)
}

// provision makes what the seat is started from. Done again after a crash, it
// begins from the start.
func (c *Call) provision(ctx context.Context) (events.Facts, error) {
	if was, now := c.d.networkOf(c.J), c.d.kind.Network(c.Op.Plan); was != now {
		return events.Facts{}, fault.New(fault.FailedPrecondition,
			"environment %s was reserved with network %q, and a network is never changed in place; another one, %q, needs a new environment (R24)", c.Op.Environment, was, now)
	}
	if err := c.d.kind.Provision(ctx, c); err != nil {
		return events.Facts{}, err
	}
	if err := c.stageMaterial(); err != nil {
		return events.Facts{}, err
	}
	c.J.Plan, c.J.Phase = c.Op.Plan, seatdir.PhaseProvisioned
	return c.Facts(ctx)
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
func (c *Call) stageMaterial() error {
	files := c.pieces()
	if len(files) == 0 {
		return nil
	}
	if err := c.MakeDir(seatdir.DirMaterial, 0o700); err != nil {
		return err
	}
	for name, b := range files {
		p := c.Dir.File(seatdir.DirMaterial, name)
		if err := os.WriteFile(p, b, 0o600); err != nil {
			return err
		}
		if c.J.IDBase != 0 {
			if err := os.Lchown(p, c.J.IDBase, c.J.IDBase); err != nil {
				return err
			}
		}
	}
	return nil
}

// pieces is the material, and beside it what the plan's connector is given.
func (c *Call) pieces() map[string][]byte {
	files := maps.Clone(map[string][]byte(c.Op.Material))
	if k := c.Op.Plan.Connector; k != nil {
		if files == nil {
			files = map[string][]byte{}
		}
		for name, text := range map[string]string{events.FilePrompt: k.Prompt, events.FilePersona: k.Persona} {
			if text != "" {
				files[name] = []byte(text)
			}
		}
	}
	return files
}

// MakeDir makes a directory of the environment, unless it is there, and gives
// it to the root of the seat.
func (c *Call) MakeDir(name string, mode os.FileMode) error {
	p := c.Dir.File(name)
	if err := os.Mkdir(p, mode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if c.J.IDBase == 0 || name == seatdir.DirRoot {
		return nil
	}
	return os.Lchown(p, c.J.IDBase, c.J.IDBase)
}

// Ask asks the holder of the environment.
func (c *Call) Ask(ctx context.Context, r custodian.Request) error {
	id, err := ReadIdent(c.Dir)
	if err == nil {
		_, err = custodian.Ask(ctx, c.Dir, id.Custodian, r)
	}
	return err
}

// extend raises the deadline by at most the step and never lowers it; the
// result is the deadline that the holder will read (R28, R30). What has no
// deadline keeps none (R31).
func (c *Call) extend(ctx context.Context) (events.Facts, error) {
	to := c.Op.Arguments.ExtendTo
	if to == nil {
		return events.Facts{}, fault.New(fault.BadRequest, "extend of environment %s without a deadline", c.Op.Environment)
	}
	dl, err := c.d.deadline(c.Dir, c.J)
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
		now := c.d.Clock() // before the boot-time clock: never early
		next := dl.Move(at, boot, identity.Boottime(), now)
		next.Operation = c.Op.ID
		if err := c.Dir.WriteJSON(seatdir.FileDeadline, next); err != nil {
			return events.Facts{}, err
		}
		// A hint only: the holder reads the file again before it acts.
		if c.J.Phase == seatdir.PhaseStarted {
			hint, cancel := context.WithTimeout(ctx, askPatience)
			_ = c.Ask(hint, custodian.Request{Ask: custodian.AskDeadline})
			cancel()
		}
	}
	return c.Facts(ctx)
}
