package environment

import (
	"berth/events"
	"berth/events/fault"
)

// Concerns says that an event does not name another environment: one of an
// earlier life of the name changes nothing.
func (s *State) Concerns(e events.Event) bool {
	var id events.EnvironmentID
	switch e := e.(type) {
	case events.EnvironmentProbed:
		id = e.Environment
	case events.EnvironmentRefused:
		id = e.Environment
	case events.TargetChanged:
		id = e.Environment
	case events.DeadlineChanged:
		id = e.Environment
	case events.EnvironmentObserved:
		id = e.Environment
	case events.EnvironmentWrittenOff:
		id = e.Environment
	case events.OperationPlanned:
		id = e.Environment
	case events.OperationDispatched:
		id = e.Environment
	case events.SlotRetired:
		return e.UID == s.UID
	default:
		return true // an outcome is bound to its operation's id
	}
	return id == s.ID && s.ID != ""
}

// Apply folds one event. What does not concern this environment, or what the
// journal's table does not allow, leaves it as it is.
func (s State) Apply(m events.Meta, e events.Event) State {
	s.Fold(&m, e)
	return s
}

// Fold is Apply in place, for whoever has the only copy of s: the state is
// large, and most of a fold's time would go into copying it. What s points to
// is shared with other copies, and is replaced, never changed.
func (s *State) Fold(m *events.Meta, e events.Event) {
	if s.Concerns(e) {
		s.Take(m, e)
	}
}

// Take is Fold of an event that Concerns this environment, as is known already.
func (s *State) Take(m *events.Meta, e events.Event) {
	switch e := e.(type) {
	case events.SlotClaimed:
		to, _ := RecordTable.Next(s.Record, OnClaim)
		*s = State{ID: e.Environment, UID: e.UID, Plan: e.Plan, Target: e.Target, Deadline: e.Deadline, CreatedAt: m.Time, Record: to}
	case events.EnvironmentInherited:
		*s = inherited(m, e)
	case events.EnvironmentProbed:
		s.ProbedAt, s.Image, s.Capabilities, s.Network = e.ProbedAt, e.Image, e.Capabilities, e.Network
		s.Host, s.Architecture, s.Engine = e.Host, e.Architecture, e.Engine
	case events.EnvironmentRefused:
		s.refuse(e.Fault)
	case events.TargetChanged:
		s.Target = e.Target
	case events.DeadlineChanged:
		if s.Deadline == nil || e.Deadline.After(*s.Deadline) { // scenario 31
			s.Deadline = &e.Deadline
		}
	case events.EnvironmentObserved:
		s.observe(&e.Facts)
	case events.EnvironmentWrittenOff:
		s.WrittenOff, s.Operation, s.Queue = true, nil, nil
	case events.SlotRetired:
		// The slot is retired on proof only: what has no reference by now was
		// never created, and holds nothing any more.
		s.Gone = true
	default:
		s.journal(m, e)
	}
}

// inherited is a written-off environment on its own boundary (decision 13).
func inherited(m *events.Meta, e events.EnvironmentInherited) State {
	s := State{ID: e.Environment, UID: e.UID, Plan: e.Plan, Target: events.TargetRetired, CreatedAt: m.Time, ProbedAt: m.Time, Record: Creating, Ref: e.Ref}
	if o := e.Open; o.Operation != "" {
		s.Operation = &Operation{ID: o.Operation, Verb: o.Verb, Arguments: o.Arguments, Phase: Uncertain, At: m.Time, Begun: m.Time, Deadline: o.Deadline, Writer: m.Writer}
	}
	return s
}

// journal folds an event of one operation.
func (s *State) journal(m *events.Meta, e events.Event) {
	if s.allow(e) != nil {
		return
	}
	switch e := e.(type) {
	case events.OperationPlanned:
		s.Queue = append(clip(s.Queue), Operation{ID: e.Operation, Verb: e.Verb, Arguments: e.Arguments, Goal: events.Boundary(e.Goal), Phase: Planned, At: m.Time})
	case events.OperationDispatched:
		s.Queue = without(s.Queue, e.Operation)
		s.Operation = &Operation{ID: e.Operation, Verb: e.Verb, Arguments: e.Arguments, Goal: events.Boundary(e.Goal), Phase: Dispatched, At: m.Time, Begun: m.Time, Deadline: e.Deadline, Writer: m.Writer}
	case events.OperationConfirmed:
		s.finish(m, Confirmed, &e.Facts, nil)
	case events.OperationLanded:
		s.finish(m, Landed, &e.Facts, nil)
	case events.OperationRefused:
		s.finish(m, Refused, nil, e.Fault)
	case events.OperationExcluded:
		s.finish(m, Excluded, nil, nil)
	case events.OperationUncertain:
		s.edit(e.Operation, func(o *Operation) { o.Phase, o.Fault, o.At = Uncertain, e.Fault, m.Time })
	case events.OperationStuck:
		s.edit(e.Operation, func(o *Operation) { o.Stuck = true })
	case events.OperationCancelled:
		o, _ := s.find(e.Operation)
		o.Phase, o.At, o.Fault = Cancelled, m.Time, fault.New(fault.Cancelled, "%s", e.Reason)
		s.Done = keep(s.Done, &o)
		s.Queue = without(s.Queue, e.Operation)
	case events.FileAccepted:
		s.Done = editIn(s.Done, e.Operation, func(o *Operation) { f := e.File; o.File = &f })
	case events.FileRejected:
		s.Done = editIn(s.Done, e.Operation, func(o *Operation) { o.Fault = e.Fault })
	}
}

// finish ends the open operation and takes in what it proves.
func (s *State) finish(m *events.Meta, p Phase, facts *events.Facts, why *fault.Error) {
	op := *s.Operation
	op.Phase, op.At, op.Fault = p, m.Time, why
	if facts != nil {
		op.Facts = result(facts)
	}
	s.Operation = nil
	s.Done = keep(s.Done, &op)
	switch {
	case facts != nil:
		s.observe(facts)
		s.landed(op.Verb, facts)
	case p == Excluded && creates(op.Verb):
		s.Excluded++
	case p == Refused && creates(op.Verb) && throttled(why):
		s.Throttled++
	case p == Refused && creates(op.Verb):
		s.refuse(why)
		s.Gone = s.Gone || op.Verb == events.VerbReserve // nothing was made, and nothing will be
	}
}

func (s *State) refuse(why *fault.Error) {
	s.Record, _ = RecordTable.Next(s.Record, OnRefusal)
	s.Refusal, s.Paused = why, false
}

// result is what a finished operation keeps of its facts: what a reader may
// ask that operation for. Everything else is the environment's own state.
func result(f *events.Facts) *events.Facts {
	if f.Checkpoint == nil && f.File == nil {
		return nil
	}
	return &events.Facts{State: f.State, Checkpoint: f.Checkpoint, File: f.File, ObservedAt: f.ObservedAt}
}

// landed takes in what a verb, known to be done, means.
func (s *State) landed(v events.Verb, f *events.Facts) {
	switch v {
	case events.VerbProvision:
		s.Provisioned = true
	case events.VerbStart:
		s.Started = true
	case events.VerbPause:
		s.Paused = s.Record == Running
	case events.VerbResume:
		s.Paused = false
	case events.VerbCheckpoint:
		if f.Checkpoint != nil && len(s.Checkpoints) < MaxCheckpoints {
			s.Checkpoints = append(clip(s.Checkpoints), *f.Checkpoint)
		}
	case events.VerbRestore:
		s.Restores++
	case events.VerbDestroy:
		s.absent(f)
	}
}

// observe takes in one observation (R64, R66: what is not reported stays). One
// of an environment that is proved gone comes too late to change anything.
func (s *State) observe(f *events.Facts) {
	if s.Gone || s.WrittenOff {
		return
	}
	if f.Ref != "" {
		s.Ref = f.Ref // R63: it may change after a reconcile, the id never
	}
	if f.VolumeID != "" {
		s.VolumeID = f.VolumeID
	}
	if f.Network != "" {
		s.Drift = ""
		if s.Network == "" {
			s.Network = f.Network // R23: never changed in place
		} else if f.Network != s.Network {
			s.Drift = f.Network // R25: told, and not taken over
		}
	}
	on := s.seen(f)
	if f.Incarnation != "" && f.Incarnation != s.Incarnation {
		s.Incarnation = f.Incarnation
		s.Incarnations++
	}
	if f.Custody != nil {
		s.Custody = f.Custody
	}
	if f.Ready != nil {
		s.Ready = f.Ready
	}
	s.ObservedAt = f.ObservedAt
	if reportsExpiry(f.State) {
		s.ExpiresAt = f.ExpiresAt // R31, R68: null is "no deadline"
	}
	if f.State == events.StateAbsent {
		s.absent(f)
		return
	}
	to, ok := RecordTable.Next(s.Record, on)
	if !ok {
		return
	}
	s.Record, s.Paused = to, f.State == events.StatePaused
	switch to {
	case Running:
		s.StoppedAt, s.ExitCode = nil, nil
	case Stopped:
		s.StoppedAt, s.ExitCode = f.StoppedAt, f.ExitCode
	}
}

// absent takes in the proof that nothing is left.
func (s *State) absent(f *events.Facts) {
	s.Gone, s.Paused = true, false
	if s.StoppedAt == nil {
		s.StoppedAt = f.StoppedAt
	}
	if s.Record == Running && s.StoppedAt == nil {
		at := f.ObservedAt
		s.StoppedAt = &at // absence is a proof of stop (R67)
	}
	s.Record, _ = RecordTable.Next(s.Record, OnAbsent)
}

// sees is what a provider's state means to the record; the others mean nothing.
func sees(p events.ProviderState) RecordOn {
	switch p {
	case events.StateRunning, events.StatePaused:
		return OnRunning
	case events.StateStopped:
		return OnStopped
	case events.StateFailed:
		return OnFailed
	case events.StateAbsent:
		return OnAbsent
	}
	return ""
}

func reportsExpiry(p events.ProviderState) bool {
	switch p {
	case events.StateReserved, events.StateCreating, events.StateRunning, events.StatePaused:
		return true
	}
	return false
}
