package plane

import (
	"context"
	"maps"
	"slices"
	"strings"

	"berth/aggregates/goal"
	"berth/aggregates/instance"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

// maxTold is how many instances' reasons one refusal tells.
const maxTold = 32

// holdHere says why this instance can't run a spawn, or holds its resources.
// What the spawn needs is judged by the facts that this instance published, and
// its size by what is free now; the provider's preflight follows as always
// (R83).
func (p *Plane) holdHere(ctx context.Context, uid events.UID, plan events.Plan, needs *commands.NeedsInput) error {
	if _, err := p.Providers.Get(plan.Provider); err != nil {
		return err
	}
	if err := p.beginnable(ctx, plan); err != nil {
		return err
	}
	least, err := needs.Free()
	if err != nil {
		return err
	}
	if needs != nil {
		var self projections.Host
		p.Views.Read(func(v *projections.Views) { self, _ = v.Host(p.Self.Instance) })
		offer, why := offerOf(self, plan.Provider)
		if why == "" {
			why = lacks(self, offer.Facts, needs)
		}
		if why != "" {
			return fault.New(fault.FailedPrecondition, "this instance can't run it: %s", why)
		}
	}
	return p.admit(ctx, uid, plan, least)
}

// offerable looks for another instance that can run a spawn which this one
// can't. It returns nil if the goal may be offered, and otherwise the refusal,
// before any effect: the local one where there is nobody else to ask, or one
// that says why of each.
func (p *Plane) offerable(here error, plan events.Plan, needs *commands.NeedsInput) error {
	var hosts []projections.Host
	p.Views.Read(func(v *projections.Views) { hosts = v.Hosts() })
	refusal, others := fault.From(here), 0
	reasons := []fault.Detail{{Kind: goal.DetailPlacement, Facts: map[string]string{"instance": string(p.Self.Instance), "reason": refusal.Message}}}
	full := refusal.Code == fault.ResourceExhausted
	for _, h := range hosts {
		if h.Instance == p.Self.Instance || h.Phase == instance.None {
			continue
		}
		why, room := unfit(h, plan, needs)
		if why == "" {
			return nil
		}
		if h.Phase == instance.Registered {
			others++
			full = full || room
		}
		if len(reasons) < maxTold {
			reasons = append(reasons, fault.Detail{Kind: goal.DetailPlacement, Facts: map[string]string{"instance": string(h.Instance), "host": h.Facts.Host, "reason": why}})
		}
	}
	if others == 0 && needs == nil {
		return here
	}
	code := fault.FailedPrecondition
	if full { // with more room somebody could
		code = fault.ResourceExhausted
	}
	told := make([]string, len(reasons))
	for i, r := range reasons {
		told[i] = r.Facts["instance"] + ": " + r.Facts["reason"]
	}
	e := fault.New(code, "no instance can run this: %s", strings.Join(told, "; ")).WithOutcome(fault.NotExecuted).WithHint("`berth hosts` shows what each instance has and what is free")
	e.Details = slices.Concat(e.Details, reasons)
	return e
}

// unfit says why an instance can't run a spawn by what it published, empty if
// it can; room says that it is only for want of it.
func unfit(h projections.Host, plan events.Plan, needs *commands.NeedsInput) (why string, room bool) {
	offer, why := offerOf(h, plan.Provider)
	if why != "" {
		return why, false
	}
	if why = lacks(h, offer.Facts, needs); why != "" {
		return why, false
	}
	least, err := needs.Free()
	if err != nil {
		return fault.From(err).Message, false
	}
	why = missing(offer.Headroom, plan.Resources, least)
	return why, why != ""
}

// offerOf is what a registered instance published of a provider, or why it
// can't be used.
func offerOf(h projections.Host, provider string) (projections.Offer, string) {
	if h.Phase != instance.Registered {
		return projections.Offer{}, "it is stopped"
	}
	for _, o := range h.Providers {
		if o.Provider == provider {
			return o, ""
		}
	}
	return projections.Offer{}, "it has no provider " + provider
}

// lacks says which need an instance does not meet, whatever is free there.
func lacks(h projections.Host, f events.HostFacts, needs *commands.NeedsInput) string {
	switch {
	case needs == nil:
		return ""
	case needs.Arch != "" && needs.Arch != f.Architecture:
		return "its architecture is " + f.Architecture + ", not " + needs.Arch
	case needs.Engine != "" && !slices.ContainsFunc(f.Engines, func(e events.Engine) bool { return e.Name == needs.Engine }):
		return "it has no engine " + needs.Engine
	case needs.KVM && !f.KVM.Usable:
		return "no usable KVM was shown there"
	case needs.GPU && h.Labels["gpu"] == "":
		return "it has no label gpu"
	}
	for _, k := range slices.Sorted(maps.Keys(needs.Labels)) {
		if h.Labels[k] != needs.Labels[k] {
			return "it has no label " + k + "=" + needs.Labels[k]
		}
	}
	return ""
}
