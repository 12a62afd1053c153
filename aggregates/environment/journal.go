// Package environment is what a provider runs: the served record and the
// journal of operations (rules.md 2.7). It refuses any other mutation while
// one is open (law 2).
package environment

import (
	"slices"
	"time"

	"berth/aggregates/machine"
	"berth/events"
	"berth/events/fault"
)

// Phase is where one operation stands (decision 12).
type Phase string

// The phases of an operation; the last five are final except Uncertain.
const (
	NoOperation Phase = ""
	Planned     Phase = "planned"
	Dispatched  Phase = "dispatched"
	Uncertain   Phase = "uncertain"
	Confirmed   Phase = "confirmed"
	Refused     Phase = "refused"
	Landed      Phase = "landed"
	Excluded    Phase = "excluded"
	Cancelled   Phase = "cancelled"
)

// On is what may happen to an operation.
type On string

// The events of the journal's table.
const (
	OnPlan     On = "plan"
	OnDispatch On = "dispatch"
	OnConfirm  On = "confirm"
	OnRefuse   On = "refuse"
	OnLose     On = "lose"
	OnLand     On = "land"
	OnExclude  On = "exclude"
	OnCancel   On = "cancel"
)

// Table is the life of one operation.
var Table = machine.Table[Phase, On]{Name: "operation", Rows: []machine.Row[Phase, On]{
	{From: []Phase{NoOperation}, On: OnPlan, To: Planned, Guard: "queue not full"},
	{From: []Phase{NoOperation, Planned}, On: OnDispatch, To: Dispatched, Guard: "no other operation open"},
	{From: []Phase{Dispatched}, On: OnConfirm, To: Confirmed, Guard: "the answer, with facts"},
	{From: []Phase{Dispatched}, On: OnRefuse, To: Refused, Guard: "the answer: nothing executed"},
	{From: []Phase{Dispatched}, On: OnLose, To: Uncertain, Guard: "the answer was lost"},
	{From: []Phase{Uncertain}, On: OnLand, To: Landed, Guard: "proof, or the late answer"},
	{From: []Phase{Uncertain}, On: OnExclude, To: Excluded, Guard: "proof that it can never land"},
	{From: []Phase{Planned}, On: OnCancel, To: Cancelled, Guard: "never dispatched"},
}}

// Limits of the journal, per environment.
const (
	MaxQueue       = 16 // planned operations
	MaxDone        = 16 // finished operations kept with their results
	MaxCheckpoints = 32
)

// Operation is one entry of the journal.
type Operation struct {
	ID        events.OperationID
	Verb      events.Verb
	Arguments events.Arguments
	Goal      events.Boundary
	Phase     Phase
	At        time.Time // of the last change
	Begun     time.Time // when it was dispatched
	Deadline  time.Time // of the call
	Writer    events.Writer
	Fault     *fault.Error
	Facts     *events.Facts
	Stuck     bool
	File      *events.File // accepted export
}

// Open says that the operation may still have an effect.
func (o Operation) Open() bool { return o.Phase == Dispatched || o.Phase == Uncertain }

// Succeeded says that the operation is known to have been done.
func (o Operation) Succeeded() bool { return o.Phase == Confirmed || o.Phase == Landed }

// Meaning is what an event means to the journal, and to which operation; ok is
// false when it moves none.
func Meaning(e events.Event) (id events.OperationID, on On, ok bool) {
	switch e := e.(type) {
	case events.OperationPlanned:
		return e.Operation, OnPlan, true
	case events.OperationDispatched:
		return e.Operation, OnDispatch, true
	case events.OperationConfirmed:
		return e.Operation, OnConfirm, true
	case events.OperationRefused:
		return e.Operation, OnRefuse, true
	case events.OperationUncertain:
		return e.Operation, OnLose, true
	case events.OperationLanded:
		return e.Operation, OnLand, true
	case events.OperationExcluded:
		return e.Operation, OnExclude, true
	case events.OperationCancelled:
		return e.Operation, OnCancel, true
	}
	return "", "", false
}

// Check refuses an event that the journal's table does not allow now
// (failed-precondition) or of another environment (expired): above all, a dispatch while another operation is open
// (law 2), and an outcome of one that is not.
func (s *State) Check(e events.Event) error {
	if !s.Concerns(e) {
		return fault.New(fault.Expired, "%s is about another environment than %s", e.EventType(), s.ID)
	}
	return s.allow(e)
}

// allow is check of what is known to concern this environment.
func (s *State) allow(e events.Event) error {
	id, on, ok := Meaning(e)
	if !ok {
		return s.checkFile(e)
	}
	phase := NoOperation
	if op := s.entry(id); op != nil {
		phase = op.Phase
	}
	if _, legal := Table.Next(phase, on); !legal {
		return Table.Refuse(phase, on)
	}
	switch {
	case on == OnDispatch && s.Operation != nil:
		return fault.New(fault.FailedPrecondition, "operation %s (%s) is %s: nothing else is dispatched until it is proved", s.Operation.ID, s.Operation.Verb, s.Operation.Phase)
	case on == OnPlan && len(s.Queue) >= MaxQueue:
		return fault.New(fault.ResourceExhausted, "%d operations are waiting, which is the limit", MaxQueue)
	}
	return nil
}

// checkFile refuses a verdict on a file that is not waiting for one: the first
// stands.
func (s *State) checkFile(e events.Event) error {
	var id events.OperationID
	switch e := e.(type) {
	case events.FileAccepted:
		id = e.Operation
	case events.FileRejected:
		id = e.Operation
	default:
		return nil
	}
	if o, _ := s.find(id); o.Verb != events.VerbExport || !o.Succeeded() || o.File != nil || o.Fault != nil {
		return fault.New(fault.FailedPrecondition, "operation %s has no exported file that waits to be accepted", id)
	}
	return nil
}

// creates says that a verb makes the environment: refused, the life is over.
func creates(v events.Verb) bool {
	return v == events.VerbReserve || v == events.VerbProvision || v == events.VerbStart
}

// The functions below never write into a list that another state shares.

func clip[T any](l []T) []T { return slices.Clip(l) }

func (s *State) edit(id events.OperationID, f func(*Operation)) {
	if s.Operation != nil && s.Operation.ID == id {
		s.Operation = edited(s.Operation, f)
	}
}

func edited(o *Operation, f func(*Operation)) *Operation {
	n := *o
	f(&n)
	return &n
}

func editIn(l []*Operation, id events.OperationID, f func(*Operation)) []*Operation {
	l = slices.Clone(l)
	for i := range l {
		if l[i].ID == id {
			l[i] = edited(l[i], f)
		}
	}
	return l
}

func without(l []Operation, id events.OperationID) []Operation {
	var out []Operation
	for _, o := range l {
		if o.ID != id {
			out = append(out, o)
		}
	}
	return out
}

// keep adds a finished operation, and beyond MaxDone forgets the oldest of those
// that no goal waits for: a long extension alone has as many steps.
func keep(l []*Operation, o *Operation) []*Operation {
	drop := -1
	if len(l) >= MaxDone {
		drop = max(slices.IndexFunc(l, func(o *Operation) bool { return o.Goal == "" }), 0)
	}
	kept := make([]*Operation, 0, min(len(l)+1, MaxDone)) // exactly as large: there are many seats
	for i, was := range l {
		if i != drop {
			kept = append(kept, was)
		}
	}
	return append(kept, o)
}
