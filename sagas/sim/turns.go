package sim

import (
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/events"
	"berth/events/fault"
)

// Every eighth history has turns: seats are asked and answer, at any manager,
// while everything else goes on. The others stay as they are, so that a seed
// that once failed says the same.
const (
	turnsOf = 8
	turnsAt = 5 // the remainder of a seed with turns
)

// longestTurn is the longest that a seat has: some lapse while much goes wrong.
const longestTurn = 20 * time.Minute

// takeTurn has a client ask a seat to take a turn, or a seat give one back.
func (s *sim) takeTurn(m *manager, n events.Alias) {
	seat := s.books.seat(events.SeatBoundary("local", n))
	if len(seat.Turns.Pending) == 0 || s.rng.IntN(3) == 0 {
		m.askTurn(n, seat)
		return
	}
	// Any that waits is tried, also by a seat whose life is over.
	t := seat.Turns.Pending[s.rng.IntN(len(seat.Turns.Pending))]
	_, id, _ := t.Goal.Goal()
	r, err := m.command(n, "", "f", func(now seatState) ([]events.Event, error) {
		return now.Yield(seat.Turns.UID, id, events.TurnYielded{Status: events.TurnDone}, "f", m.clock())
	})
	if err == nil && r.Sequence != 0 {
		s.say("seat: %s gives a turn back by %s", n, m)
	}
}

func (m *manager) askTurn(n events.Alias, seat seatState) {
	if !seat.Slot.Held() {
		return
	}
	b, g, ok := m.begins(events.GoalAccepted{Command: goal.CommandTurn, Ready: events.MillisUTC(m.clock().Add(m.s.upTo(longestTurn))),
		Allocated: events.Allocation{Name: n, Owner: "local", Actor: events.Actor(n), UID: seat.Slot.UID, Environment: seat.Environment.ID, Operation: m.fresh()}})
	if ok {
		m.relay(b, g)
	}
}

// relay is the second commit of a turn, also of one that was left without it.
// One that was refused ends its goal, unless it was relayed before and is over.
func (m *manager) relay(b events.Boundary, g goal.State) {
	a := g.Allocated
	_, err := m.command(a.Name, "", "", func(seat seatState) ([]events.Event, error) {
		if m.s.books.relayed[a.Operation] {
			return nil, nil
		}
		return seat.Relay(events.TurnRelayed{UID: a.UID, Turn: a.Operation, Goal: string(b), Deadline: g.Ready}, m.clock())
	})
	if err == nil || !m.works() {
		return
	}
	switch fault.CodeOf(err) {
	case fault.FailedPrecondition, fault.NotFound, fault.Expired, fault.DeadlineExceeded:
	default:
		return // the holder's goal is asked again until it is relayed or too late
	}
	m.s.acting = m
	_, _, _ = m.shelf.DecideGoal(ctx(), b, m.meta(), func(g goal.State) ([]events.Event, error) {
		if m.s.books.relayed[a.Operation] {
			return nil, nil
		}
		return g.End(events.GoalFailed, fault.From(err), nil), nil
	})
	m.s.acting = nil
}

// turned keeps what an event says of a turn, and holds it against 2.6.
func (b *books) turned(before aggregates.Seat, m events.Meta, e events.Event) {
	switch e := e.(type) {
	case events.TurnRelayed:
		if b.relayed[e.Turn] {
			b.s.broke("2.6: turn %s is relayed a second time", e.Turn)
		}
		b.relayed[e.Turn] = true
	case events.TurnYielded:
		if t, _ := before.Turns.Find(e.Turn); !m.Time.Before(t.Deadline) || !before.Turns.Shown(e.Turn) {
			b.s.broke("2.6: turn %s is given back after its deadline, or before it was shown", e.Turn)
		}
		b.yielded[e.Turn] = true
	}
}

// turnTruth compares the end of a turn's goal with what the log says of it.
func (s *sim) turnTruth(b events.Boundary) {
	g := *s.books.goals[b]
	switch id := g.Allocated.Operation; {
	case !g.State.Terminal():
		s.broke("%s is %s at the end", b, g.State)
	case (g.State == events.GoalSucceeded) != s.books.yielded[id] && g.State != events.GoalUncertain:
		s.broke("2.6: %s ended %s, and its turn was given back: %v", b, g.State, s.books.yielded[id])
	}
}

// turnsOver says that no turn waits at a name that was freed by proof.
func (b *books) turnsOver(at events.Boundary, s seatState) {
	if !s.Environment.WrittenOff && len(s.Turns.Pending) > 0 {
		b.s.broke("2.6: %d turns wait at %s at the end", len(s.Turns.Pending), at)
	}
}

func isTurns(seed uint64) bool { return seed%turnsOf == turnsAt }
