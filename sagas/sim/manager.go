package sim

import (
	"fmt"
	"slices"
	"time"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
	"berth/sagas"
)

type seatState = aggregates.Seat

// manager is one epoch of one host: what the engine's shell remembers, without
// goroutines. Its folds are those of the product's shelf.
type manager struct {
	s             *sim
	host          *host
	epoch         uint64
	offset        time.Duration // of its clock
	dead, stalled bool
	late          []func() // what came while it stalled
	shelf         *sagas.Shelf
	seats         map[events.Boundary]*entry
	goals         map[events.Boundary]*goalEntry
	about         map[events.Boundary][]*goalEntry // goals by seat, some of which are over
}

// entry is a seat, or a written-off environment, that is this manager's.
type entry struct {
	at       events.Boundary
	try      sagas.Try // Count, Next and Observe
	inFlight bool
	inbox    []input
	wake     int // generation of the wake time that counts
	failures int
	decided  uint64 // the last sequence that its own decision made
}

// input is an answer that was not recorded yet, as in the engine.
type input func(t *turn, s seatState) []events.Event

func (m *manager) String() string { return fmt.Sprintf("%.1s%d", m.host.id, m.epoch) }

func (m *manager) writer() events.Writer {
	return events.Writer{Instance: m.host.id, Epoch: m.epoch}
}

func (m *manager) clock() time.Time { return m.s.now.Add(m.offset) }

func (m *manager) works() bool { return m != nil && !m.dead && !m.stalled }

func (m *manager) meta() events.Meta {
	return events.Meta{ID: events.EventID(m.s.ids.UUID()), Time: events.MillisUTC(m.clock()), Caller: caller, Writer: m.writer()}
}

func (m *manager) fresh() events.OperationID { return events.OperationID(m.s.ids.UUID()) }

// alive runs f now, or when a stalled manager wakes up, or never.
func (m *manager) alive(f func()) {
	switch {
	case m.dead:
	case m.stalled:
		m.late = append(m.late, f)
	default:
		f()
	}
}

func (m *manager) wakeUp() {
	if m.dead {
		return
	}
	m.s.say("%s wakes up", m)
	m.stalled = false
	late := m.late
	m.late = nil
	for _, f := range late {
		m.alive(f)
	}
	for _, b := range m.s.books.order { // what it was in the middle of
		if e := m.seats[b]; e != nil {
			m.soon(func() { m.step(e) })
		}
	}
}

func (m *manager) soon(f func()) {
	m.after(m.s.upTo(10*time.Millisecond), f)
}

// begin takes up what the log says is this host's.
func (m *manager) begin() {
	for _, b := range slices.Clone(m.s.books.order) {
		switch b.Kind() {
		case events.KindSeat, events.KindEnvironment:
			if st := m.s.books.seat(b).Slot; st.Held() && st.Holder == m.host.id {
				e := m.entry(b)
				e.try.Observe = true
				m.soon(func() { m.step(e) })
				m.inherit(b)
			}
		case events.KindGoal:
			if g := m.s.books.goals[b]; g.Holder == m.host.id && !over(*g) {
				m.goal(b).resume = true
				m.soon(func() { m.stepGoal(b) })
			} else if !over(*g) && !g.Until.IsZero() {
				m.after(m.s.upTo(noticed), func() { m.deal(b) })
			}
		}
	}
}

func (m *manager) entry(b events.Boundary) *entry {
	e := m.seats[b]
	if e == nil {
		e = &entry{at: b}
		m.seats[b] = e
	}
	return e
}

// hear is the follow, as the engine's Absorb.
func (m *manager) hear(r *events.Record) {
	m.shelf.Absorb(r)
	switch b := r.Boundary; b.Kind() {
	case events.KindSeat, events.KindEnvironment:
		e := m.seats[b]
		if e != nil && r.Sequence <= e.decided {
			return
		}
		if e != nil || m.mine(r) {
			m.step(m.entry(b))
		}
		if took(r, m.host.id) {
			m.inherit(b)
		}
		m.touch(b)
	case events.KindGoal:
		switch g := m.goals[b]; {
		case offered(r):
			m.after(m.s.upTo(noticed), func() { m.deal(b) })
		case g == nil && m.mine(r):
			m.goal(b).resume = !m.s.books.goals[b].Until.IsZero() // it may have been claimed by a decision whose answer was lost
			m.stepGoal(b)
		case g != nil && r.Sequence > g.decided:
			m.stepGoal(b)
		}
	}
}

// concerns says that somebody here has to hear of the record. Others hear of
// it sometimes, so that what their shelves hold is often old.
func (m *manager) concerns(r *events.Record) bool {
	b := r.Boundary
	if b.Kind() == events.KindGoal {
		return m.goals[b] != nil || m.mine(r) || offered(r)
	}
	return m.seats[b] != nil || m.about[b] != nil || m.mine(r)
}

// mine says that the record gives its boundary to this host.
func (m *manager) mine(r *events.Record) bool {
	for _, ev := range r.Events {
		switch ev := ev.(type) {
		case events.SlotClaimed:
			return ev.Holder == m.host.id
		case events.SlotTakenOver:
			return ev.Holder == m.host.id
		case events.EnvironmentInherited:
			return ev.Holder == m.host.id
		case events.GoalAccepted:
			return ev.Holder == m.host.id
		case events.GoalClaimed:
			return ev.Instance == m.host.id
		}
	}
	return false
}

// touch asks the goals about a seat again.
func (m *manager) touch(seat events.Boundary) {
	about := m.about[seat]
	open := about[:0]
	for _, g := range about {
		if !over(g.state) {
			open = append(open, g)
			m.soon(func() { m.stepGoal(g.at) })
		}
	}
	if len(about) > 0 {
		m.about[seat] = open
	}
}

// decide commits what f answers, by the shelf's own rounds.
func (m *manager) decide(b events.Boundary, meta events.Meta, f func(seatState) ([]events.Event, error)) (seatState, events.Record, error) {
	m.s.acting = m
	defer func() { m.s.acting = nil }()
	if b.Kind() == events.KindSeat {
		o, a, _ := b.Seat()
		return m.shelf.DecideSeat(ctx(), o, a, meta, f)
	}
	seat := m.s.books.seat(b)
	es, err := f(seat)
	if err != nil || len(es) == 0 {
		return seat, events.Record{}, err
	}
	r, err := m.s.log.Commit(ctx(), events.Commit{Boundary: b, Expect: seat.Sequence, Meta: meta, Events: es})
	return m.s.books.seat(b), r, err
}

// command is what a client asks of a seat. A second command under the same id
// must decide nothing (scenario 3).
func (m *manager) command(n events.Alias, id events.CommandID, print string, f func(seatState) ([]events.Event, error)) (events.Record, error) {
	meta := m.meta()
	meta.Command, meta.Fingerprint = id, print
	_, r, err := m.decide(events.SeatBoundary("local", n), meta, func(seat seatState) ([]events.Event, error) {
		if id != "" && !m.s.o.Sabotage.ForgetCommands {
			if _, seen, err := seat.Commands.Seen(id, print); err != nil || seen {
				return nil, err
			}
		}
		return f(seat)
	})
	if err != nil {
		switch fault.CodeOf(err) {
		case fault.Internal, fault.BadRequest:
			m.s.broke("a command on %s: %v", n, err)
		}
	}
	return r, err
}
