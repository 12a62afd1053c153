package explore

import (
	"fmt"
	"strings"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
	"berth/sagas"
)

// people is what may be asked of the name.
func (m *mover) people() {
	w := m.w
	n := w.current()
	if last := w.lives[0]; w.left.Lives > 0 && w.lives[1] == nil && last.claimed && !w.seat.Slot.Held() && w.clock != 1 {
		m.try("asked: spawn under the same name", func(w *world) error { w.left.Lives--; return w.accept(1) })
	}
	if w.left.Commands == 0 {
		return
	}
	for n, l := range w.lives {
		if l != nil {
			m.cancel(n)
			m.cancelTurn(n)
		}
	}
	if n >= 0 {
		m.intents()
	}
	if n < 0 || !w.seat.Slot.Held() {
		return
	}
	m.ask("retire", func(w *world) ([]events.Event, error) { return w.seat.Retire(w.seat.Slot.UID, "retired", 0) })
	m.writeOff(n)
	if w.left.Reserved {
		m.ask("provision", func(w *world) ([]events.Event, error) { return w.seat.Advance(events.TargetProvisioned) })
		m.ask("start", func(w *world) ([]events.Event, error) { return w.seat.Advance(events.TargetRunning) })
	}
	until := moments[w.base].Add(longer)
	for _, p := range []events.OperationPlanned{
		{Verb: events.VerbPause}, {Verb: events.VerbResume}, {Verb: events.VerbCheckpoint, Arguments: events.Arguments{CheckpointID: "c"}},
		{Verb: events.VerbRestore, Arguments: events.Arguments{CheckpointID: "c"}},
		{Verb: events.VerbExtend, Arguments: events.Arguments{ExtendTo: &until}},
	} {
		m.ask(string(p.Verb), func(w *world) ([]events.Event, error) {
			p.Operation = w.fresh()
			return w.r.Plan(*w.seat, p, w.now())
		})
	}
	m.export(n)
	m.turn(n)
}

// ask is a request that one append on the seat answers. A refusal says that
// nothing was executed, and appends nothing (law 5).
func (m *mover) ask(name string, decide func(*world) ([]events.Event, error)) {
	if !m.mayAsk(name) {
		return
	}
	m.try("asked: "+name, func(w *world) error {
		es, err := decide(w)
		if err != nil {
			return w.refusal(name, es, err)
		}
		if len(es) == 0 {
			return errNotNow
		}
		w.left.Commands--
		return w.add(w.current(), false, es...)
	})
}

// mayAsk says that the walk is about that request.
func (m *mover) mayAsk(name string) bool {
	return m.w.left.Only == "" || strings.Contains(m.w.left.Only, name)
}

// refusal is what law 5 says of one.
func (w *world) refusal(name string, es []events.Event, err error) error {
	f, typed := err.(*fault.Error)
	switch {
	case !typed || f.Outcome != fault.NotExecuted:
		return w.broken("law 5", "%s is refused without saying that nothing was executed: %v", name, err)
	case len(es) > 0:
		return w.broken("law 5", "%s is refused and appends %s", name, es[0].EventType())
	}
	w.r.checks["law 5"]++
	return errNotNow
}

// cancel asks the goal of a life to end.
func (m *mover) cancel(n int) {
	if !m.mayAsk("cancel") {
		return
	}
	m.try("asked: cancel the goal", func(w *world) error {
		l := w.edit(n)
		es, err := l.goal.Cancel("graceful")
		if err != nil || len(es) == 0 {
			return errNotNow
		}
		w.left.Commands--
		return w.tell(l, &l.goal, es...)
	})
}

// writeOff gives an uncertain environment up: the name is free, and the
// environment goes on, on its own boundary, in the same publish (decision 13).
func (m *mover) writeOff(n int) {
	if !m.mayAsk("write-off") {
		return
	}
	m.try("asked: write off", func(w *world) error {
		es, inherited, err := w.seat.WriteOff(events.Caller{Owner: "local"}, "lost")
		if err != nil {
			return w.refusal("write-off", es, err)
		}
		w.left.Commands--
		if err := w.add(n, false, es...); err != nil {
			return err
		}
		l := w.edit(n)
		b := events.EnvironmentBoundary(l.environment)
		heir := sagas.Inherited(aggregates.NewSeat(b), events.Record{Sequence: 1, Boundary: b, Meta: w.meta(), Events: inherited})
		l.heir, l.heirTry = &heir, sagas.Try{InFlight: w.try.InFlight}
		w.try.InFlight = false
		return nil
	})
}

// export accepts the goal of an export and plans it: two commits, of which the
// second is idempotent, so that a crash in between changes nothing here.
func (m *mover) export(n int) {
	m.ask("export", func(w *world) ([]events.Event, error) {
		l := w.edit(n)
		b := l.export
		p := events.OperationPlanned{Operation: w.fresh(), Verb: events.VerbExport, Arguments: events.Arguments{MaxBytes: 1}, Goal: string(b)}
		es, err := w.r.Plan(*w.seat, p, w.now())
		if err != nil || len(es) == 0 {
			return es, err
		}
		if l.file.State != "" {
			return nil, nil // one export of a life is walked
		}
		return es, w.tell(l, &l.file, events.GoalAccepted{Command: "export", Fingerprint: "f", Holder: w.self.Instance,
			Allocated: events.Allocation{Name: w.name, Owner: "local", Environment: l.environment, Operation: p.Operation}})
	})
}

// probes are decisions that every state must refuse: nothing is appended, so
// that they lead nowhere.
func (w *world) probes() error {
	s := *w.seat
	n := w.current()
	if n < 0 {
		return nil
	}
	c := w.claimOf(w.lives[n])
	if again, err := w.r.Claim(s, c); len(again) > 0 || err == nil && !s.Slot.Held() {
		return w.broken("R61", "lifecycle %s is claimed a second time", c.UID)
	}
	c.UID, c.Environment = "zzzzzzzzzzzzzzzzzzzzzzzzzz", "0191e1a0-ffff-7000-8000-000000000000"
	_, err := w.r.Claim(s, c)
	if _, held := s.Holding(); (err != nil) != (s.Slot.Held() || held) {
		return w.broken("scenario 13", "the name is %s and a claim by another is answered with: %v", s.Slot.Phase, err)
	}
	w.r.checks["R61"]++
	w.r.checks["scenario 13"]++
	broken := s.Apply(events.Record{Sequence: s.Sequence + 1, Boundary: s.Boundary(), Broken: fmt.Errorf("unknown type")})
	v := w.view(n, false)
	v.Seat = broken
	if a := w.r.Next(&v); a.Kind != sagas.Idle {
		return w.broken("law 4", "%s is done on a boundary that can't be read", a.Step)
	}
	if _, err := broken.Retire(s.Slot.UID, "retired", 0); err == nil {
		return w.broken("law 4", "a boundary that can't be read is decided on")
	}
	w.r.checks["law 4"]++
	return nil
}
