package drill

import (
	"container/heap"
	"slices"
	"time"

	"berth/events"
	"berth/events/fault"
)

// refusal is why the state does not allow the call at t, or nil.
func (m *Machine) refusal(t time.Time, e *env, c Call) *fault.Error {
	verb := events.Verb(c.Verb)
	if !slices.Contains(events.Verbs, verb) {
		return fault.New(fault.Unimplemented, "provider drill has no verb %q", events.Scrub(string(verb)))
	}
	if verb == events.VerbDestroy {
		return nil // the end is always allowed, also of what was never made
	}
	if verb == events.VerbReserve {
		return m.refuseReserve(t, e, c)
	}
	not := func(why string) *fault.Error {
		return fault.New(fault.FailedPrecondition, "environment %s can't %s: %s", e.ID, verb, why)
	}
	switch {
	case e.State == "" || e.Vanished:
		return fault.New(fault.NotFound, "there is no environment %s", e.ID)
	case e.State == events.StateAbsent:
		return fault.New(fault.Expired, "environment %s was destroyed", e.ID)
	}
	is := func(states ...events.ProviderState) bool { return slices.Contains(states, e.State) }
	ended := e.expired(t)
	switch verb {
	case events.VerbProvision:
		if !is(events.StateReserved) {
			return not("it is " + string(e.State) + ", not reserved")
		}
	case events.VerbStart:
		if !e.Provisioned || !is(events.StateCreating, events.StateStopped) || ended {
			return not("it is " + string(e.State) + expiredWord(ended))
		}
	case events.VerbPause:
		if !is(events.StateRunning) {
			return not("it is " + string(e.State) + ", not running")
		}
	case events.VerbResume:
		if !is(events.StatePaused) {
			return not("it is " + string(e.State) + ", not paused")
		}
	case events.VerbExtend:
		if c.Arguments.ExtendTo == nil {
			return fault.New(fault.BadRequest, "extend without extendTo")
		}
		if ended {
			return not("its lifetime is over")
		}
	case events.VerbStop:
	case events.VerbCheckpoint:
		return e.refuseCheckpoint(c)
	case events.VerbRestore:
		switch {
		case e.checkpoint(c.Arguments.CheckpointID) == nil:
			return fault.New(fault.NotFound, "environment %s has no such checkpoint", e.ID)
		case !is(events.StateRunning, events.StatePaused, events.StateStopped) || ended:
			return not("it is " + string(e.State) + expiredWord(ended))
		}
	case events.VerbExport, events.VerbDeleteFile:
		return m.refuseFile(e, c)
	}
	return nil
}

func expiredWord(ended bool) string {
	if ended {
		return " and its lifetime is over"
	}
	return ""
}

func (m *Machine) refuseReserve(t time.Time, e *env, c Call) *fault.Error {
	switch {
	case e.State == events.StateAbsent:
		return fault.New(fault.Expired, "environment %s was destroyed; its id is never used again", e.ID)
	case e.State != "":
		return fault.New(fault.AlreadyExists, "environment %s is already reserved by another operation", e.ID)
	case c.Expires != nil && !t.Before(*c.Expires):
		return fault.New(fault.FailedPrecondition, "environment %s would be over before it begins", e.ID)
	case len(m.s.Envs)-m.dead >= MaxEnvironments:
		return fault.New(fault.ResourceExhausted, "the provider holds %d environments, the most there can be", MaxEnvironments)
	}
	return nil
}

func (e *env) refuseCheckpoint(c Call) *fault.Error {
	id := c.Arguments.CheckpointID
	switch {
	case events.CheckText("checkpointId", id) != nil:
		return fault.New(fault.BadRequest, "checkpoint without a usable checkpointId")
	case e.checkpoint(id) != nil:
		return fault.New(fault.AlreadyExists, "environment %s already has that checkpoint", e.ID)
	case len(e.Checkpoints) >= MaxCheckpoints:
		return fault.New(fault.ResourceExhausted, "environment %s has %d checkpoints, the most there can be", e.ID, MaxCheckpoints)
	case !e.Provisioned:
		return fault.New(fault.FailedPrecondition, "environment %s can't checkpoint: it is %s", e.ID, e.State)
	}
	return nil
}

func (m *Machine) refuseFile(e *env, c Call) *fault.Error {
	a := c.Arguments
	if events.Verb(c.Verb) == events.VerbDeleteFile {
		if e.file(a.FileID) == nil {
			return fault.New(fault.NotFound, "environment %s has no such exported file", e.ID)
		}
		return nil
	}
	cp := e.checkpoint(a.CheckpointID)
	switch {
	case cp == nil:
		return fault.New(fault.NotFound, "environment %s has no such checkpoint", e.ID)
	case a.MaxBytes < 1:
		return fault.New(fault.BadRequest, "export needs maxBytes of at least 1 (R33)")
	case m.length(e.ID, cp.ID) > a.MaxBytes:
		return fault.New(fault.ResourceExhausted, "the checkpoint has %d bytes, more than maxBytes %d (R37)", m.length(e.ID, cp.ID), a.MaxBytes).
			WithHint("--max-bytes %d takes it", m.length(e.ID, cp.ID))
	case len(e.Files) >= MaxFiles:
		return fault.New(fault.ResourceExhausted, "environment %s has %d exported files, the most there can be", e.ID, MaxFiles)
	}
	return nil
}

// effect carries the call out; refusal has said that it may.
func (m *Machine) effect(t time.Time, e *env, c Call) events.Facts {
	var cp *events.Checkpoint
	var out *events.File
	switch events.Verb(c.Verb) {
	case events.VerbReserve:
		m.reserve(e, c)
	case events.VerbProvision:
		e.State, e.Provisioned = events.StateCreating, true
		m.bound(e, c)
	case events.VerbStart:
		e.State, e.StoppedAt, e.ExitCode = events.StateRunning, nil, nil
		m.bound(e, c)
		m.begin(t, e, c)
	case events.VerbPause:
		e.State = events.StatePaused
	case events.VerbResume:
		e.State = events.StateRunning
	case events.VerbExtend:
		m.extend(e, *c.Arguments.ExtendTo)
	case events.VerbCheckpoint:
		cp = m.capture(t, e, c.Arguments.CheckpointID)
	case events.VerbRestore:
		e.State, e.StoppedAt, e.ExitCode = events.StateRunning, nil, nil
		e.Incarnation++
	case events.VerbExport:
		out = m.export(e, c)
	case events.VerbDeleteFile:
		e.Files = slices.DeleteFunc(e.Files, func(f file) bool { return f.ID == c.Arguments.FileID })
	case events.VerbStop:
		e.stop(t)
	case events.VerbDestroy:
		m.destroy(e)
	}
	f := e.facts(t)
	f.Checkpoint, f.File = cp, out
	return f
}

func (m *Machine) reserve(e *env, c Call) {
	e.State, e.Alias, e.Incarnation, e.Network = events.StateReserved, c.Alias, 1, "drill"
	m.unbury(e)
	if c.Network != nil {
		e.Network = *c.Network
	}
	m.bound(e, c)
}

// bound sets the absolute end of an environment that has none yet.
func (m *Machine) bound(e *env, c Call) {
	if e.Expires == nil && c.Expires != nil {
		m.expiresAt(e, *c.Expires)
	}
}

func (m *Machine) expiresAt(e *env, at time.Time) {
	at = events.MillisUTC(at)
	e.Expires = &at
	heap.Push(&m.due, due{at: at, env: e.ID})
}

// extend raises the deadline by at most the step, and never lowers it. What
// has no deadline keeps none (R31).
func (m *Machine) extend(e *env, to time.Time) {
	if e.Expires == nil || !to.After(*e.Expires) {
		return
	}
	if most := e.Expires.Add(ExtendStepMs * time.Millisecond); to.After(most) {
		to = most
	}
	m.expiresAt(e, to)
}

func (e *env) stop(t time.Time) {
	if e.State == events.StateStopped {
		return
	}
	zero := 0
	e.State, e.StoppedAt, e.ExitCode = events.StateStopped, &t, &zero
}

// destroy leaves a tombstone: the operation ids, and the results that prove
// what had landed.
func (m *Machine) destroy(e *env) {
	buried := e.State == "" || e.State == events.StateAbsent
	*e = env{ID: e.ID, Alias: e.Alias, State: events.StateAbsent, Incarnation: e.Incarnation, Holder: e.Holder, Epochs: e.Epochs, Ops: e.Ops}
	for _, o := range e.Ops {
		if o.Facts != nil && o.Facts.Checkpoint == nil && o.Facts.File == nil {
			o.Facts = nil
		}
	}
	if !buried {
		m.bury(e)
	}
}
