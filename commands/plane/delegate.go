package plane

import (
	"context"

	"berth/events"
	"berth/events/fault"
	"berth/internal/handoff"
)

// delegable refuses a delegated seat that this instance can't begin, before
// anything is made for it (H5); it says nothing of others. A provider that gives
// no answer now is asked again by the launch, before anything is reserved there.
func (p *Plane) delegable(ctx context.Context, plan events.Plan) error {
	if !plan.Delegated {
		return nil
	}
	if p.Delegation == nil {
		return handoff.Refused(fault.FailedPrecondition, "the manager has no delegation profile")
	}
	if plan.Lifetime == 0 {
		// With its manager gone, its host goes to the end alone, at the deadline:
		// the seat is ended, that is proved, and it can't be started again (H18, H19).
		return handoff.Refused(fault.FailedPrecondition, "it needs a lifetime (--ttl), at the end of which its host ends it alone when no manager does")
	}
	e, err := p.Providers.Get(plan.Provider)
	if err != nil {
		return err
	}
	if err := e.Delegable(ctx); err != nil && !fault.From(err).Retryable {
		return err
	}
	return nil
}

// launched is the plan as it is frozen: a connector's own command line, and
// around it, of a delegated seat, the bootstrap with what it must expect (H9).
func (p *Plane) launched(a events.Allocation, plan events.Plan) events.Plan {
	plan = p.connected(plan)
	if plan.Delegated && p.Delegation != nil {
		plan.Command = p.Delegation.Command(a.Owner, a.Actor, a.UID, plan.Command)
	}
	return plan
}
