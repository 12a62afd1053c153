package environment

import (
	"slices"
	"time"

	"berth/events"
	"berth/events/fault"
)

// RecordState is the served record's state: four values and no others (R74).
type RecordState string

// The four states.
const (
	Creating RecordState = "creating"
	Running  RecordState = "running"
	Stopped  RecordState = "stopped"
	Failed   RecordState = "failed"
)

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
	Network     string
	Incarnation string
	// Incarnations counts the machines behind this environment, from 1.
	Incarnations int
	Paused       bool
	Provisioned  bool
	Started      bool // start was confirmed at least once
	Gone         bool // absence is proved: destroyed, or never created
	WrittenOff   bool
	ExpiresAt    *time.Time // observed at the provider (R30)
	StoppedAt    *time.Time
	ExitCode     *int
	Custody      *events.Custody
	ObservedAt   time.Time
	Refusal      *fault.Error // why the life ended before or during creation

	Operation   *Operation // the open one
	Queue       []Operation
	Done        []Operation // newest last
	Excluded    int         // how many creates were proved never to land
	Checkpoints []events.Checkpoint
}

// Reserved says that resources are held: from the claim until exit is proved
// or the environment is written off.
func (s State) Reserved() bool { return s.ID != "" && !s.Gone && !s.WrittenOff }

// Find is the operation of that id, open, queued or among the last done.
func (s State) Find(id events.OperationID) (Operation, bool) {
	if s.Operation != nil && s.Operation.ID == id {
		return *s.Operation, true
	}
	for _, l := range [][]Operation{s.Queue, s.Done} {
		for _, o := range l {
			if o.ID == id {
				return o, true
			}
		}
	}
	return Operation{}, false
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
		return s.Done[len(s.Done)-1], true
	}
	return Operation{}, false
}

// Apply folds one event.
func (s State) Apply(m events.Meta, e events.Event) State {
	switch e := e.(type) {
	case events.SlotClaimed:
		return State{ID: e.Environment, UID: e.UID, Plan: e.Plan, Target: e.Target, Deadline: e.Deadline, CreatedAt: m.Time, Record: Creating}
	case events.EnvironmentInherited:
		op := Operation{ID: e.Open.Operation, Verb: e.Open.Verb, Arguments: e.Open.Arguments, Phase: Uncertain, At: m.Time, Begun: m.Time, Deadline: e.Open.Deadline, Writer: m.Writer}
		s = State{ID: e.Environment, UID: e.UID, Plan: e.Plan, Target: events.TargetRetired, CreatedAt: m.Time, ProbedAt: m.Time, Record: Creating, Ref: e.Ref}
		if op.ID != "" {
			s.Operation = &op
		}
	case events.EnvironmentProbed:
		s.ProbedAt, s.Image, s.Capabilities, s.Network = e.ProbedAt, e.Image, e.Capabilities, e.Network
		s.Host, s.Architecture, s.Engine = e.Host, e.Architecture, e.Engine
	case events.EnvironmentRefused:
		s.Record, s.Refusal = Failed, e.Fault
	case events.TargetChanged:
		s.Target = e.Target
	case events.DeadlineChanged:
		s.Deadline = &e.Deadline
	case events.EnvironmentObserved:
		s = s.observe(e.Facts)
	case events.EnvironmentWrittenOff:
		s.WrittenOff, s.Operation, s.Queue = true, nil, nil
	default:
		s = s.applyOperation(m, e)
	}
	return s
}

func (s State) applyOperation(m events.Meta, e events.Event) State {
	switch e := e.(type) {
	case events.OperationPlanned:
		s.Queue = append(slices.Clip(s.Queue), Operation{ID: e.Operation, Verb: e.Verb, Arguments: e.Arguments, Goal: events.Boundary(e.Goal), Phase: Planned, At: m.Time})
	case events.OperationDispatched:
		s.Queue = without(s.Queue, e.Operation)
		s.Operation = &Operation{ID: e.Operation, Verb: e.Verb, Arguments: e.Arguments, Goal: events.Boundary(e.Goal), Phase: Dispatched, At: m.Time, Begun: m.Time, Deadline: e.Deadline, Writer: m.Writer}
	case events.OperationConfirmed:
		s = s.finish(m, e.Operation, Confirmed, &e.Facts, nil)
	case events.OperationLanded:
		s = s.finish(m, e.Operation, Landed, &e.Facts, nil)
	case events.OperationRefused:
		s = s.finish(m, e.Operation, Refused, nil, e.Fault)
	case events.OperationExcluded:
		s = s.finish(m, e.Operation, Excluded, nil, nil)
	case events.OperationUncertain:
		s = s.edit(e.Operation, func(o *Operation) { o.Phase, o.Fault, o.At = Uncertain, e.Fault, m.Time })
	case events.OperationStuck:
		s = s.edit(e.Operation, func(o *Operation) { o.Stuck = true })
	case events.OperationCancelled:
		for _, o := range s.Queue {
			if o.ID == e.Operation {
				o.Phase, o.At, o.Fault = Cancelled, m.Time, fault.New(fault.Cancelled, "%s", e.Reason)
				s.Done = keep(s.Done, o)
			}
		}
		s.Queue = without(s.Queue, e.Operation)
	case events.FileAccepted:
		s.Done = editIn(s.Done, e.Operation, func(o *Operation) { f := e.File; o.File = &f })
	case events.FileRejected:
		s.Done = editIn(s.Done, e.Operation, func(o *Operation) { o.Fault = e.Fault })
	}
	return s
}

// finish ends the open operation and takes in what it proves.
func (s State) finish(m events.Meta, id events.OperationID, p Phase, facts *events.Facts, why *fault.Error) State {
	if s.Operation == nil || s.Operation.ID != id {
		return s
	}
	op := *s.Operation
	op.Phase, op.At, op.Fault = p, m.Time, why
	if facts != nil {
		op.Facts = &events.Facts{State: facts.State, Checkpoint: facts.Checkpoint, File: facts.File, ExpiresAt: facts.ExpiresAt, ObservedAt: facts.ObservedAt}
	}
	s.Operation = nil
	s.Done = keep(s.Done, op)
	switch {
	case facts != nil:
		s = s.observe(*facts)
		s = s.landed(op, *facts)
	case p == Excluded:
		s.Excluded++
	case p == Refused && creates(op.Verb):
		s.Record, s.Refusal = Failed, why
	}
	if op.Verb == events.VerbReserve && p == Refused {
		s.Gone = true
	}
	return s
}

// landed takes in what a verb, known to be done, means.
func (s State) landed(op Operation, f events.Facts) State {
	switch op.Verb {
	case events.VerbReserve:
		s.Ref = f.Ref
	case events.VerbProvision:
		s.Provisioned = true
	case events.VerbStart:
		s.Started = true
	case events.VerbPause:
		s.Paused = true
	case events.VerbResume:
		s.Paused = false
	case events.VerbCheckpoint:
		if f.Checkpoint != nil && len(s.Checkpoints) < MaxCheckpoints {
			s.Checkpoints = append(slices.Clip(s.Checkpoints), *f.Checkpoint)
		}
	case events.VerbDestroy:
		s.Gone = true
	}
	return s
}

// observe takes in one observation (R64, R66: what is not reported stays).
func (s State) observe(f events.Facts) State {
	if f.Ref != "" {
		s.Ref = f.Ref // R63: it may change after a reconcile, the id never
	}
	if f.VolumeID != "" {
		s.VolumeID = f.VolumeID
	}
	if f.Network != "" && s.Network == "" {
		s.Network = f.Network // R23: never changed in place
	}
	if f.Incarnation != "" && f.Incarnation != s.Incarnation {
		s.Incarnation = f.Incarnation
		s.Incarnations++
	}
	if f.Custody != nil {
		s.Custody = f.Custody
	}
	s.ObservedAt = f.ObservedAt
	switch f.State {
	case events.StateRunning:
		s.Record, s.Paused, s.ExpiresAt = Running, false, f.ExpiresAt
	case events.StatePaused:
		s.Record, s.Paused, s.ExpiresAt = Running, true, f.ExpiresAt
	case events.StateStopped:
		s.Record, s.Paused, s.StoppedAt, s.ExitCode = Stopped, false, f.StoppedAt, f.ExitCode
	case events.StateFailed:
		s.Record = Failed
	case events.StateAbsent:
		s.Gone = true
		if s.StoppedAt == nil && f.StoppedAt != nil {
			s.StoppedAt = f.StoppedAt
		}
		if s.Record == Running {
			s.Record = Stopped
			if s.StoppedAt == nil {
				at := f.ObservedAt
				s.StoppedAt = &at // absence is a proof of stop (R67)
			}
		}
	}
	return s
}

func creates(v events.Verb) bool {
	return v == events.VerbReserve || v == events.VerbProvision || v == events.VerbStart
}

func (s State) edit(id events.OperationID, f func(*Operation)) State {
	if s.Operation != nil && s.Operation.ID == id {
		op := *s.Operation
		f(&op)
		s.Operation = &op
	}
	return s
}

func editIn(l []Operation, id events.OperationID, f func(*Operation)) []Operation {
	l = slices.Clone(l)
	for i := range l {
		if l[i].ID == id {
			f(&l[i])
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

func keep(l []Operation, o Operation) []Operation {
	l = append(slices.Clip(l), o)
	if n := len(l) - MaxDone; n > 0 {
		l = slices.Clone(l[n:])
	}
	return l
}
