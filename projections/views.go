package projections

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/instance"
	"berth/aggregates/intent"
	"berth/events"
	"berth/events/fault"
)

// MaxLosses is how many accepted losses of history are kept, newest last.
const MaxLosses = 16

// Views is every projection of one space, folded to one sequence. It is not
// safe for concurrent use: see Runner.
type Views struct {
	space    events.Space
	sequence uint64
	newest   time.Time // highest Meta.Time
	counts   Counts

	live        map[events.Boundary]*entry // held or quarantined seats
	retired     packed
	last        map[events.Boundary]uint32 // newest retired row of a name
	recent      recent
	intents     map[events.Boundary][]intent.State // of names that nobody holds
	writtenOff  map[events.EnvironmentID]*environment.State
	goals       goals
	instances   map[events.InstanceID]*host
	meters      map[account]*Meter // usage of what was released
	quarantined map[events.Boundary]Quarantine
	losses      []Loss
}

// Counts is how much was folded.
type Counts struct {
	Commits    uint64 `json:"commits"`
	Events     uint64 `json:"events"`
	Boundaries uint64 `json:"boundaries"`
	UIDs       uint64 `json:"uids"` // lifecycle uids ever reserved
}

// Quarantine is a boundary that could not be folded: nothing after Sequence
// was taken in (scenarios 73, 74).
type Quarantine struct {
	Boundary events.Boundary `json:"boundary"`
	Sequence uint64          `json:"sequence"`
	Fault    *fault.Error    `json:"fault"`
}

// Loss is an operator's acceptance that history was lost (decision 6).
type Loss struct {
	Sequence uint64                     `json:"sequence"`
	At       time.Time                  `json:"at"`
	Event    events.HistoryLossAccepted `json:"event"`
}

// entry is one name that is held, or that could not be read.
type entry struct {
	seat     aggregates.Seat
	released int64  // epoch ms of the proof of exit or the write-off, zero before
	prev     uint32 // the name's newest retired row plus one, zero if none
}

// NewViews is the views of an empty log.
func NewViews(space events.Space) *Views {
	return &Views{
		space:       space,
		live:        map[events.Boundary]*entry{},
		last:        map[events.Boundary]uint32{},
		writtenOff:  map[events.EnvironmentID]*environment.State{},
		goals:       newGoals(),
		instances:   map[events.InstanceID]*host{},
		meters:      map[account]*Meter{},
		quarantined: map[events.Boundary]Quarantine{},
		intents:     map[events.Boundary][]intent.State{},
	}
}

// Space is the tenant whose log is folded.
func (v *Views) Space() events.Space { return v.space }

// Sequence is the last sequence that was folded: asOf of every answer.
func (v *Views) Sequence() uint64 { return v.sequence }

// Newest is the highest time of a folded commit, zero if there is none.
func (v *Views) Newest() time.Time { return v.newest }

// Counts is how much was folded.
func (v *Views) Counts() Counts { return v.counts }

// Held is how many names are held or quarantined.
func (v *Views) Held() int { return len(v.live) }

// Ended is how many lifecycles have ended.
func (v *Views) Ended() int { return len(v.retired.rows) }

// Losses lists the accepted losses of history, oldest first, at most MaxLosses.
func (v *Views) Losses() []Loss { return slices.Clone(v.losses) }

// Apply folds one record. Records come in order; one that was folded before is
// ignored. A record that can't be folded quarantines its boundary and nothing
// else (law 4).
func (v *Views) Apply(r events.Record) {
	if r.Sequence <= v.sequence {
		return
	}
	v.sequence = r.Sequence
	v.counts.Commits++
	v.counts.Events += uint64(len(r.Events))
	if r.Previous == 0 && r.Broken == nil {
		v.counts.Boundaries++
	}
	if r.Meta.Time.After(v.newest) {
		v.newest = r.Meta.Time
	}
	if len(v.quarantined) > 0 {
		if _, bad := v.quarantined[r.Boundary]; bad {
			return
		}
	}
	if r.Broken != nil {
		v.quarantine(r, fault.From(r.Broken))
		return
	}
	if r.Torn {
		// Nothing of it happened, its command neither; but the boundary's next
		// append expects its sequence.
		if e := v.live[r.Boundary]; e != nil {
			e.seat.Sequence = r.Sequence
		}
		return
	}
	v.fold(r)
}

// fold takes a readable record in. A fold that panics is a record that this
// program does not understand, whatever its codec says: it is quarantined too.
func (v *Views) fold(r events.Record) {
	defer func() {
		if p := recover(); p != nil {
			v.quarantine(r, fault.New(fault.Internal, "the record at sequence %d of %s can't be folded: %s", r.Sequence, r.Boundary, events.Scrub(fmt.Sprint(p))).
				WithHint("a newer program may read it; `berth doctor` lists what is quarantined"))
		}
	}()
	switch r.Boundary.Kind() {
	case events.KindSeat:
		v.foldSeat(r)
	case events.KindGoal:
		v.goals.fold(r)
	case events.KindUID:
		v.counts.UIDs++
	case events.KindInstance:
		v.foldInstance(r)
	case events.KindEnvironment:
		v.foldWrittenOff(r)
	case events.KindSpace:
		v.foldSpace(r)
	}
}

func (v *Views) quarantine(r events.Record, why *fault.Error) {
	b := events.Boundary(strings.Clone(string(r.Boundary)))
	v.quarantined[b] = Quarantine{Boundary: b, Sequence: r.Sequence, Fault: why}
	if b.Kind() != events.KindSeat {
		return
	}
	e := v.live[b]
	if e == nil {
		e = v.open(b)
		v.live[b] = e
	}
	// The seat learns it by the aggregate's own rule, so that decisions on it
	// are refused and its status is held.
	r.Broken = why
	e.seat = e.seat.Apply(r)
}

// Quarantined lists the boundaries that could not be folded, by sequence.
func (v *Views) Quarantined() []Quarantine {
	out := make([]Quarantine, 0, len(v.quarantined))
	for _, q := range v.quarantined {
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b Quarantine) int { return int(int64(a.Sequence) - int64(b.Sequence)) })
	return out
}

// foldWrittenOff follows an environment that was written off on its own
// boundary until it is proved gone (decision 13).
func (v *Views) foldWrittenOff(r events.Record) {
	id := events.EnvironmentID(strings.TrimPrefix(string(r.Boundary), string(events.KindEnvironment)+"."))
	s := v.writtenOff[id]
	if s == nil {
		if r.Previous != 0 {
			return // it was proved gone before
		}
		s = &environment.State{}
	}
	next := *s
	for _, e := range r.Events {
		next = next.Apply(r.Meta, e)
	}
	if next.Operation == nil && (next.Gone || next.Ref == "") { // gone, or proved never to have been made
		delete(v.writtenOff, id)
		return
	}
	v.writtenOff[events.EnvironmentID(strings.Clone(string(id)))] = &next
}

// WrittenOff lists the environments that were written off and are not yet
// proved gone, by id.
func (v *Views) WrittenOff() []environment.State {
	out := make([]environment.State, 0, len(v.writtenOff))
	for _, s := range v.writtenOff {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b environment.State) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out
}

func (v *Views) foldInstance(r events.Record) {
	id := events.InstanceID(strings.TrimPrefix(string(r.Boundary), string(events.KindInstance)+"."))
	h := v.host(id)
	for _, e := range r.Events {
		h.state = h.state.Apply(r.Meta, e)
		if s, ok := e.(events.ChainSigned); ok {
			h.signed = s.Through
		}
	}
}

// host is the row of an instance; a seat may name one that never registered.
func (v *Views) host(id events.InstanceID) *host {
	h := v.instances[id]
	if h == nil {
		id = events.InstanceID(strings.Clone(string(id)))
		h = &host{state: instance.State{ID: id}, held: map[string]Held{}}
		v.instances[id] = h
	}
	return h
}

func (v *Views) foldSpace(r events.Record) {
	for _, e := range r.Events {
		if l, ok := e.(events.HistoryLossAccepted); ok {
			v.losses = append(slices.Clip(v.losses), Loss{Sequence: r.Sequence, At: r.Meta.Time, Event: l})
			if n := len(v.losses) - MaxLosses; n > 0 {
				v.losses = slices.Clone(v.losses[n:])
			}
		}
	}
}
