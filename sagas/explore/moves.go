package explore

import (
	"errors"
	"fmt"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/sagas"
)

// move is one thing that may happen next.
type move struct {
	name string
	to   world
	err  error // a law that it broke
}

// mover collects what may happen next in one state.
type mover struct {
	w      world
	shared bool // leave out what two names share: crashes and the clock
	out    []move
}

// movesOf lists everything that may happen next.
func movesOf(w world, shared bool) []move {
	m := &mover{w: w, shared: shared}
	if w.brief() {
		return nil
	}
	if w.left.Prompt && m.prompt() {
		return m.out
	}
	for n, l := range w.lives {
		if l == nil {
			continue
		}
		m.spawn(n)
		m.goals(n)
		m.provider(n)
		m.yield(n)
		if l.heir != nil && !settled(l.heir.Environment) {
			m.act(n, true)
		}
	}
	m.act(w.current(), false)
	m.people()
	m.sleeper()
	if !shared {
		for _, c := range common(w) {
			m.try(c.name, c.do)
		}
	}
	return m.out
}

// prompt has what comes at once come first, if there is any.
func (m *mover) prompt() bool {
	for n, l := range m.w.lives {
		if l == nil {
			continue
		}
		m.goals(n)
		if l.heir != nil {
			m.wait(n, true)
		}
	}
	m.wait(m.w.current(), false)
	return len(m.out) > 0
}

// wait is the end of the wait between two tries.
func (m *mover) wait(n int, heir bool) {
	if n < 0 {
		return
	}
	if v := m.w.view(n, heir); v.Try.Next.After(v.Now) {
		m.try("the wait is over", func(w *world) error { w.memory(n, heir).Next = start; return nil })
	}
}

// change is a move that several names make together.
type change struct {
	name string
	do   func(*world) error
}

// common are the moves of a whole manager or of the clock.
func common(w world) []change {
	var out []change
	if w.left.Crashes > 0 {
		out = append(out,
			change{"the manager dies or stalls, and its next epoch goes on", func(w *world) error { return w.fall(w.self.Instance) }},
			change{"the manager dies or stalls, and the other instance takes over", func(w *world) error { return w.fall(other(w.self.Instance)) }})
	}
	if w.clock < w.base+perLife {
		out = append(out, change{fmt.Sprintf("time passes: %s", moments[w.clock+1-w.base].Sub(start)), func(w *world) error { w.clock++; return nil }})
	}
	return out
}

// try makes a move unless it is not possible now.
func (m *mover) try(name string, f func(*world) error) {
	to := m.w
	if err := f(&to); !errors.Is(err, errNotNow) {
		m.out = append(m.out, move{name, to, err})
	}
}

// faulty is a move that costs a fault.
func (m *mover) faulty(name string, f func(*world) error) {
	if m.w.left.Faults > 0 {
		m.try(name, func(w *world) error { w.left.Faults--; return f(w) })
	}
}

// spawn takes the accepted goal of a life further: the claim, or its end.
func (m *mover) spawn(n int) {
	l := m.w.lives[n]
	if l.claimed || l.goal.State.Terminal() {
		return
	}
	if sagas.Unclaimed(l.goal, *m.w.seat, m.w.now()) {
		m.try("the spawn that claimed nothing expires", func(w *world) error {
			l := w.edit(n)
			return w.tell(l, &l.goal, sagas.Expire(l.goal)...)
		})
		return
	}
	m.try("the name is claimed", func(w *world) error {
		es, err := w.take(l)
		if errors.Is(err, errNotNow) {
			return err
		}
		if err != nil {
			return fmt.Errorf("scenario 13: a free name can't be claimed: %w", err)
		}
		if before := w.current(); before >= 0 {
			kept := *w.seat
			w.edit(before).seat = &kept
		}
		w.edit(n).claimed = true
		w.try, w.mint = sagas.Try{}, sagas.Minted{}
		return w.add(n, false, es...)
	})
}

// goals takes the goals of a life after what its seat says.
func (m *mover) goals(n int) {
	w, l := m.w, m.w.lives[n]
	seat := w.seatOf(l)
	if es := w.r.NextGoal(l.goal, seat, l.boundary, w.now()); len(es) > 0 {
		m.try("the goal follows: "+goalWord(es), func(w *world) error { l := w.edit(n); return w.tell(l, &l.goal, es...) })
	}
	if es := w.r.NextGoal(l.file, seat, l.export, w.now()); len(es) > 0 {
		m.try("the export's goal follows: "+goalWord(es), func(w *world) error { l := w.edit(n); return w.tell(l, &l.file, es...) })
	}
	if es := w.r.NextGoal(l.turn, seat, l.asked, w.now()); len(es) > 0 {
		m.try("the turn's goal follows: "+goalWord(es), func(w *world) error { l := w.edit(n); return w.tell(l, &l.turn, es...) })
	}
}

func goalWord(es []events.Event) string {
	switch e := es[0].(type) {
	case events.GoalEnded:
		return string(e.State)
	case events.GoalSettled:
		return "settled, " + string(e.State)
	case events.GoalProgressed:
		return e.Phase
	}
	return es[0].EventType()
}

// memory is what the acting manager remembers of its tries.
func (w *world) memory(n int, heir bool) *sagas.Try {
	if heir {
		return &w.edit(n).heirTry
	}
	return &w.try
}

// again spaces out a try; from the eighth on, only odd and even differ.
func (w *world) again(t *sagas.Try) {
	t.Next = w.now().Add(1)
	if t.Count++; t.Count > 7 {
		t.Count -= 2
	}
}

// act is the one action that the kernel asks for, with every answer to it.
func (m *mover) act(n int, heir bool) {
	if n < 0 {
		return
	}
	v := m.w.view(n, heir)
	m.wait(n, heir)
	a := m.w.r.Next(&v)
	if a.Step != "" {
		m.w.r.steps[a.Step] = true
	}
	step := string(a.Kind) + " (" + a.Step + ")"
	if heir {
		step = "written off: " + step
	}
	switch a.Kind {
	case sagas.Append:
		m.try(step, func(w *world) error { return w.add(n, heir, a.Events...) })
	case sagas.Mint:
		m.try(step, func(w *world) error { w.mint = sagas.Minted{ID: "cred-1", Holder: "U1"}; return nil })
	case sagas.Clean:
		m.try(step, func(w *world) error { return w.add(n, heir, events.SlotCleaned{UID: v.Seat.Slot.UID}) })
		m.faulty(step+" fails", func(w *world) error { w.again(w.memory(n, heir)); return nil })
	case sagas.Probe:
		m.probe(n, v, step)
	case sagas.Dispatch:
		verb := "nothing"
		if d, ok := a.Events[len(a.Events)-1].(events.OperationDispatched); ok {
			verb = string(d.Verb)
		}
		m.try(step+" "+verb, func(w *world) error { return w.dispatch(n, heir, w.self, v.Seat.Sequence, a, actor) })
	case sagas.Reconcile, sagas.Exclude:
		m.question(n, heir, a, step)
	case sagas.Observe:
		m.observe(n, heir, step)
	case sagas.Accept:
		m.file(n, heir, a, step)
	}
}

// probe is the read-only probe and its answers.
func (m *mover) probe(n int, v sagas.View, step string) {
	pre := providers.Preflight{ProbedAt: start, Capabilities: m.w.r.capabilities}
	m.try(step, func(w *world) error {
		w.try.Count, w.try.Next = 0, start
		return w.add(n, false, sagas.Probed(v.Seat, events.ImageDescription{}, pre, events.HostFacts{})...)
	})
	m.faulty(step+": a check fails", func(w *world) error {
		pre.Checks = []events.Check{{Name: "image"}}
		return w.add(n, false, sagas.Probed(v.Seat, events.ImageDescription{}, pre, events.HostFacts{})...)
	})
	m.faulty(step+": refused for good", func(w *world) error {
		return w.add(n, false, sagas.NotProbed(v.Seat, fault.New(fault.Unimplemented, "no").WithOutcome(fault.NotExecuted))...)
	})
	m.faulty(step+": no answer", func(w *world) error { w.again(&w.try); return nil })
}

// dispatch commits an intent and makes its call.
func (w *world) dispatch(n int, heir bool, by events.Writer, seen uint64, a sagas.Action, who asker) error {
	intent, ok := a.Events[len(a.Events)-1].(events.OperationDispatched)
	if !ok {
		return w.broken("law 1", "a provider is called and the log does not say so")
	}
	at := w.seat
	if heir {
		at = w.lives[n].heir
	}
	if !w.r.Takes(seen, at.Sequence) {
		return errMoved
	}
	if c := w.lives[n].call; c != nil {
		return w.broken("law 2", "%s is dispatched while %s is open", intent.Verb, c.verb)
	}
	w.r.checks["law 1"]++
	w.r.checks["law 2"]++
	if err := w.commit(n, heir, by, seen, a.Events...); err != nil {
		return err
	}
	if at = w.seat; heir {
		at = w.lives[n].heir
	}
	if op := at.Environment.Operation; op == nil || op.ID != intent.Operation {
		return w.broken("law 1", "%s is called and is not the open operation", intent.Verb)
	}
	w.edit(n).call = &call{id: intent.Operation, verb: intent.Verb, args: intent.Arguments, asker: who}
	if who == actor {
		w.memory(n, heir).InFlight = true
	}
	return nil
}

// question is a reconciliation or an exclusion and its answers.
func (m *mover) question(n int, heir bool, a sagas.Action, step string) {
	c := m.w.lives[n].call
	if c == nil || c.id != a.Operation {
		m.try(step, func(w *world) error { return w.broken("H12", "%s is not the id of what is uncertain", a.Operation) })
		return
	}
	m.w.r.checks["H12"]++
	found := func(w *world, f providers.Finding) error {
		f.Evidence = "the provider says so"
		s, t := *w.record(n), w.memory(n, heir)
		es := w.r.Found(s, a.Operation, f, w.fresh())
		switch {
		case f.Verdict == providers.Excluded && len(es) > 0:
			t.Count = s.Environment.Excluded
			w.again(t)
		case len(es) > 0:
			t.Count, t.Next = 0, start
		default:
			w.again(t)
		}
		return w.add(n, heir, es...)
	}
	unknown := func(w *world) error {
		return found(w, providers.Finding{Verdict: providers.Open, Fault: fault.New(fault.Unavailable, "not now")})
	}
	switch {
	case c.landed:
		m.try(step+": landed", func(w *world) error {
			return found(w, providers.Finding{Verdict: providers.Landed, Facts: w.result(n)})
		})
	case c.fenced || a.Kind == sagas.Exclude:
		fence := func(w *world) { w.edit(n).call.fenced = true }
		m.try(step+": excluded", func(w *world) error { fence(w); return found(w, providers.Finding{Verdict: providers.Excluded}) })
		m.faulty(step+": the fence is there, its answer is lost", func(w *world) error { fence(w); return unknown(w) })
	default:
		m.try(step+": not there yet", unknown) // the only true answer
		return
	}
	m.faulty(step+": unknown", unknown)
}

// observe is an inspection and its answers.
func (m *mover) observe(n int, heir bool, step string) {
	look := func(w *world) error {
		t := w.memory(n, heir)
		t.Observe = false
		es := w.r.Observed(*w.record(n), w.facts(w.lives[n]))
		if err := w.add(n, heir, es...); err != nil {
			return err
		}
		if s := w.record(n); s.Environment.Started && s.Environment.Record == "creating" {
			w.again(t)
		}
		return nil
	}
	m.try(step, look)
	m.faulty(step+": no answer", func(w *world) error { t := w.memory(n, heir); t.Observe = true; w.again(t); return nil })
}

// file is the copy of an exported file (R37).
func (m *mover) file(n int, heir bool, a sagas.Action, step string) {
	m.try(step, func(w *world) error {
		op, _ := w.record(n).Environment.Find(a.Operation)
		id := w.record(n).Environment.ID
		if w.r.Accepts(!w.lives[n].broken) {
			return w.add(n, heir, events.FileAccepted{Environment: id, Operation: op.ID, File: *op.Facts.File})
		}
		return w.add(n, heir, events.FileRejected{Environment: id, Operation: op.ID, Fault: fault.New(fault.FailedPrecondition, "no match").WithOutcome(fault.Executed)})
	})
}
