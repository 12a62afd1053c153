package sim

import (
	"bytes"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/aggregates/head"
	"berth/aggregates/slot"
	"berth/events"
	"berth/sagas"
)

// books is what an auditor keeps of every durable record, apart from any
// manager: the state that the log amounts to, and what every environment and
// operation came to. It holds each record against the laws as it comes.
type books struct {
	s          *sim
	order      []events.Boundary
	last       map[events.Boundary]uint64
	seats      map[events.Boundary]*seatState // also written-off environments
	goals      map[events.Boundary]*goal.State
	arguments  map[events.Boundary]events.Arguments
	epochs     map[events.InstanceID]uint64
	lives      map[events.EnvironmentID]*life
	list       []*life
	uids       map[events.UID]*life
	dispatched map[events.OperationID]bool
	proved     map[events.OperationID]bool // what the log says became of it
	files      map[events.OperationID]content
	exported   map[events.OperationID]bool
	relayed    map[events.OperationID]bool // turns
	yielded    map[events.OperationID]bool
	content    []byte // scratch
}

// life is one environment, from its claim to its end.
type life struct {
	at              events.Boundary
	env             events.EnvironmentID
	uid             events.UID
	seat            *seatState // as this lifecycle left it
	ran, writtenOff bool
}

func newBooks(s *sim) *books {
	return &books{s: s, last: map[events.Boundary]uint64{}, seats: map[events.Boundary]*seatState{}, goals: map[events.Boundary]*goal.State{},
		arguments: map[events.Boundary]events.Arguments{}, epochs: map[events.InstanceID]uint64{}, lives: map[events.EnvironmentID]*life{},
		uids: map[events.UID]*life{}, dispatched: map[events.OperationID]bool{}, proved: map[events.OperationID]bool{}, files: map[events.OperationID]content{},
		exported: map[events.OperationID]bool{}, relayed: map[events.OperationID]bool{}, yielded: map[events.OperationID]bool{}}
}

// seat is the seat as the log has it.
func (b *books) seat(at events.Boundary) seatState {
	if s := b.seats[at]; s != nil {
		return *s
	}
	return aggregates.NewSeat(at)
}

func (b *books) lifeOf(uid events.UID) *life { return b.uids[uid] }

// meant is the seat that a goal is about, as its lifecycle left it.
func (b *books) meant(g goal.State) seatState {
	a := g.Allocated
	if l := b.uids[a.UID]; l != nil {
		return *l.seat
	}
	if l := b.lives[a.Environment]; l != nil && a.Operation != "" {
		return *l.seat
	}
	return b.seat(events.SeatBoundary(a.Owner, a.Name))
}

// take is every record, in the order of the log.
func (b *books) take(r *events.Record) {
	at := r.Boundary
	if b.last[at] == 0 {
		b.order = append(b.order, at)
	}
	b.last[at] = r.Sequence
	if bytes.Contains(b.s.log.Body(r.Sequence), []byte(canary)) {
		b.s.broke("a secret is in the record at %d of %s", r.Sequence, at)
	}
	if b.s.o.Tell {
		for _, e := range r.Events {
			b.s.say("%.1s%d %s %s", r.Meta.Writer.Instance, r.Meta.Writer.Epoch, at, e.EventType())
		}
	}
	switch at.Kind() {
	case events.KindInstance:
		b.epochs[r.Meta.Writer.Instance] = r.Meta.Writer.Epoch
	case events.KindGoal:
		b.takeGoal(r)
	case events.KindSeat:
		b.takeSeat(r)
	case events.KindEnvironment:
		next := sagas.Inherited(b.seat(at), *r)
		b.seats[at] = &next
		for _, e := range r.Events {
			b.fact(nil, e)
		}
	}
}

func (b *books) takeGoal(r *events.Record) {
	g := b.goals[r.Boundary]
	if g == nil {
		g = &goal.State{}
		b.goals[r.Boundary] = g
	}
	for _, e := range r.Events {
		if on, ok := goal.Meaning(e); ok {
			if _, ok = goal.Table.Next(g.State, on); !ok {
				b.s.broke("2.6: %s is %s, and %s was recorded", r.Boundary, g.State, e.EventType())
			}
		}
		b.handed(r.Boundary, g, e, r.Meta.Time)
		*g = g.Apply(r.Meta, e)
		end, ok := e.(events.GoalEnded)
		l := b.uids[g.Allocated.UID]
		if ok && g.Command == "spawn" && end.State == events.GoalSucceeded && (l == nil || !l.ran) {
			b.s.broke("2.6: %s succeeded before it was true", r.Boundary)
		}
	}
}

func (b *books) takeSeat(r *events.Record) {
	seat := b.seat(r.Boundary)
	w, was, before := r.Meta.Writer, seat.Slot, seat
	if err := seat.Audit(r); err != nil {
		b.s.broke("%s: the tables refuse what was appended: %v", r.Boundary, err)
		return
	}
	if was.Held() && was.Holder == w.Instance && was.Epoch > w.Epoch {
		b.s.broke("law 3: epoch %d of %.1s appends to %s after epoch %d did", w.Epoch, w.Instance, r.Boundary, was.Epoch)
	}
	now := b.keep(r.Boundary, &seat)
	for _, e := range r.Events {
		switch e := e.(type) {
		case events.SlotClaimed:
			b.claimed(r.Boundary, e)
		}
	}
	l := b.uids[now.Slot.UID]
	if l == nil {
		return
	}
	l.seat = now
	for _, e := range r.Events {
		b.turned(before, r.Meta, e)
		if _, ok := e.(events.OperationDispatched); ok && (now.Slot.Holder != w.Instance || now.Slot.Epoch != w.Epoch) {
			b.s.broke("law 3: epoch %d of %.1s dispatches on %s without having taken it", w.Epoch, w.Instance, r.Boundary)
		}
		b.fact(l, e)
	}
}

// keep takes down a seat. There is a place of its own for each of the name's
// lifecycles, so that what a life came to stays as it left it.
func (b *books) keep(at events.Boundary, now *seatState) *seatState {
	place := b.seats[at]
	if place == nil || place.Slot.UID != now.Slot.UID {
		place = new(seatState)
		b.seats[at] = place
	}
	*place = *now
	return place
}

func (b *books) claimed(at events.Boundary, e events.SlotClaimed) {
	if b.lives[e.Environment] != nil || b.uids[e.UID] != nil {
		b.s.broke("R61: environment %s or its lifecycle was claimed twice", e.Environment)
	}
	if g := b.goals[events.Boundary(e.Goal)]; g == nil || g.Holder != e.Holder || g.State.Terminal() {
		b.s.broke("decision 11: %.1s claims %s for %s, which is not its goal", e.Holder, at, e.Goal)
	}
	l := &life{at: at, env: e.Environment, uid: e.UID}
	b.lives[e.Environment], b.uids[e.UID], b.list = l, l, append(b.list, l)
	b.s.result.Lifetimes++
}

// fact keeps what an event says. l is nil on the boundary of a written-off
// environment.
func (b *books) fact(l *life, e events.Event) {
	switch e := e.(type) {
	case events.SlotActivated:
		l.ran = true
	case events.EnvironmentWrittenOff:
		l.writtenOff = true
	case events.SlotRetired:
		if b.s.machine.Holds(l.env) && !l.writtenOff {
			b.s.broke("law 2: the name of %s is free and the provider still holds it", l.env)
		}
	case events.OperationDispatched:
		if b.dispatched[e.Operation] {
			b.s.broke("law 2: %s is dispatched a second time", e.Operation)
		}
		b.dispatched[e.Operation] = true
	case events.OperationConfirmed:
		b.proved[e.Operation] = true
	case events.OperationLanded:
		b.proved[e.Operation] = true
	case events.OperationRefused:
		b.proved[e.Operation] = false
	case events.OperationExcluded:
		b.proved[e.Operation] = false
	case events.FileAccepted:
		b.accepted(e)
	}
}

// accepted holds a file against what the provider's environment really had.
func (b *books) accepted(e events.FileAccepted) {
	b.s.result.Exports++
	b.exported[e.Operation] = true
	op, ok := b.lives[e.Environment].seat.Environment.Find(e.Operation)
	if off := b.seats[events.EnvironmentBoundary(e.Environment)]; !ok && off != nil {
		op, ok = off.Environment.Find(e.Operation) // it was written off while the export was open
	}
	b.content = b.s.machine.AppendContent(b.content[:0], e.Environment, op.Arguments.CheckpointID)
	truth := sum(b.content)
	if !ok || b.files[e.Operation] != truth || truth.sha != e.File.SHA256 || truth.size > op.Arguments.MaxBytes {
		b.s.broke("R37: the accepted file of %s is not what was exported", e.Operation)
	}
}

// final holds a name at the end against the laws.
func (b *books) final(at events.Boundary) {
	s := b.seat(at)
	if at.Kind() == events.KindEnvironment {
		if e := s.Environment; e.Operation != nil || e.Ref != "" && !e.Gone {
			b.s.broke("%s is still there at the end", at)
		}
		return
	}
	if p := s.Slot.Phase; p != slot.None && p != slot.Retired {
		b.s.broke("%s is %s at the end, %s", at, p, s.Status())
		return
	}
	b.turnsOver(at, s)
	if s.Environment.Reserved() {
		b.s.broke("quota: %s still holds its reservation", at)
	}
	if h := s.Head; h.Phase != head.None && (h.Phase != head.Retired || h.Gate.Phase != head.GateRetired || len(h.Revoke()) > 0) {
		b.s.broke("the head of %s is %s and its gate %s, with %d credentials not revoked", at, h.Phase, h.Gate.Phase, len(h.Revoke()))
	}
}
