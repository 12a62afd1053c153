package sim

import (
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/sagas"
)

// host is a machine that runs one manager after another. What it keeps on its
// disk outlives them.
type host struct {
	id      events.InstanceID
	current *manager
	gone    bool                // given up for dead; comes back in the end
	staged  map[events.UID]bool // lifecycles whose credential is staged here
}

// boot registers the next epoch, with a clock that may have been set since.
func (s *sim) boot(h *host) {
	if h.gone || h.current != nil && !h.current.dead && !h.current.stalled {
		return
	}
	m := &manager{s: s, host: h, epoch: s.books.epochs[h.id] + 1, seats: map[events.Boundary]*entry{}, goals: map[events.Boundary]*goalEntry{}, about: map[events.Boundary][]*goalEntry{}}
	s.fallBack()
	pages := 64
	if s.rng.IntN(4) == 0 {
		pages = 2 // it forgets all the time
	}
	m.shelf = sagas.NewShelf(s.log, sagas.WithPages(pages), sagas.WithSeats(s.readers.seat))
	if !s.quiet && s.rng.IntN(3) == 0 {
		m.offset = s.upTo(20*time.Minute) - 10*time.Minute
	}
	b := events.InstanceBoundary(h.id)
	meta := m.meta()
	_, err := s.log.Commit(ctx(), events.Commit{Boundary: b, Expect: s.books.last[b], Meta: meta, Events: []events.Event{events.InstanceRegistered{Instance: h.id, Epoch: m.epoch, Version: "sim"}}})
	if err != nil {
		s.after(s.upTo(time.Minute), func() { s.boot(h) })
		return
	}
	h.current, s.all = m, append(s.all, m)
	s.say("host %.1s epoch %d begins, clock off by %s", h.id, m.epoch, m.offset)
	m.begin()
}

// fell ends a manager: it dies, or it stalls and wakes up later as a stranger
// to what happened since.
func (s *sim) fell(m *manager, why string) bool {
	if s.quiet || m == nil || m.dead || m.stalled {
		return false
	}
	s.result.Crashes++
	if s.rng.IntN(4) == 0 {
		m.stalled = true
		s.say("%s stalls: %s", m, why)
		s.after(s.upTo(20*time.Minute), m.wakeUp)
	} else {
		m.dead = true
		s.say("%s dies: %s", m, why)
	}
	s.after(s.upTo(2*time.Minute), func() { s.boot(m.host) })
	return true
}

// disaster takes a host away, and an operator has the other one take its seats
// over. It comes back, or its stalled manager wakes up, when they are long
// somebody else's.
func (s *sim) disaster() {
	h, other := s.hosts[0], s.hosts[1]
	if s.rng.IntN(2) == 0 {
		h, other = other, h
	}
	if s.quiet || h.current == nil {
		return
	}
	s.say("host %.1s is gone", h.id)
	h.gone = true
	if m := h.current; s.rng.IntN(2) == 0 {
		m.dead = true
	} else if !m.stalled {
		m.stalled = true
		s.after(s.upTo(40*time.Minute), m.wakeUp)
	}
	s.after(s.upTo(10*time.Minute), func() { s.takeOver(h, other) })
	s.after(20*time.Minute+s.upTo(40*time.Minute), func() { h.gone = false; s.boot(h) })
}

func (s *sim) takeOver(from, to *host) {
	m := to.current
	if !from.gone || !m.works() {
		return
	}
	for _, n := range names {
		at := events.SeatBoundary("local", n)
		if seat := s.books.seat(at); !seat.Slot.Held() || seat.Slot.Holder != from.id {
			continue
		}
		s.result.Takeovers++
		s.say("an operator has host %.1s take %s over", to.id, n)
		m.command(n, "", "", func(seat seatState) ([]events.Event, error) {
			if seat.Slot.Holder != from.id {
				return nil, nil
			}
			return seat.TakeOver(to.id, m.epoch)
		})
	}
}

// errFell is what a manager hears of an append in which it fell: nothing.
var errFell = fault.New(fault.Cancelled, "the process fell").WithOutcome(fault.NotExecuted)

// before is a fall in front of an append.
func (s *sim) before([]events.Commit) error {
	if s.acting != nil && s.chance(200) && s.fell(s.acting, "before an append") {
		return errFell
	}
	return nil
}

// stored keeps the books of what is durable from here, tells everybody in his
// own time, and may take the acknowledgement away.
func (s *sim) stored(rs []events.Record) error {
	for i := range rs {
		r := &rs[i]
		s.result.Records++
		s.fingerprint(r.Hash[:], int64(r.Sequence))
		s.books.take(r)
		for _, m := range s.all {
			if !m.dead && (m.concerns(r) || s.rng.IntN(4) == 0) {
				s.deliver(m, r)
			}
		}
	}
	switch {
	case s.acting == nil:
	case s.chance(200) && s.fell(s.acting, "after an append"):
		return errFell
	case s.chance(60):
		s.say("the acknowledgement is lost")
		return errFell
	}
	return nil
}

// deliver gives a record of the follow, some of them late or again, also much
// later.
func (s *sim) deliver(m *manager, r *events.Record) {
	hear := func() { m.hear(r) }
	soon := 20 * time.Millisecond
	if s.chance(40) {
		soon = 5 * time.Minute
	}
	m.after(s.upTo(soon), hear)
	if s.chance(40) {
		m.after(s.upTo(10*time.Minute), hear)
	}
}
