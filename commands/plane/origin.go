package plane

import (
	"slices"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
	"berth/providers"
)

// mayBegin refuses a plan that begins from a checkpoint which is not the
// owner's: what another owner keeps is as if it was not there. Whether the file
// is whole is for the driver to say, before anything is reserved.
func (p *Plane) mayBegin(owner events.Owner, plan events.Plan) error {
	o, err := providers.OriginOf(plan)
	if o == nil || err != nil {
		return err
	}
	var from *aggregates.Seat
	p.Views.Read(func(v *projections.Views) {
		v.EachSeat(func(s aggregates.Seat) bool {
			if s.Owner == owner && s.Environment.ID == o.Environment {
				from = &s
			}
			return from == nil
		})
	})
	kept := func(c events.Checkpoint) bool { return c.ID == o.Checkpoint }
	switch {
	case from == nil || !slices.ContainsFunc(from.Environment.Checkpoints, kept):
		return fault.New(fault.NotFound, "there is no checkpoint %s of an environment %s to begin from", o.Checkpoint, o.Environment).
			WithHint("`berth inspect` lists the checkpoints of a name; they end with its environment")
	case from.Environment.Plan.Provider != plan.Provider:
		return fault.New(fault.FailedPrecondition, "checkpoint %s is of provider %s, and can't be begun from with %s", o.Checkpoint, from.Environment.Plan.Provider, plan.Provider)
	}
	return nil
}
