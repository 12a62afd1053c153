package explore

import (
	"berth/aggregates/environment"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// provider is what a call may come to, and what an environment does by itself.
func (m *mover) provider(n int) {
	if c := m.w.lives[n].call; c != nil {
		m.call(n, c)
	}
	m.itself(n)
}

// call is what may become of an open call.
func (m *mover) call(n int, c *call) {
	if !c.landed && !c.fenced {
		m.try(string(c.verb)+" lands", func(w *world) error { return w.land(n) })
		if c.verb == events.VerbExport {
			m.faulty("export lands, with a file that is not what is answered", func(w *world) error { w.edit(n).broken = true; return w.land(n) })
		}
	}
	if c.asker == nobody || c.asker == sleeps && m.w.record(n) != m.w.seat {
		return
	}
	said := "the answer"
	if c.asker == sleeps {
		said = "the answer to the stalled manager"
	}
	if c.landed {
		m.try(said+": done", func(w *world) error { return w.answer(n, providers.DoneWith(w.result(n))) })
	} else {
		refuse := func(why *fault.Error) func(*world) error {
			return func(w *world) error {
				w.edit(n).call.fenced = true
				return w.answer(n, providers.RefusedWith(why.WithOutcome(fault.NotExecuted)))
			}
		}
		if to, err := m.w.effect(n); err == nil && to == "" {
			m.try(said+": refused, it is not possible", refuse(fault.New(fault.FailedPrecondition, "not possible"))) // the only true answer
		}
		m.faulty(said+": refused for good", refuse(fault.New(fault.Unimplemented, "no")))
		m.faulty(said+": refused for now", refuse(fault.New(fault.ResourceExhausted, "busy").WithDetail(environment.DetailThrottled)))
	}
	if op := m.w.record(n).Environment.Operation; op != nil && op.Phase == environment.Dispatched {
		m.faulty("the answer is lost", func(w *world) error {
			return w.answer(n, providers.UnknownWith(fault.New(fault.DeadlineExceeded, "no answer")))
		})
	}
}

// answer brings an answer to whoever waits for it. One that was lost may still
// come late (scenario 6).
func (w *world) answer(n int, o providers.Outcome) error {
	c := w.lives[n].call
	heir := w.lives[n].heir != nil
	seat := *w.record(n)
	by := w.self
	if c.asker == sleeps {
		seat, by = *w.sleep.seen, w.sleep.self
	}
	es := w.r.Outcome(seat, c.id, o, w.fresh())
	if o.Kind == providers.Unknown && len(es) > 0 {
		if _, ok := es[0].(events.OperationUncertain); !ok {
			return w.broken("R32, E8", "a lost answer is recorded as %s", es[0].EventType())
		}
		w.r.checks["R32, E8"]++
	}
	if c.asker == sleeps {
		err := w.commit(n, heir, by, seat.Sequence, es...)
		return w.fenced(err)
	}
	if o.Kind != providers.Unknown {
		w.edit(n).call.asker = nobody
	}
	t := w.memory(n, heir)
	t.InFlight, t.Next = false, start
	if err := w.add(n, heir, es...); err != nil {
		return err
	}
	e := w.record(n).Environment
	switch {
	case o.Kind == providers.Unknown:
		w.again(t)
		t.Count = 0
	case o.Kind == providers.Refused && repeats(c.verb), c.verb == events.VerbStop && (e.Record == environment.Running || e.Started && e.Record == environment.Creating):
		w.again(t)
	default:
		t.Count = 0
	}
	return w.settledOnce(n, c.id)
}

// settledOnce says that an answer for what is settled decides nothing.
func (w *world) settledOnce(n int, id events.OperationID) error {
	s := *w.record(n)
	if op := s.Environment.Operation; op != nil && op.ID == id {
		return nil
	}
	for _, o := range []providers.Outcome{providers.DoneWith(w.facts(w.lives[n])), providers.RefusedWith(fault.New(fault.Unimplemented, "no"))} {
		if es := w.r.Outcome(s, id, o, w.fresh()); len(es) > 0 {
			return w.broken("scenario 6", "a second answer is recorded as %s", es[0].EventType())
		}
	}
	w.r.checks["scenario 6"]++
	return nil
}

// repeats says that the kernel asks for the verb again until it is done.
func repeats(v events.Verb) bool {
	switch v {
	case events.VerbReserve, events.VerbProvision, events.VerbStart, events.VerbStop, events.VerbDestroy:
		return true
	}
	return false
}

// itself is what an environment does by itself.
func (m *mover) itself(n int) {
	l := m.w.lives[n]
	if m.w.left.Changes == 0 || !l.exists() {
		return
	}
	change := func(name string, to events.ProviderState, machine int) {
		m.try(name, func(w *world) error {
			w.left.Changes--
			l := w.edit(n)
			l.truth, l.machine = to, l.machine+machine
			l.ran = l.ran || to == events.StateRunning
			if l.heir == nil && l.seat == nil {
				w.try.Observe = true
			}
			return nil
		})
	}
	change("the environment vanishes", events.StateAbsent, 0)
	switch l.truth {
	case events.StateRunning, events.StatePaused:
		change("the seat exits", events.StateStopped, 0)
		change("the environment fails", events.StateFailed, 0)
		change("the machine is replaced", events.StateRunning, 1)
	case events.StateCreating:
		change("the environment fails before it runs", events.StateFailed, 0)
		change("the environment starts by itself", events.StateRunning, 0)
		change("the machine is replaced before it runs", events.StateCreating, 1)
	case events.StateFailed:
		change("what failed is stopped", events.StateStopped, 0)
		change("the environment runs again, as another machine", events.StateRunning, 1)
	case events.StateStopped:
		change("the environment runs again, as another machine", events.StateRunning, 1)
	}
}

// land is the effect of the open call, once.
func (w *world) land(n int) error {
	to, err := w.effect(n)
	if err != nil {
		return err
	}
	if to == "" {
		return errNotNow
	}
	l := w.edit(n)
	c := l.call
	switch c.verb {
	case events.VerbExtend:
		if c.args.ExtendTo.Before(l.expires) {
			return w.broken("scenario 31", "an extension shortens a life")
		}
		w.r.checks["scenario 31"]++
		l.expires = *c.args.ExtendTo
	case events.VerbReserve:
		l.machine = 1
	case events.VerbRestore:
		l.machine++
	}
	l.truth, c.landed = to, true
	l.ran = l.ran || to == events.StateRunning
	return nil
}

// result is what a provider answers of the landed call.
func (w *world) result(n int) events.Facts {
	l := w.lives[n]
	f := w.facts(l)
	switch l.call.verb {
	case events.VerbCheckpoint:
		f.Checkpoint = &events.Checkpoint{ID: l.call.args.CheckpointID}
	case events.VerbExport:
		f.File = &events.File{ID: "file", ByteLength: 1, SHA256: "0"}
	}
	return f
}

// effect is what the truth becomes by the open call; empty if the call is not
// possible, so that it can only be refused.
func (w *world) effect(n int) (events.ProviderState, error) {
	l := w.lives[n]
	is := l.truth
	live := is == events.StateRunning || is == events.StatePaused
	switch l.call.verb {
	case events.VerbReserve:
		if l.truth != "" {
			return "", w.broken("law 2, E9", "a second environment was created where one was asked for")
		}
		w.r.checks["law 2, E9"]++
		return events.StateReserved, nil
	case events.VerbProvision:
		return only(is == events.StateReserved, events.StateCreating), nil
	case events.VerbStart:
		return only(is == events.StateCreating || is == events.StateRunning, events.StateRunning), nil
	case events.VerbPause:
		return only(is == events.StateRunning, events.StatePaused), nil
	case events.VerbResume:
		return only(is == events.StatePaused, events.StateRunning), nil
	case events.VerbRestore:
		return only(live || is == events.StateStopped, events.StateRunning), nil
	case events.VerbStop:
		return only(l.exists(), events.StateStopped), nil
	case events.VerbDestroy:
		return events.StateAbsent, nil
	case events.VerbExtend:
		return only(live, is), nil
	}
	return only(l.exists(), is), nil
}

func only(ok bool, to events.ProviderState) events.ProviderState {
	if ok {
		return to
	}
	return ""
}
