package goal

import (
	"slices"
	"time"

	"berth/events"
	"berth/events/fault"
)

// Bounds of an offer (decision 11).
const (
	// OfferFor is how long a goal stays offered, or until its readiness
	// deadline if that is earlier.
	OfferFor = 30 * time.Second
	// MaxDeclines is how many instances' reasons a goal keeps.
	MaxDeclines = 64
)

// DetailPlacement is the kind of the details that say, for each instance, why
// it can't run a goal: instance and reason.
const DetailPlacement = "berth.placement"

// Decline is why one instance can't run a goal.
type Decline struct {
	Instance events.InstanceID `json:"instance"`
	Reason   string            `json:"reason"`
}

// Offer accepts a goal that the accepting instance can't run; repeats decide
// like those of Accept.
func (s State) Offer(e events.GoalAccepted, reason string, now time.Time) ([]events.Event, error) {
	es, err := s.Accept(e)
	if err != nil || len(es) == 0 {
		return nil, err
	}
	until := now.Add(OfferFor)
	if e.Ready.Before(until) {
		until = e.Ready
	}
	return append(es, events.GoalOffered{By: e.Holder, Reason: reason, Until: until}), nil
}

// Claim takes an offered goal for an instance; nothing if it is not offered any
// more, which the caller sees by the holder.
func (s State) Claim(by events.InstanceID, now time.Time) []events.Event {
	if s.State != events.GoalStateOffered || !now.Before(s.Until) {
		return nil
	}
	return []events.Event{events.GoalClaimed{Instance: by}}
}

// DeclinedBy says that the instance has said why it can't run the goal.
func (s State) DeclinedBy(id events.InstanceID) bool {
	return slices.ContainsFunc(s.Declined, func(d Decline) bool { return d.Instance == id })
}

// Decline tells why an instance can't run an offered goal, once.
func (s State) Decline(by events.InstanceID, reason string) []events.Event {
	if s.State != events.GoalStateOffered || s.DeclinedBy(by) || len(s.Declined) >= MaxDeclines {
		return nil
	}
	return []events.Event{events.GoalDeclined{Instance: by, Reason: reason}}
}

// Lapse expires an offer that nobody claimed by its deadline. Anyone may: no
// instance holds the goal, so nothing of it can come any more.
func (s State) Lapse(now time.Time) []events.Event {
	if s.State != events.GoalStateOffered || now.Before(s.Until) {
		return nil
	}
	why := fault.New(fault.Expired, "no instance claimed the spawn of %s while it was offered", s.Allocated.Name).WithOutcome(fault.NotExecuted)
	for _, d := range s.Declined {
		why = why.WithDetail(DetailPlacement, "instance", string(d.Instance), "reason", d.Reason)
	}
	return s.End(events.GoalExpired, why.WithHint("nothing was made: `berth hosts` shows what there is; spawn it again"), nil)
}
