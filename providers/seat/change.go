//go:build linux

package seat

import (
	"context"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/custodian"
)

// change is a verb that one question to the holder carries out, if it finds the
// seat in the other state.
type change struct {
	ask custodian.Request
	to  events.ProviderState // that the seat then has
}

var changes = map[events.Verb]change{
	events.VerbPause:  {custodian.Request{Ask: custodian.AskFreeze, Change: true}, events.StatePaused},
	events.VerbResume: {custodian.Request{Ask: custodian.AskThaw, Change: true}, events.StateRunning},
}

// change pauses, or ends a pause, and keeps the facts for the effect. A question
// about the state before would be answered by the same holder, under the same
// lock, and take as long.
func (c *Call) change(ctx context.Context, t change) error {
	f, err := c.d.observe(ctx, c.Dir, c.J, true, t.ask)
	switch {
	case err == nil && f.State == t.to:
		c.was = f
		return nil
	case err == nil:
		return c.refuseState(f)
	case fault.From(err).Outcome != fault.NotExecuted:
		return err
	}
	// The holder refused: the facts say over what.
	if f, ferr := c.d.observe(ctx, c.Dir, c.J, true, status); ferr == nil {
		if why := c.refuseState(f); why != nil {
			return why
		}
	}
	return err
}

// changed are the facts after a change, which the holder's answer told.
func (c *Call) changed(context.Context) (events.Facts, error) { return c.was, nil }
