package sagas

import (
	"container/list"
	"context"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/aggregates/instance"
	"berth/aggregates/numbering"
	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
)

// Limits of what a shelf keeps folded, in boundaries of each kind.
const (
	DefaultPages     = 1024
	instancePages    = 64
	environmentPages = 256
	numberPages      = 256
	personaPages     = 16
)

// Shelf holds the boundaries that are being worked on, folded, and makes
// decisions on them: load, decide, commit at that sequence, and decide again
// if it moved. It is safe for concurrent use.
type Shelf struct {
	seats     *pages[aggregates.Seat]
	inherited *pages[aggregates.Seat]
	goals     *pages[goalPage]
	numbers   *pages[numberPage]
	personas  *pages[aggregates.Personas]
	instances *pages[instancePage]
}

type goalPage struct {
	State  goal.State
	Broken *fault.Error
}

type numberPage struct {
	State  numbering.State
	Broken *fault.Error
}

type instancePage struct {
	State  instance.State
	Broken *fault.Error
}

// ShelfOption changes how a shelf is made.
type ShelfOption func(*Shelf)

// WithPages bounds how many seats and how many goals are kept folded.
func WithPages(n int) ShelfOption {
	return func(s *Shelf) { s.seats.most, s.goals.most = max(n, 1), max(n, 1) }
}

// WithSeats lets the shelf begin from a fold that is held elsewhere, such as a
// projection's, instead of from the log's first record. What it returns may be
// old, never wrong: the records after its Sequence are folded onto it.
func WithSeats(f func(events.Owner, events.Alias) (aggregates.Seat, bool)) ShelfOption {
	return func(s *Shelf) {
		s.seats.source = func(b events.Boundary) (aggregates.Seat, uint64, bool) {
			o, a, _ := b.Seat()
			seat, ok := f(o, a)
			return seat, seat.Sequence, ok
		}
	}
}

// NewShelf is an empty shelf over a log.
func NewShelf(log eventlog.Log, opts ...ShelfOption) *Shelf {
	s := &Shelf{
		seats:     newPages(log, DefaultPages, aggregates.NewSeat, (*aggregates.Seat).Fold),
		inherited: newPages(log, environmentPages, aggregates.NewSeat, foldInherited),
		goals:     newPages(log, DefaultPages, func(events.Boundary) goalPage { return goalPage{} }, foldGoal),
		numbers:   newPages(log, numberPages, func(events.Boundary) numberPage { return numberPage{} }, foldNumber),
		personas:  newPages(log, personaPages, func(events.Boundary) aggregates.Personas { return aggregates.Personas{} }, (*aggregates.Personas).Fold),
		instances: newPages(log, instancePages, func(events.Boundary) instancePage { return instancePage{} }, foldInstance),
	}
	for _, o := range opts {
		o(s)
	}
	return s
}

func newPages[T any](log eventlog.Log, most int, empty func(events.Boundary) T, fold func(*T, *events.Record)) *pages[T] {
	return &pages[T]{log: log, empty: empty, fold: fold, most: most, pages: map[events.Boundary]*list.Element{}, used: list.New()}
}

func foldGoal(g *goalPage, r *events.Record) {
	if r.Broken != nil && g.Broken == nil {
		g.Broken = quarantined(r)
	}
	if g.Broken == nil {
		for _, e := range r.Events {
			g.State = g.State.Apply(r.Meta, e)
		}
	}
}

func foldNumber(n *numberPage, r *events.Record) {
	if r.Broken != nil && n.Broken == nil {
		n.Broken = quarantined(r)
	}
	if n.Broken == nil {
		for _, e := range r.Events {
			n.State = n.State.Apply(e)
		}
	}
}

func foldInstance(i *instancePage, r *events.Record) {
	if r.Broken != nil && i.Broken == nil {
		i.Broken = quarantined(r)
	}
	if i.Broken == nil {
		for _, e := range r.Events {
			i.State = i.State.Apply(r.Meta, e)
		}
	}
}

func quarantined(r *events.Record) *fault.Error {
	return fault.New(fault.FailedPrecondition, "the record at sequence %d of %s can't be read: %s", r.Sequence, r.Boundary, fault.From(r.Broken).Message).
		WithHint("a newer program may read it; `berth doctor` lists what is quarantined")
}

// Seat is the seat with every commit acknowledged before the call. A name
// that was never used gives the empty seat.
func (s *Shelf) Seat(ctx context.Context, owner events.Owner, alias events.Alias) (aggregates.Seat, error) {
	seat, _, err := s.seats.current(ctx, events.SeatBoundary(owner, alias))
	return seat, err
}

// Goal is the goal of a boundary and the sequence it was folded to.
func (s *Shelf) Goal(ctx context.Context, b events.Boundary) (goal.State, uint64, error) {
	g, seq, err := s.goals.current(ctx, b)
	if err == nil && g.Broken != nil {
		err = g.Broken
	}
	return g.State, seq, err
}

// Instance is the registration of a manager and its sequence.
func (s *Shelf) Instance(ctx context.Context, id events.InstanceID) (instance.State, uint64, error) {
	i, seq, err := s.instances.current(ctx, events.InstanceBoundary(id))
	if err == nil && i.Broken != nil {
		err = i.Broken
	}
	return i.State, seq, err
}

// DecideSeat asks f on the seat and commits what it answers, at the sequence
// that it was asked on. f may be asked again (up to MaxRounds) and must depend
// on its argument alone. No events and no error: nothing is appended, the
// record is zero, and the seat is known to be current (decision 8). A lost
// acknowledgement is settled by meta.ID. Errors are f's or the log's.
func (s *Shelf) DecideSeat(ctx context.Context, owner events.Owner, alias events.Alias, meta events.Meta, f func(aggregates.Seat) ([]events.Event, error)) (aggregates.Seat, events.Record, error) {
	return s.seats.decide(ctx, events.SeatBoundary(owner, alias), meta, false, f)
}

// DecideGoal is DecideSeat for a goal.
func (s *Shelf) DecideGoal(ctx context.Context, b events.Boundary, meta events.Meta, f func(goal.State) ([]events.Event, error)) (goal.State, events.Record, error) {
	g, r, err := s.goals.decide(ctx, b, meta, false, func(g goalPage) ([]events.Event, error) {
		if g.Broken != nil {
			return nil, g.Broken
		}
		return f(g.State)
	})
	return g.State, r, err
}

// Number is the numbers that a base has issued and the sequence it was folded to.
func (s *Shelf) Number(ctx context.Context, b events.Boundary) (numbering.State, uint64, error) {
	n, seq, err := s.numbers.current(ctx, b)
	if err == nil && n.Broken != nil {
		err = n.Broken
	}
	return n.State, seq, err
}

// DecideNumber is DecideSeat for the numbers of a base.
func (s *Shelf) DecideNumber(ctx context.Context, b events.Boundary, meta events.Meta, f func(numbering.State) ([]events.Event, error)) (numbering.State, events.Record, error) {
	n, r, err := s.numbers.decide(ctx, b, meta, false, func(n numberPage) ([]events.Event, error) {
		if n.Broken != nil {
			return nil, n.Broken
		}
		return f(n.State)
	})
	return n.State, r, err
}

// Personas is an owner's catalog with every commit acknowledged before the call.
func (s *Shelf) Personas(ctx context.Context, owner events.Owner) (aggregates.Personas, error) {
	p, _, err := s.personas.current(ctx, events.PersonaBoundary(owner))
	return p, err
}

// DecidePersonas is DecideSeat for an owner's catalog.
func (s *Shelf) DecidePersonas(ctx context.Context, owner events.Owner, meta events.Meta, f func(aggregates.Personas) ([]events.Event, error)) (aggregates.Personas, events.Record, error) {
	return s.personas.decide(ctx, events.PersonaBoundary(owner), meta, false, f)
}

// DecideInstance is DecideSeat for an instance.
func (s *Shelf) DecideInstance(ctx context.Context, id events.InstanceID, meta events.Meta, f func(instance.State) ([]events.Event, error)) (instance.State, events.Record, error) {
	i, r, err := s.instances.decide(ctx, events.InstanceBoundary(id), meta, false, func(i instancePage) ([]events.Event, error) {
		if i.Broken != nil {
			return nil, i.Broken
		}
		return f(i.State)
	})
	return i.State, r, err
}

// Absorb keeps what is folded fresh from a follow of the log. It does not
// block, keeps nothing of r, and records may come twice or with gaps.
func (s *Shelf) Absorb(r *events.Record) {
	switch r.Boundary.Kind() {
	case events.KindSeat:
		s.seats.absorb(r)
	case events.KindEnvironment:
		s.inherited.absorb(r)
	case events.KindGoal:
		s.goals.absorb(r)
	case events.KindNumber:
		s.numbers.absorb(r)
	case events.KindPersona:
		s.personas.absorb(r)
	case events.KindInstance:
		s.instances.absorb(r)
	}
}

// of is where the seat of a boundary is folded: a name's, or that of an
// environment that was written off.
func (s *Shelf) of(b events.Boundary) *pages[aggregates.Seat] {
	if b.Kind() == events.KindEnvironment {
		return s.inherited
	}
	return s.seats
}
