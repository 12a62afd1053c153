//go:build linux

package seat

import (
	"context"
	"errors"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// stop ends the seat: SIGTERM to its tree, the grace, then the kill. It is
// done when the exit is proved (R67).
func (c *Call) stop(ctx context.Context) (events.Facts, error) {
	grace := DefaultGrace
	if g := c.Op.Arguments.Grace; g != "" {
		v, err := time.ParseDuration(g)
		if err != nil || v < 0 || v > custodian.MaxGrace {
			return events.Facts{}, fault.New(fault.BadRequest, "grace %q: a duration from 0s to %s", g, custodian.MaxGrace)
		}
		grace = v
	}
	f, err := c.Facts(ctx)
	if err != nil {
		return f, err
	}
	switch f.State {
	case events.StateStopped:
		return f, nil
	case events.StateReserved, events.StateCreating: // nothing ever ran
		if err := c.Dir.WriteJSON(seatdir.FileExit, seatdir.Exit{Why: seatdir.EndStopped, At: c.d.Now()}); err != nil {
			return f, err
		}
		return c.Facts(ctx)
	}
	return c.end(ctx, grace)
}

// end asks the holder to stop its seat; whatever it answered, only the
// proof counts.
func (c *Call) end(ctx context.Context, grace time.Duration) (events.Facts, error) {
	asked := c.Ask(ctx, custodian.Request{Ask: custodian.AskStop, Grace: grace})
	f, err := c.Facts(ctx)
	if err == nil && f.State != events.StateStopped {
		err = asked
		if err == nil {
			err = fault.New(fault.Unavailable, "environment %s is still %s after the stop", c.Op.Environment, f.State)
		}
	}
	return f, err
}

// destroy removes everything but the tombstone. Done again after a crash
// anywhere, it goes on.
func (c *Call) destroy(ctx context.Context) (events.Facts, error) {
	id, err := ReadIdent(c.Dir)
	if err != nil {
		return events.Facts{}, err
	}
	if id.Custodian.PID != 0 {
		if err := c.endForGood(ctx, id); err != nil {
			return events.Facts{}, err
		}
	}
	if err := c.Dir.SweepGroups("", groupPatience); err != nil {
		return events.Facts{}, err
	}
	if err := c.Dir.Bury(); err != nil {
		return events.Facts{}, err
	}
	c.d.watches.forget(c.Op.Environment)
	c.J.Phase = seatdir.PhaseDestroyed
	for i := range c.J.Operations { // the tombstone stays small
		c.J.Operations[i].Fault = shorten(c.J.Operations[i].Fault)
	}
	return c.Facts(ctx)
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

func (c *Call) endForGood(ctx context.Context, id seatdir.Ident) error {
	h, err := identity.Open(id.Custodian)
	if err == nil {
		defer h.Close()
		if _, err := custodian.Ask(ctx, c.Dir, id.Custodian, custodian.Request{Ask: custodian.AskStop}); err != nil && ctx.Err() != nil {
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
	c.J.Phase = seatdir.PhaseStarted // observe it as it was, to prove the end
	f, err := c.Facts(ctx)
	c.J.Phase = seatdir.PhaseDestroying
	if err == nil && f.State != events.StateStopped {
		err = fault.New(fault.Unavailable, "the end of environment %s is not proved: it is %s", c.Op.Environment, f.State)
	}
	return err
}
