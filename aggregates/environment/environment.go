package environment

import (
	"slices"
	"time"

	"berth/aggregates/machine"
	"berth/events"
	"berth/events/fault"
)

// RecordState is the served record's state: four values and no others (R74).
type RecordState string

// The four states.
const (
	None     RecordState = "" // no environment yet
	Creating RecordState = "creating"
	Running  RecordState = "running"
	Stopped  RecordState = "stopped"
	Failed   RecordState = "failed"
)

// RecordOn is what may be seen of an environment.
type RecordOn string

// The events of the record's table.
const (
	OnClaim   RecordOn = "claim"
	OnRunning RecordOn = "observe-running"
	OnStopped RecordOn = "observe-stopped"
	OnFailed  RecordOn = "observe-failed"
	OnAbsent  RecordOn = "observe-absent"
	OnReplace RecordOn = "observe-replaced" // running, as another machine
	OnRefusal RecordOn = "refuse"           // creation is refused or given up
)

// RecordTable is the served record (rules.md 2.7): four states and no others
// (R74). An observation that is not in it changes the facts and not the state.
var RecordTable = machine.Table[RecordState, RecordOn]{Name: "record", Rows: []machine.Row[RecordState, RecordOn]{
	{From: []RecordState{None, Creating, Running, Stopped, Failed}, On: OnClaim, To: Creating, Guard: "a fresh environment id"},
	{From: []RecordState{Creating, Running}, On: OnRunning, To: Running, Guard: "facts for the recorded reference; paused is running"},
	{From: []RecordState{Creating, Running, Stopped, Failed}, On: OnStopped, To: Stopped, Guard: "a proved stop (R67)"},
	{From: []RecordState{Creating, Running}, On: OnFailed, To: Failed, Guard: "the provider says so"},
	{From: []RecordState{Running}, On: OnAbsent, To: Stopped, Guard: "absence is a proof of exit (R67)"},
	{From: []RecordState{Creating, Running, Stopped, Failed}, On: OnReplace, To: Running, Guard: "another incarnation (scenario 58)"},
	{From: []RecordState{Creating, Running, Stopped, Failed}, On: OnRefusal, To: Failed, Guard: "nothing more is created"},
}}

// State is the environment as folded. The zero value is none.
type State struct {
	ID           events.EnvironmentID
	UID          events.UID
	Plan         events.Plan
	Target       events.Target
	Deadline     *time.Time // absolute end of life that was accepted
	CreatedAt    time.Time
	ProbedAt     time.Time // zero: not probed
	Image        events.ImageDescription
	Capabilities events.Capabilities
	Host         string
	Architecture string
	Engine       string

	Record      RecordState
	Ref         string // bound only by an authenticated answer (R92)
	VolumeID    string
	Network     string // as resolved for the plan; it never changes (R23)
	Drift       string // the network that was last observed, while it is another one (R25)
	Incarnation string
	// Incarnations counts the machines behind this environment, from 1.
	Incarnations int
	// Restores counts how often it was put back to a checkpoint of its own:
	// each is an incarnation that was asked for.
	Restores    int
	Paused      bool
	Provisioned bool
	Started     bool // start was confirmed at least once
	Gone        bool // absence is proved: destroyed, or never created
	WrittenOff  bool
	ExpiresAt   *time.Time // observed at the provider (R30)
	StoppedAt   *time.Time
	ExitCode    *int
	Ready       *events.Readiness // as the seat last showed it; nil: it has not
	Custody     *events.Custody
	ObservedAt  time.Time
	Refusal     *fault.Error // why the life ended before or during creation

	Operation   *Operation // the open one
	Queue       []Operation
	Done        []*Operation // newest last; never changed, only replaced
	Excluded    int          // how many creations were proved never to land
	Throttled   int          // how many creations the provider put off
	Checkpoints []events.Checkpoint
}

// DetailThrottled is the kind of detail by which a provider asks to be called
// again later (fact retryAfter, a Go duration): nothing is wrong with the
// request, and nothing was executed.
const DetailThrottled = "berth.throttled"

func throttled(e *fault.Error) bool {
	return e != nil && slices.ContainsFunc(e.Details, func(d fault.Detail) bool { return d.Kind == DetailThrottled })
}

// AwaitsSign says that the plan's connector has to show that it is ready, and
// has not yet.
func (s *State) AwaitsSign() bool { return s.Ready == nil && s.Plan.Sign() != nil }

// Reserved says that resources are held: from the claim until exit is proved
// or the environment is written off.
func (s State) Reserved() bool { return s.ID != "" && !s.Gone && !s.WrittenOff }

// Find is the operation of that id, open, queued or among the last done.
func (s State) Find(id events.OperationID) (Operation, bool) { return s.find(id) }

func (s *State) find(id events.OperationID) (Operation, bool) {
	if o := s.entry(id); o != nil {
		return *o, true
	}
	return Operation{}, false
}

// entry is the operation of that id where the journal has it, or nil.
func (s *State) entry(id events.OperationID) *Operation {
	if s.Operation != nil && s.Operation.ID == id {
		return s.Operation
	}
	for i := range s.Queue {
		if s.Queue[i].ID == id {
			return &s.Queue[i]
		}
	}
	for _, o := range s.Done {
		if o.ID == id {
			return o
		}
	}
	return nil
}

// Outcome is the operation of that id, or, for an extension that is done in
// bounded steps, the newest step towards the same end (R29): only that one
// says whether what was asked for is done. A step that was proved never to
// have happened is followed by another try of it.
func (s State) Outcome(id events.OperationID) (Operation, bool) {
	op, ok := s.Find(id)
	if !ok || op.Verb != events.VerbExtend || !op.Succeeded() && op.Phase != Excluded || op.Arguments.Wanted == nil {
		return op, ok
	}
	wanted := *op.Arguments.Wanted
	if op.Succeeded() && s.Deadline != nil && !s.Deadline.Before(wanted) {
		return op, true
	}
	var steps []Operation
	for _, o := range s.Done {
		steps = append(steps, *o)
	}
	steps = append(steps, s.Queue...)
	if s.Operation != nil {
		steps = append(steps, *s.Operation)
	}
	for _, o := range steps {
		if o.Verb == events.VerbExtend && !o.At.Before(op.At) && towards(o, wanted) {
			op = o
		}
	}
	return op, true
}

// Unmoved is how many steps towards that deadline were proved never to have
// happened since one of them was done, as far as the journal keeps them.
func (s State) Unmoved(wanted time.Time) int {
	n := 0
	for _, o := range slices.Backward(s.Done) {
		switch {
		case o.Verb != events.VerbExtend || !towards(*o, wanted):
		case o.Phase != Excluded:
			return n
		default:
			n++
		}
	}
	return n
}

// towards says that a step of an extension, planned or dispatched, leads to
// that deadline in the end.
func towards(o Operation, wanted time.Time) bool {
	end := o.Arguments.Wanted
	if end == nil {
		end = o.Arguments.ExtendTo
	}
	return end != nil && end.Equal(wanted)
}

// Last is the operation that a reader wants to see: the open one, else the
// next in the queue, else the last done.
func (s State) Last() (Operation, bool) {
	switch {
	case s.Operation != nil:
		return *s.Operation, true
	case len(s.Queue) > 0:
		return s.Queue[0], true
	case len(s.Done) > 0:
		return *s.Done[len(s.Done)-1], true
	}
	return Operation{}, false
}
