package sim

import (
	"time"

	"berth/aggregates/goal"
	"berth/events"
	"berth/sagas"
)

// goalEntry is a goal that this manager follows.
type goalEntry struct {
	at     events.Boundary
	state  goal.State
	resume bool // from before this process, or left in the middle of its acceptance
	wake   int
	tries  int

	decided uint64 // the last sequence that its own decision made
}

func over(g goal.State) bool {
	return g.State.Terminal() && (g.State != events.GoalUncertain || g.Settled != nil)
}

func (m *manager) goal(b events.Boundary) *goalEntry {
	g := m.goals[b]
	if g == nil {
		g = &goalEntry{at: b}
		m.goals[b] = g
		a := m.s.books.goals[b].Allocated
		at := events.SeatBoundary(a.Owner, a.Name)
		m.about[at] = append(m.about[at], g)
	}
	return g
}

// stepGoal records what the seat says of the goal.
func (m *manager) stepGoal(b events.Boundary) {
	if !m.works() {
		return
	}
	e := m.goal(b)
	if over(e.state) {
		return
	}
	var seat seatState
	m.s.acting = m
	now, r, err := m.shelf.DecideGoal(ctx(), b, m.meta(), func(g goal.State) ([]events.Event, error) {
		seat = m.s.books.meant(g)
		if !sagas.Answers(m.host.id, g, seat) || m.s.books.epochs[m.host.id] != m.epoch {
			return nil, nil
		}
		if sagas.Unclaimed(g, seat, m.clock()) { // the claim looks at the deadline, in the same goroutine
			if es := sagas.Expire(g); len(es) > 0 {
				return es, nil
			}
		}
		return m.s.k.NextGoal(g, seat, b, m.clock()), nil
	})
	m.s.acting = nil
	if !m.works() {
		return
	}
	if err != nil {
		m.after(m.s.upTo(10*time.Second), func() { m.stepGoal(b) })
		return
	}
	was := e.state
	e.state = now
	e.decided = max(e.decided, r.Sequence)
	if now.CancelMode != "" && was.CancelMode == "" {
		if st := m.seats[events.SeatBoundary(now.Allocated.Owner, now.Allocated.Name)]; st != nil {
			m.soon(func() { m.step(st) })
		}
	}
	if r.Sequence == 0 {
		m.waits(b, e, seat)
	}
}

// waits sets when the goal is asked again though nothing happened.
func (m *manager) waits(b events.Boundary, e *goalEntry, seat seatState) {
	g := e.state
	if over(g) || g.State.Terminal() {
		return
	}
	at := g.Ready
	if e.resume && !bound(g, seat) {
		m.continues(b, g)
		e.tries++
		at = m.clock().Add(sagas.Backoff(e.tries, m.s.rng.Float64()))
	}
	if wait := at.Sub(m.clock()); wait > 0 {
		e.wake++
		n := e.wake
		m.after(wait, func() {
			if e.wake == n {
				m.stepGoal(b)
			}
		})
	}
}

func bound(g goal.State, s seatState) bool {
	if g.Allocated.Operation == "" {
		return s.Slot.UID == g.Allocated.UID
	}
	if g.Command == goal.CommandTurn {
		_, ok := s.Turns.Find(g.Allocated.Operation)
		return ok
	}
	_, ok := s.Environment.Find(g.Allocated.Operation)
	return ok
}

// continues is the second commit of an acceptance that fell in between.
func (m *manager) continues(b events.Boundary, g goal.State) {
	if m.host.current != m || g.State.Terminal() {
		return
	}
	switch g.Command {
	case "spawn":
		m.claim(b, g)
	case goal.CommandTurn:
		m.relay(b, g)
	default:
		m.planned(b, g)
	}
}
