package aggregates

import (
	"time"

	"berth/aggregates/environment"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/fault"
)

// Plan queues a mutation of a running seat. It is dispatched when nothing
// else is open. Refusals are typed and before any effect (R7, R9, R26, R89).
func (s Seat) Plan(e events.OperationPlanned, now time.Time) ([]events.Event, error) {
	if err := s.held(); err != nil {
		return nil, err
	}
	env := s.Environment
	if o, ok := env.Find(e.Operation); ok {
		if o.Verb != e.Verb {
			return nil, fault.New(fault.Conflict, "operation %s was used for %s", e.Operation, o.Verb)
		}
		return nil, nil
	}
	if s.Slot.Phase != slot.Active || env.Gone {
		return nil, fault.New(fault.FailedPrecondition, "%s is %s: %s needs a running environment", s.Alias, s.Status(), e.Verb)
	}
	if len(env.Queue) >= environment.MaxQueue {
		return nil, fault.New(fault.ResourceExhausted, "%s has %d operations waiting, which is the limit", s.Alias, environment.MaxQueue)
	}
	if err := s.able(e, now); err != nil {
		return nil, err
	}
	e.Environment = env.ID
	return []events.Event{e}, nil
}

// able checks state and capability for one verb.
func (s Seat) able(e events.OperationPlanned, now time.Time) error {
	env, caps := s.Environment, s.Environment.Capabilities
	no := func(what string) error {
		return fault.New(fault.Unimplemented, "%s can't be %s: provider %s does not have that capability for it", s.Alias, what, env.Plan.Provider)
	}
	wrong := func(want string) error {
		f := fault.New(fault.FailedPrecondition, "%s is %s: %s needs it to be %s", s.Alias, s.Status(), e.Verb, want)
		if s.Status() == StatusPaused && want == "running" && e.Verb != events.VerbPause {
			return f.WithHint("`berth resume %s` lets it go on", s.Alias)
		}
		return f.WithHint("`berth inspect %s --explain` says what may be done", s.Alias)
	}
	running := env.Record == environment.Running
	switch e.Verb {
	case events.VerbPause:
		switch {
		case !caps.PauseKeepsMemory:
			return no("paused") // R9
		case !running || s.pausing():
			return wrong("running")
		}
	case events.VerbResume:
		if !running || !s.pausing() {
			return wrong("paused")
		}
	case events.VerbExtend:
		return s.extendable(e, now)
	case events.VerbCheckpoint:
		switch {
		case !caps.ColdCheckpoint && !caps.MemoryCheckpoint:
			return no("checkpointed")
		case len(env.Checkpoints)+s.pending(events.VerbCheckpoint) >= environment.MaxCheckpoints:
			return fault.New(fault.ResourceExhausted, "%s has %d checkpoints, which is the limit", s.Alias, environment.MaxCheckpoints)
		}
	case events.VerbRestore:
		return s.restorable(e, now)
	case events.VerbExport:
		switch {
		case !caps.Export:
			return no("exported")
		case e.Arguments.MaxBytes <= 0:
			return fault.New(fault.BadRequest, "an export needs a largest size in bytes, above zero") // R33, R37
		case !s.hasCheckpoint(e.Arguments.CheckpointID):
			return fault.New(fault.NotFound, "%s has no checkpoint %q", s.Alias, e.Arguments.CheckpointID)
		}
	default:
		return fault.New(fault.BadRequest, "%s is not something that can be asked for", e.Verb)
	}
	return nil
}

// restorable says that the seat can be put back to that checkpoint: it runs, is
// paused or has ended, and its lifetime is not over. It keeps its identity and
// its deadline, and runs again with the launch that it was started with. A
// hand-off is taken once (H6), so that a delegated seat has no second start.
func (s Seat) restorable(e events.OperationPlanned, now time.Time) error {
	env, id := s.Environment, e.Arguments.CheckpointID
	switch {
	case !env.Capabilities.Snapshot:
		return fault.New(fault.Unimplemented, "%s can't be restored: provider %s does not have that capability for it", s.Alias, env.Plan.Provider)
	case env.Plan.Delegated:
		return fault.New(fault.FailedPrecondition, "%s is delegated: its hand-off was taken once, and it can't be started again", s.Alias)
	case env.Record != environment.Running && env.Record != environment.Stopped:
		return fault.New(fault.FailedPrecondition, "%s is %s: restore needs it to run, to be paused or to have ended", s.Alias, s.Status())
	case id == "" || !s.hasCheckpoint(id):
		return fault.New(fault.NotFound, "%s has no checkpoint %q", s.Alias, id).WithHint("`berth inspect %s` lists its checkpoints", s.Alias)
	case lifeOver(env, now):
		return fault.New(fault.Expired, "the lifetime of %s is over", s.Alias)
	}
	return nil
}

// coming is every operation that is open or waits, in the order of execution.
func (s Seat) coming() []environment.Operation {
	var out []environment.Operation
	if op := s.Environment.Operation; op != nil {
		out = append(out, *op)
	}
	return append(out, s.Environment.Queue...)
}

// pausing says that the seat is paused, or will be when its queue is done.
func (s Seat) pausing() bool {
	paused := s.Environment.Paused
	for _, o := range s.coming() {
		switch o.Verb {
		case events.VerbPause:
			paused = true
		case events.VerbResume, events.VerbRestore:
			paused = false
		}
	}
	return paused
}

// pending counts the operations of a verb that are open or wait.
func (s Seat) pending(v events.Verb) int {
	n := 0
	for _, o := range s.coming() {
		if o.Verb == v {
			n++
		}
	}
	return n
}

// hasCheckpoint says that an operation can read that checkpoint: it is kept, or
// will be by the time. No id is the newest state.
func (s Seat) hasCheckpoint(id string) bool {
	for _, c := range s.Environment.Checkpoints {
		if c.ID == id {
			return true
		}
	}
	for _, o := range s.coming() {
		if o.Verb == events.VerbCheckpoint && o.Arguments.CheckpointID == id {
			return true
		}
	}
	return id == ""
}

// lifetime is the deadline that stands, or will when every extension that was
// asked for is done; nil if there is none at all.
func (s Seat) lifetime() *time.Time {
	env := s.Environment
	at := env.Deadline
	if at == nil {
		at = env.ExpiresAt
	}
	if at == nil {
		return nil
	}
	for _, o := range s.coming() {
		// A step that is on its way says in Wanted what it is a step to.
		for _, to := range []*time.Time{o.Arguments.ExtendTo, o.Arguments.Wanted} {
			if o.Verb == events.VerbExtend && to != nil && to.After(*at) {
				at = to
			}
		}
	}
	return at
}

// lifeOver says that the lifetime has ended, by the manager's deadline or by
// the one that the provider shows.
func lifeOver(env environment.State, now time.Time) bool {
	return env.Deadline != nil && !now.Before(*env.Deadline) || env.ExpiresAt != nil && !now.Before(*env.ExpiresAt)
}

// extendable keeps R26 and scenarios 30 and 31: an extension never shortens a
// life, also not one that is queued behind a longer one, and a life that is
// over is not extended.
func (s Seat) extendable(e events.OperationPlanned, now time.Time) error {
	env := s.Environment
	until := s.lifetime()
	switch {
	case env.Capabilities.Extend.StepMs == 0:
		return fault.New(fault.Unimplemented, "%s can't be extended: provider %s does not have that capability for it", s.Alias, env.Plan.Provider)
	case e.Arguments.ExtendTo == nil:
		return fault.New(fault.BadRequest, "extend needs a deadline")
	case until == nil:
		return fault.New(fault.FailedPrecondition, "%s has no deadline to extend", s.Alias)
	case lifeOver(env, now):
		return fault.New(fault.Expired, "the lifetime of %s is over", s.Alias)
	case env.Record == environment.Stopped || env.Record == environment.Failed:
		return fault.New(fault.FailedPrecondition, "%s is %s: there is no life to extend", s.Alias, s.Status())
	case !e.Arguments.ExtendTo.After(*until):
		return fault.New(fault.FailedPrecondition, "%s already lives until %s: an extension never shortens a life", s.Alias, until.Format(time.RFC3339))
	}
	return nil
}
