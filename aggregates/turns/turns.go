// Package turns is what a seat is asked to do next: a queue of turns, of which
// the oldest is shown, and how each of them ended (rules.md 2.6). A turn that
// nobody gives back ends at its deadline or with its seat.
package turns

import (
	"encoding/json"
	"slices"
	"time"

	"berth/aggregates/machine"
	"berth/events"
	"berth/events/fault"
)

// Phase is where one turn stands.
type Phase string

// The phases of a turn; the last two are final.
const (
	None    Phase = ""
	Pending Phase = "pending"
	Yielded Phase = "yielded"
	Dropped Phase = "dropped"
)

// On is what may happen to a turn.
type On string

// The events of the table.
const (
	OnRelay On = "relay"
	OnYield On = "yield"
	OnDrop  On = "drop"
)

// Table is the life of one turn.
var Table = machine.Table[Phase, On]{Name: "turn", Rows: []machine.Row[Phase, On]{
	{From: []Phase{None}, On: OnRelay, To: Pending, Guard: "the seat runs, the queue is not full, before the deadline"},
	{From: []Phase{Pending}, On: OnYield, To: Yielded, Guard: "by the seat itself, before the deadline; the first end wins"},
	{From: []Phase{Pending}, On: OnDrop, To: Dropped, Guard: "the deadline, a cancel, or the end of the seat"},
}}

// Limits of one seat.
const (
	MaxPending = 8 // turns that wait, the shown one with them
	MaxEnded   = 8 // ended turns kept with how they ended; older ones are in the log
)

// Reasons of a drop that are not the end of the seat.
const (
	ReasonDeadline  = "deadline"
	ReasonCancelled = "cancelled"
)

// DetailDeadline is the kind of the detail of a turn that nobody gave back in
// time; with agentDownAt if the agent was seen to have stopped.
const DetailDeadline = "berth.turn-deadline"

// TooLate is the fault of a turn whose deadline was over before its seat was
// asked: not executed.
func TooLate(name events.Alias, deadline time.Time) *fault.Error {
	return fault.New(fault.DeadlineExceeded, "the deadline of the turn was over before %s was asked", name).
		WithOutcome(fault.NotExecuted).WithDetail(DetailDeadline, "deadline", deadline.UTC().Format(time.RFC3339))
}

// Turn is one turn of a seat.
type Turn struct {
	ID          events.OperationID
	Goal        events.Boundary
	Phase       Phase
	RelayedAt   time.Time
	Deadline    time.Time
	EndedAt     time.Time
	Status      events.TurnStatus // of a yield
	To          events.Alias
	Note        string
	Fingerprint string // of the request that gave it back
	Reason      string // of a drop
	Outcome     fault.Outcome
	DownAt      *time.Time
}

// State is the turns of one lifecycle. The zero value has none.
type State struct {
	UID     events.UID
	Pending []Turn // oldest first: the first is the one that is shown
	Ended   []Turn // oldest first, the newest MaxEnded
}

// Find is the turn of an id, as far as it is kept.
func (s State) Find(id events.OperationID) (Turn, bool) {
	for _, l := range [][]Turn{s.Pending, s.Ended} {
		if i := slices.IndexFunc(l, func(t Turn) bool { return t.ID == id }); i >= 0 {
			return l[i], true
		}
	}
	return Turn{}, false
}

// Named is the turn of a goal's id: what waits first, then what ended last.
func (s State) Named(id events.GoalID) (Turn, bool) {
	is := func(t Turn) bool { _, g, ok := t.Goal.Goal(); return ok && g == id }
	if i := slices.IndexFunc(s.Pending, is); i >= 0 {
		return s.Pending[i], true
	}
	for _, t := range slices.Backward(s.Ended) {
		if is(t) {
			return t, true
		}
	}
	return Turn{}, false
}

// Shown says that a turn may have been shown to the seat: it is the oldest.
func (s State) Shown(id events.OperationID) bool {
	return len(s.Pending) > 0 && s.Pending[0].ID == id
}

// Meaning is what an event means to a turn, and to which; ok is false when it
// does not concern one.
func Meaning(e events.Event) (id events.OperationID, on On, ok bool) {
	_, id, on, ok = meaning(e)
	return id, on, ok
}

// meaning is Meaning with the lifecycle that the event names.
func meaning(e events.Event) (uid events.UID, id events.OperationID, on On, ok bool) {
	switch e := e.(type) {
	case events.TurnRelayed:
		return e.UID, e.Turn, OnRelay, true
	case events.TurnYielded:
		return e.UID, e.Turn, OnYield, true
	case events.TurnDropped:
		return e.UID, e.Turn, OnDrop, true
	}
	return "", "", "", false
}

// Check refuses an event that the table does not allow now
// (failed-precondition), that is of another lifecycle (expired), or that is one
// turn too many (resource-exhausted).
func (s State) Check(e events.Event) error {
	uid, id, on, ok := meaning(e)
	if !ok {
		return nil
	}
	if uid != s.UID {
		return fault.New(fault.Expired, "lifecycle %s is no longer the current one of this name", uid)
	}
	t, _ := s.Find(id)
	if _, legal := Table.Next(t.Phase, on); !legal {
		return Table.Refuse(t.Phase, on)
	}
	if on == OnRelay && len(s.Pending) >= MaxPending {
		return fault.New(fault.ResourceExhausted, "%d turns wait at this seat, which is the limit", MaxPending).WithHint("ask again when one has ended")
	}
	return nil
}

// Apply folds one event. What does not concern a turn, is of another lifecycle
// or is not in the table leaves all as it is.
func (s State) Apply(m events.Meta, e events.Event) State {
	s.Fold(&m, e)
	return s
}

// Fold is Apply in place. The lists are shared with other copies, and are
// replaced, never changed.
func (s *State) Fold(m *events.Meta, e events.Event) {
	switch c := e.(type) { // in a switch: a claim is large, and is copied here only if it is one
	case events.SlotClaimed:
		*s = State{UID: c.UID}
		return
	}
	if _, _, _, ok := meaning(e); !ok || s.Check(e) != nil {
		return
	}
	switch e := e.(type) {
	case events.TurnRelayed:
		s.Pending = append(slices.Clip(s.Pending), Turn{ID: e.Turn, Goal: events.Boundary(e.Goal), Phase: Pending, RelayedAt: m.Time, Deadline: e.Deadline})
	case events.TurnYielded:
		s.end(e.Turn, func(t *Turn) {
			t.Phase, t.EndedAt, t.Status, t.To, t.Note, t.Fingerprint = Yielded, m.Time, e.Status, e.To, e.Note, m.Fingerprint
		})
	case events.TurnDropped:
		s.end(e.Turn, func(t *Turn) {
			t.Phase, t.EndedAt, t.Reason, t.Outcome, t.DownAt = Dropped, m.Time, e.Reason, e.Outcome, e.DownAt
		})
	}
}

// end moves a turn from the queue to those that ended.
func (s *State) end(id events.OperationID, how func(*Turn)) {
	i := slices.IndexFunc(s.Pending, func(t Turn) bool { return t.ID == id })
	t := s.Pending[i]
	how(&t)
	s.Pending = slices.Concat(s.Pending[:i], s.Pending[i+1:])
	s.Ended = append(slices.Clip(s.Ended), t)
	if n := len(s.Ended) - MaxEnded; n > 0 {
		s.Ended = slices.Clone(s.Ended[n:])
	}
}

// Result is what the goal of a turn ends with when the seat gave it back.
type Result struct {
	Status events.TurnStatus `json:"status"`
	To     events.Alias      `json:"to,omitempty"`
	Note   string            `json:"note,omitempty"`
}

// Verdict is how the goal of a turn ends: the state, and either why or with
// what. The state is empty while the turn waits.
func (t Turn) Verdict(name events.Alias) (events.GoalState, *fault.Error, json.RawMessage) {
	switch {
	case t.Phase == Yielded:
		b, err := json.Marshal(Result{t.Status, t.To, t.Note})
		if err != nil {
			return events.GoalFailed, fault.New(fault.Internal, "what the seat gave back can't be written as JSON").WithOutcome(fault.Executed), nil
		}
		return events.GoalSucceeded, nil, b
	case t.Phase != Dropped:
		return "", nil, nil
	case t.Reason == ReasonDeadline:
		facts := []string{"deadline", t.Deadline.UTC().Format(time.RFC3339)}
		if t.DownAt != nil {
			facts = append(facts, "agentDownAt", t.DownAt.UTC().Format(time.RFC3339))
		}
		return events.GoalFailed, fault.New(fault.DeadlineExceeded, "%s did not give the turn back before its deadline", name).WithOutcome(t.Outcome).WithDetail(DetailDeadline, facts...), nil
	case t.Reason == ReasonCancelled:
		return events.GoalCancelled, fault.New(fault.Cancelled, "the turn was cancelled").WithOutcome(t.Outcome), nil
	}
	if t.Reason == "retired" { // by a person
		return events.GoalCancelled, fault.New(fault.Cancelled, "%s was retired before it gave the turn back", name).WithOutcome(t.Outcome), nil
	}
	return events.GoalFailed, fault.New(fault.FailedPrecondition, "%s ended before it gave the turn back: %s", name, t.Reason).WithOutcome(t.Outcome), nil
}
