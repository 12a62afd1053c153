package projections

import (
	"strings"

	"berth/aggregates"
	"berth/events"
)

// reservation is what a seat holds of an instance's resources.
type reservation struct {
	held        bool
	environment events.EnvironmentID
	holder      events.InstanceID
	provider    string
	resources   events.Resources
}

// reserved says what the seat holds: from the claim until exit is proved, the
// environment is written off, or the slot is retired (which asserts proof).
func reserved(s *aggregates.Seat) reservation {
	if !s.Slot.Held() || !s.Environment.Reserved() {
		return reservation{}
	}
	return reservation{held: true, environment: s.Environment.ID, holder: s.Slot.Holder,
		provider: s.Environment.Plan.Provider, resources: s.Environment.Plan.Resources}
}

func (v *Views) foldSeat(r events.Record) {
	e := v.live[r.Boundary]
	fresh := e == nil
	if fresh {
		e = v.open(r.Boundary)
	}
	// The new seat is computed whole before anything shared is touched, so
	// that a fold that panics leaves no half of it behind.
	next := e.seat
	next.Fold(&r)
	v.tidy(&next, &e.seat, r.Events)
	before, after := reserved(&e.seat), reserved(&next)
	ended := account{e.seat.Owner, e.seat.Environment.Plan.Provider}
	begun := stamp(e.seat.Environment.CreatedAt)
	e.seat = next
	if before != after {
		v.move(before, after)
	}
	if before.held && before.environment != after.environment {
		e.released = max(r.Meta.Time.UnixMilli(), begun)
		v.meter(ended).add(before.resources, e.released-begun)
	}
	switch {
	case next.Slot.Held() || next.Quarantine != nil:
		if fresh {
			b := events.Boundary(strings.Clone(string(r.Boundary)))
			v.live[b] = e
			delete(v.intents, b)
		}
	default:
		if !fresh {
			v.retire(e, r)
		}
		v.keepIntents(&next)
	}
}

// keepIntents keeps the delegated intents of a name that nobody holds, and the
// command ids that admitted them: they are of the next lifecycle too.
func (v *Views) keepIntents(s *aggregates.Seat) {
	if len(s.Intents) == 0 {
		return
	}
	b := s.Boundary()
	v.intents[b] = s.Intents
	v.recent.put(b, s.Commands)
}

// open is the entry of a name that nobody holds. What the name's earlier
// lifecycles were asked is kept for a while only (MaxRecent): after it the
// seat says `expired` for command ids of that time instead of taking them for
// new.
func (v *Views) open(b events.Boundary) *entry {
	e := &entry{seat: aggregates.NewSeat(events.Boundary(strings.Clone(string(b))))}
	e.seat.Intents = v.intents[b]
	row, ok := v.last[b]
	if ok {
		e.prev = row + 1
	}
	switch c, recently := v.recent.Commands[b]; {
	case recently:
		e.seat.Commands = c
	case ok:
		e.seat.Commands.Forgotten = v.retired.row(row).ended()
	case len(e.seat.Intents) > 0:
		e.seat.Commands.Forgotten = e.seat.Intents[len(e.seat.Intents)-1].AdmittedAt
	}
	return e
}

// retire packs a lifecycle that has ended.
func (v *Views) retire(e *entry, r events.Record) {
	b := e.seat.Boundary()
	row := v.retired.add(retiredOf(e, r.Meta.Time.UnixMilli()))
	delete(v.live, r.Boundary)
	v.last[b] = row
	v.recent.put(b, e.seat.Commands)
}

// move books a change of reservation: the old one is released once, and the
// new one is held by whoever holds the seat (R80).
func (v *Views) move(before, after reservation) {
	if before.held {
		v.host(before.holder).release(before.provider, before.resources)
	}
	if after.held {
		v.host(after.holder).hold(after.provider, after.resources)
	}
}

// Seat is the aggregate of a name that is held or quarantined, as of
// Sequence. It may have forgotten commands of earlier lifecycles, and says so
// (Commands.Forgotten). A name that is free answers false: load its boundary
// to decide on it.
func (v *Views) Seat(o events.Owner, a events.Alias) (aggregates.Seat, bool) {
	e := v.live[events.SeatBoundary(o, a)]
	if e == nil {
		return aggregates.Seat{}, false
	}
	return e.seat, true
}

// EachSeat calls f for every name that is held or quarantined, in no
// particular order, until f returns false.
func (v *Views) EachSeat(f func(aggregates.Seat) bool) {
	for _, e := range v.live {
		if !f(e.seat) {
			return
		}
	}
}
