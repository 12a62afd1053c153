package sim

import (
	"encoding/json"
	"time"

	"berth/aggregates/goal"
	"berth/events"
	"berth/sagas"
)

// Offers between the hosts (decision 11), as the product's plane deals with
// them: who receives a spawn that he can't run offers it; the others claim it,
// or say why they can't, each in his own time; anyone expires what nobody
// claimed in time, and what its claimer left unmade.
const (
	offerOneIn   = 4                // spawns
	declineOneIn = 3                // of those who look at an offer
	noticed      = 20 * time.Second // in which an offer is seen, at the latest
	weighed      = 30 * time.Second // and resources are held for it
	lateOneIn    = 2                // claimers that take their time before they claim the name
)

// offer accepts a spawn for whoever can run it.
func (m *manager) offer(e events.GoalAccepted) {
	s, b := m.s, m.s.newGoal()
	e.Fingerprint, e.Request, e.Holder = "f", json.RawMessage("{}"), m.host.id
	s.acting = m
	_, _, _ = m.shelf.DecideGoal(ctx(), b, m.meta(), func(g goal.State) ([]events.Event, error) { return g.Offer(e, "there is no room", m.clock()) })
	s.acting = nil
	if s.books.goals[b] != nil {
		s.clients.goals = append(s.clients.goals, b)
		s.say("%s offers %s of %s", m, b, e.Allocated.Name)
	}
}

// deal looks at a goal that is or was offered, and comes back to it until that
// is somebody's affair.
func (m *manager) deal(b events.Boundary) {
	g, now, self := *m.s.books.goals[b], m.clock(), m.host.id
	again := m.s.upTo(noticed)
	switch {
	case m.s.books.epochs[self] != m.epoch || g.Until.IsZero() || over(g) || g.Holder == self:
		return
	case g.State == events.GoalStateOffered && (!now.Before(g.Until) || g.DeclinedBy(self)):
		m.decideGoal(b, func(g goal.State) []events.Event { return m.s.k.Lapse(g, now) }) // nothing, while it is not over
		again += max(g.Until.Sub(now), 0)
	case g.State == events.GoalStateOffered:
		if m.s.rng.IntN(declineOneIn) > 0 {
			m.after(m.s.upTo(weighed), func() { m.take(b) })
		} else {
			m.decideGoal(b, func(g goal.State) []events.Event { return g.Decline(self, "there is no room here either") })
		}
	case g.State == events.GoalStateAccepted && now.Before(g.Ready):
		again += g.Ready.Sub(now)
	case g.State != events.GoalStateAccepted || m.s.books.lifeOf(g.Allocated.UID) != nil:
		return // its seat is there: its holder's affair
	default:
		m.expireUnmade(b, g)
	}
	m.after(again, func() { m.deal(b) })
}

func (m *manager) decideGoal(b events.Boundary, f func(goal.State) []events.Event) goal.State {
	m.s.acting = m
	defer func() { m.s.acting = nil }()
	g, _, _ := m.shelf.DecideGoal(ctx(), b, m.meta(), func(g goal.State) ([]events.Event, error) { return f(g), nil })
	return g
}

// take claims an offer and goes on with it, unless it falls in between or
// another one was first.
func (m *manager) take(b events.Boundary) {
	g := m.decideGoal(b, func(g goal.State) []events.Event { return m.s.k.Claim(g, m.host.id, m.clock()) })
	if !m.works() || g.Holder != m.host.id || over(g) {
		return
	}
	m.s.say("%s takes %s", m, b)
	m.goal(b).state, m.goal(b).resume = g, true
	switch {
	case m.s.chance(10) && m.s.fell(m, "between the claim of an offer and that of its name"):
	case m.s.chance(lateOneIn):
		m.goal(b).resume = false
		m.after(time.Minute+m.s.upTo(2*time.Minute), func() { m.goal(b).resume = true; m.continues(b, m.goal(b).state) })
	default:
		m.claim(b, g)
	}
}

// claimID is the command that claims the name of a spawn, once.
func claimID(uid events.UID) events.CommandID { return events.CommandID("claim-" + string(uid)) }

// expireUnmade ends a spawn whose claimer made nothing of it by its readiness
// deadline. The command that would make it is answered first: one that is still
// on its way, by a slower clock, loses to that.
func (m *manager) expireUnmade(b events.Boundary, g goal.State) {
	a := g.Allocated
	if !m.s.o.Sabotage.NoFence {
		_, err := m.command(a.Name, claimID(a.UID), g.Fingerprint, func(seat seatState) ([]events.Event, error) {
			if seat.Slot.UID == a.UID {
				return nil, nil
			}
			return []events.Event{events.CommandAnswered{Command: claimID(a.UID), Fingerprint: g.Fingerprint}}, nil
		})
		if err != nil || !m.works() {
			return
		}
	}
	if m.s.books.lifeOf(a.UID) == nil {
		m.decideGoal(b, func(g goal.State) []events.Event {
			if g.State.Terminal() {
				return nil
			}
			return sagas.Expire(g)
		})
	}
}

// inherit takes up the goals that a seat names which came from another host:
// whose they were may never come back.
func (m *manager) inherit(seat events.Boundary) {
	for _, b := range sagas.GoalsOf(m.s.books.seat(seat)) {
		if g := m.s.books.goals[b]; g != nil && !over(*g) && m.goals[b] == nil {
			m.goal(b).resume = true
			m.soon(func() { m.stepGoal(b) })
		}
	}
}

// handed holds what happens to an offered goal against its deadline: g is the
// goal before the event, at the time of the writer's own clock.
func (b *books) handed(at events.Boundary, g *goal.State, e events.Event, when time.Time) {
	switch e := e.(type) {
	case events.GoalOffered:
		b.s.result.Offers++
	case events.GoalDeclined:
		if g.DeclinedBy(e.Instance) {
			b.s.broke("decision 11: %.1s declines %s a second time", e.Instance, at)
		}
	case events.GoalClaimed:
		if b.s.result.HandOvers++; !when.Before(g.Until) {
			b.s.broke("decision 11: %.1s claims %s after the offer was over", e.Instance, at)
		}
	case events.GoalEnded:
		if g.State == events.GoalStateOffered && e.State == events.GoalExpired && when.Add(time.Millisecond).Before(g.Until) {
			b.s.broke("decision 11: the offer of %s is ended before it was over", at)
		}
	}
}

// offered says that the record offers its goal.
func offered(r *events.Record) bool {
	_, ok := r.Events[len(r.Events)-1].(events.GoalOffered)
	return ok
}

// took says that the record gives a seat of another host to this one.
func took(r *events.Record, id events.InstanceID) bool {
	t, ok := r.Events[0].(events.SlotTakenOver)
	return ok && t.Holder == id && r.Boundary.Kind() == events.KindSeat
}
