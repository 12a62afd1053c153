// Package environment is what a provider runs: the served record and the
// journal of operations (rules.md 2.7). It refuses any other mutation while
// one is open (law 2).
package environment

import (
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
