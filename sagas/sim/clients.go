package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/aggregates/slot"
	"berth/events"
	"berth/sagas"
)

// client asks for one thing, by way of the manager that is there.
func (s *sim) client() {
	if s.quiet || s.current == nil || s.current.dead || s.current.stalled {
		return
	}
	n := names[s.rng.IntN(len(names))]
	switch s.rng.IntN(8) {
	case 0, 1, 2:
		s.spawn(n)
	case 3:
		s.retire(n)
	case 4:
		if len(s.goals) > 0 {
			s.cancel(s.goals[len(s.goals)-1-s.rng.IntN(min(3, len(s.goals)))])
		}
	case 5:
		to := events.MillisUTC(s.current.clock().Add(s.upTo(2 * time.Hour)))
		s.plan(n, events.VerbExtend, events.Arguments{ExtendTo: &to})
	case 6:
		verbs := []events.Verb{events.VerbPause, events.VerbResume}
		s.plan(n, verbs[s.rng.IntN(2)], events.Arguments{})
	case 7:
		id := fmt.Sprintf("checkpoint-%d", s.n)
		s.plan(n, events.VerbCheckpoint, events.Arguments{CheckpointID: id})
		s.plan(n, events.VerbExport, events.Arguments{CheckpointID: id, MaxBytes: 1 << 20})
	}
}

// decide commits what f answers on the seat as the log has it.
func (s *sim) decide(n events.Alias, what string, f func(aggregates.Seat) ([]events.Event, error)) {
	seat := s.fold(events.SeatBoundary("local", n))
	es, err := f(seat)
	if err != nil || len(es) == 0 {
		return
	}
	s.say("client: %s %s", what, n)
	epoch := uint64(1)
	if s.current != nil {
		epoch = s.current.epoch
	}
	c := events.Commit{Boundary: seat.Boundary(), Expect: seat.Sequence, Meta: s.meta(epoch, s.clock()), Events: es}
	if _, err := s.log.Commit(context.Background(), c); err != nil {
		s.broke("a command on %s: %v", n, err)
	}
	s.notify(seat.Boundary())
}

func (s *sim) clock() time.Time {
	if s.current == nil {
		return s.now
	}
	return s.current.clock()
}

// spawn accepts a goal and claims the name; the process may die in between.
func (s *sim) spawn(n events.Alias) {
	if s.fold(events.SeatBoundary("local", n)).Slot.Held() {
		return
	}
	s.result.Spawns++
	now := events.MillisUTC(s.clock())
	b := events.GoalBoundary(caller, events.GoalID(fmt.Sprintf("goal-%d", s.n)))
	s.goals = append(s.goals, b)
	s.commit(b, s.current.epoch, events.GoalAccepted{Command: "spawn", Fingerprint: "f", Request: json.RawMessage("1"), Holder: self, Ready: now.Add(30 * time.Second),
		Allocated: events.Allocation{Name: n, Owner: "local", Actor: events.Actor(n), UID: events.UID(s.ids.Token()), Environment: events.EnvironmentID(s.ids.UUID())}})
	if s.chance(20) {
		s.falls("between the two commits of an acceptance", false)
		return
	}
	s.claim(b, s.goal(b))
}

func (s *sim) goal(b events.Boundary) goal.State {
	var g goal.State
	for _, r := range s.load(b) {
		for _, e := range r.Events {
			g = g.Apply(r.Meta, e)
		}
	}
	return g
}

// claim is the second commit, also of a goal that was left without it.
func (s *sim) claim(b events.Boundary, g goal.State) {
	a := g.Allocated
	deadline := events.MillisUTC(g.AcceptedAt.Add(time.Hour))
	if seat := s.fold(events.SeatBoundary(a.Owner, a.Name)); seat.Slot.Held() && seat.Slot.UID != a.UID {
		s.commit(b, s.current.epoch, g.End(events.GoalFailed, nil, nil)...)
		return
	}
	s.decide(a.Name, "claim", func(seat aggregates.Seat) ([]events.Event, error) {
		return seat.Claim(aggregates.Claim{UID: a.UID, Environment: a.Environment, Activation: events.OperationID("activate-" + string(a.UID)), Goal: b, Holder: self,
			Plan:   events.Plan{Provider: "drill", Image: events.Image{Kind: "template", Reference: "host"}, Lifetime: time.Hour, Command: []string{"true"}},
			Target: events.TargetRunning, Deadline: &deadline, Ready: g.Ready})
	})
}

func (s *sim) retire(n events.Alias) {
	s.decide(n, "retire", func(seat aggregates.Seat) ([]events.Event, error) { return seat.Retire("", "retired", 0) })
}

func (s *sim) plan(n events.Alias, v events.Verb, args events.Arguments) {
	id := events.OperationID(s.ids.UUID())
	s.decide(n, string(v), func(seat aggregates.Seat) ([]events.Event, error) {
		return seat.Plan(events.OperationPlanned{Operation: id, Verb: v, Arguments: args}, s.clock())
	})
}

func (s *sim) cancel(b events.Boundary) {
	if es, err := s.goal(b).Cancel("graceful"); err == nil && len(es) > 0 {
		s.say("client: cancel %s", b)
		s.commit(b, s.current.epoch, es...)
	}
}

// goalsOf asks the goals of a seat again.
func (m *manager) goalsOf(st *seat) {
	for _, b := range m.s.goals {
		if g := m.goals[b]; g != nil && g.state.Allocated.Name == st.fold.Alias && !over(g.state) {
			m.s.after(m.s.upTo(10*time.Millisecond), func() { m.alive(func() { m.stepGoal(b) }) })
		}
	}
}

func over(g goal.State) bool {
	return g.State.Terminal() && (g.State != events.GoalUncertain || g.Settled != nil)
}

// stepGoal records what the seat says of the goal.
func (m *manager) stepGoal(b events.Boundary) {
	g := m.s.goal(b)
	inherited := g.AcceptedBy.Epoch < m.epoch
	first := m.goals[b] == nil
	m.goals[b] = &goalSeat{state: g}
	if over(g) || g.State == goal.None {
		return
	}
	at := events.SeatBoundary(g.Allocated.Owner, g.Allocated.Name)
	seat := m.s.lifecycle(at, g.Allocated.UID)
	if first && inherited && seat.Slot.UID != g.Allocated.UID && m.s.current == m && !g.State.Terminal() {
		m.s.after(m.s.upTo(time.Second), func() {
			m.alive(func() {
				if m.s.current == m && !m.s.goal(b).State.Terminal() && m.clock().Before(g.Ready) && m.s.lifecycle(at, g.Allocated.UID).Slot.UID != g.Allocated.UID {
					m.s.claim(b, g)
				}
			})
		})
	}
	var es []events.Event
	if sagas.Unclaimed(g, seat, m.clock()) { // the claim looks at the deadline, in the same goroutine
		es = sagas.Expire(g)
	}
	if len(es) == 0 {
		es = sagas.NextGoal(g, seat, b, m.clock())
	}
	if len(es) > 0 && m.s.epoch() == m.epoch {
		m.s.commit(b, m.epoch, es...)
		return
	}
	if wait := g.Ready.Sub(m.clock()); wait > 0 && !g.State.Terminal() {
		m.s.after(wait, func() { m.alive(func() { m.stepGoal(b) }) })
	}
	if st := m.seats[at]; st != nil && !m.stalled && g.CancelMode != "" {
		m.step(st)
	}
}

// lifecycle is the seat as that lifecycle left it, or as it is if it was never
// on that name.
func (s *sim) lifecycle(b events.Boundary, uid events.UID) aggregates.Seat {
	if now := s.fold(b); now.Slot.UID == uid {
		return now
	}
	last, seat := aggregates.NewSeat(b), aggregates.NewSeat(b)
	found := false
	for _, r := range s.load(b) {
		if seat = seat.Apply(r); seat.Slot.UID == uid {
			last, found = seat, true
		}
	}
	if found {
		return last
	}
	return seat
}

// converged holds the end of a history against the laws.
func (s *sim) converged() {
	if len(s.broken) > 0 {
		return
	}
	for _, n := range names {
		seat := s.fold(events.SeatBoundary("local", n))
		if p := seat.Slot.Phase; p != slot.None && p != slot.Retired {
			s.broke("%s is %s at the end, %s", n, p, seat.Status())
		}
		if seat.Environment.Reserved() {
			s.broke("%s still holds its reservation", n)
		}
	}
	status := s.machine.Status(s.now)
	for _, e := range status.Environments {
		s.broke("the provider still holds %s (%s)", e.ID, e.Alias)
	}
	for _, e := range slices.Concat(status.Environments, status.Tombstones) {
		made := 0
		for _, o := range e.Operations {
			if o.Verb == "reserve" && o.State == "landed" {
				made++
			}
		}
		if made > 1 {
			s.broke("%s was made %d times", e.ID, made)
		}
	}
	for _, b := range s.goals {
		s.truth(b)
	}
}

// truth compares a goal's end with what the log says of its lifecycle.
func (s *sim) truth(b events.Boundary) {
	g := s.goal(b)
	if !over(g) {
		s.broke("%s is %s at the end", b, g.State)
		return
	}
	ran := false
	for _, r := range s.load(events.SeatBoundary(g.Allocated.Owner, g.Allocated.Name)) {
		for _, e := range r.Events {
			a, ok := e.(events.SlotActivated)
			ran = ran || ok && a.UID == g.Allocated.UID
		}
	}
	end := g.State
	if g.Settled != nil {
		end = g.Settled.State
	}
	if (end == events.GoalSucceeded) != ran {
		s.broke("%s ended %s, and ran=%v", b, end, ran)
	}
}

// story is the history and the log, for a person and for the digest.
func (s *sim) story() []string {
	out := slices.Clone(s.result.History)
	_ = s.log.Scan(context.Background(), 0, func(r events.Record) error {
		out = append(out, string(s.log.Body(r.Sequence)))
		return nil
	})
	return out
}
