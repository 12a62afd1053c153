// Package aggregates composes the pure state machines that share a seat's
// boundary: its slot, its head with gate and ledger, its environment with the
// operation journal, and its turns. One compare-and-append on the boundary's
// last sequence fences them all (blueprint 4), and every decision is a method that
// returns events or a typed refusal.
//
// Nothing here reads a clock, makes an id, does I/O or starts a goroutine:
// time and ids arrive as values.
package aggregates

import (
	"berth/aggregates/environment"
	"berth/aggregates/head"
	"berth/aggregates/intent"
	"berth/aggregates/slot"
	"berth/aggregates/turns"
	"berth/events"
	"berth/events/fault"
)

// Seat is everything that one name's boundary says, folded to a sequence. It
// is a value: Apply returns a new one and shares nothing that it changes.
type Seat struct {
	Owner       events.Owner
	Alias       events.Alias
	Sequence    uint64 // last sequence of the boundary, zero if none
	Slot        slot.State
	Head        head.State
	Environment environment.State
	Turns       turns.State
	Commands    Commands
	// Intents are the delegated intents about this name, oldest first; never
	// changed in place.
	Intents []intent.State `json:",omitempty"`
	// Quarantine is set when a record could not be read: nothing is decided on
	// this boundary until a program that reads it takes over (law 4).
	Quarantine *fault.Error
}

// NewSeat is the seat of a boundary on which nothing has happened.
func NewSeat(b events.Boundary) Seat {
	o, a, _ := b.Seat()
	return Seat{Owner: o, Alias: a}
}

// Boundary is where the seat's events are.
func (s Seat) Boundary() events.Boundary { return events.SeatBoundary(s.Owner, s.Alias) }

// Apply folds one record.
func (s Seat) Apply(r events.Record) Seat {
	s.Fold(&r)
	return s
}

// Fold is Apply in place, for whoever has the only copy of s: a seat is a
// kilobyte. What it points to is shared with other copies, and is replaced,
// never changed.
func (s *Seat) Fold(r *events.Record) {
	if s.take(r) {
		for _, e := range r.Events {
			s.fold(&r.Meta, e)
		}
	}
}

// take folds all of a record but its events, and says whether these count.
func (s *Seat) take(r *events.Record) bool {
	s.Sequence = r.Sequence
	if s.Quarantine != nil {
		return false
	}
	if r.Broken != nil {
		s.Quarantine = fault.New(fault.FailedPrecondition, "the record at sequence %d of %s can't be read: %s", r.Sequence, r.Boundary, fault.From(r.Broken).Message).
			WithHint("a newer program may read it; `berth doctor` lists what is quarantined")
		return false
	}
	if r.Torn {
		return false // an atomic publish that never became whole decided nothing
	}
	if r.Meta.Command != "" {
		s.Commands = s.Commands.add(r)
	}
	return true
}

// fold takes one event into all of them, in place. One that the slot's table
// refuses (a claim of a held name, the end of a life that is over) is refused
// by all.
func (s *Seat) fold(m *events.Meta, e events.Event) {
	if !s.Environment.Concerns(e) || !s.Slot.Fold(m, e) {
		return
	}
	s.Head.Fold(e)
	s.Environment.Take(m, e)
	s.foldIntent(m, e)
	s.Turns.Fold(m, e)
}

// With is the seat as it would be if the events were appended by m; the
// sequence stays. It lets several decisions go into one commit.
func (s Seat) With(m events.Meta, es ...events.Event) Seat {
	s.Suppose(&m, es)
	return s
}

// Suppose is With in place.
func (s *Seat) Suppose(m *events.Meta, es []events.Event) {
	for _, e := range es {
		s.fold(m, e)
	}
}

// Check refuses events that the tables do not allow on this seat, one after
// the other, with the refusal of the first: what a decision returns always
// passes, and an append that does not is a defect of the program. The fold
// ignores what the tables refuse; that a released name is really free (law 2)
// is checked here only, because by then it is written.
func (s Seat) Check(m events.Meta, es ...events.Event) error { return s.checked(&m, es) }

// checked folds the events as far as the tables allow them.
func (s *Seat) checked(m *events.Meta, es []events.Event) error {
	for _, e := range es {
		if err := s.Slot.Check(e); err != nil {
			return err
		}
		if err := s.Head.Check(e); err != nil {
			return err
		}
		if err := s.Environment.Check(e); err != nil {
			return err
		}
		if err := s.checkIntent(m, e); err != nil {
			return err
		}
		if err := s.Turns.Check(e); err != nil {
			return err
		}
		if _, ok := e.(events.SlotRetired); ok {
			if err := s.free(); err != nil {
				return err
			}
		}
		s.fold(m, e)
	}
	return nil
}

// Audit is Check and Fold of a record at once, for whoever trusts no record:
// after a refusal s is folded in part and worth nothing.
func (s *Seat) Audit(r *events.Record) error {
	if !s.take(r) {
		return nil
	}
	return s.checked(&r.Meta, r.Events)
}

// Fold folds records onto the empty seat of a boundary.
func Fold(b events.Boundary, rs []events.Record) Seat {
	s := NewSeat(b)
	for i := range rs {
		s.Fold(&rs[i])
	}
	return s
}

// readable refuses every decision on a quarantined seat.
func (s Seat) readable() error {
	if s.Quarantine != nil {
		return s.Quarantine
	}
	return nil
}

// held refuses a decision on a name that nobody holds: not-found.
func (s Seat) held() error {
	if err := s.readable(); err != nil {
		return err
	}
	if !s.Slot.Held() {
		return s.Nobody()
	}
	return nil
}

// Nobody is the refusal of what is asked of a name that nobody holds: not-found.
func (s Seat) Nobody() *fault.Error {
	if s.Slot.Phase == slot.Retired {
		return fault.New(fault.NotFound, "%s is retired: nothing of it is there any more", s.Alias).WithHint("`berth history %s` tells how it ended; `berth ls` lists what there is", s.Alias)
	}
	return fault.New(fault.NotFound, "there is no environment named %s", s.Alias).WithHint("`berth ls` lists what there is")
}
