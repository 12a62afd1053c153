package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/drill"
	"berth/sagas"
)

// reads is how long a call that only reads is waited for.
const reads = 30 * time.Second

// secret is what a provider is handed for a guest, and answers back in its
// failures: it must never be in a record.
func secret(uid events.UID) providers.Material {
	return providers.Material{sagas.Purpose: []byte(canary + string(uid))}
}

const canary = "SUCANARYCANARY"

// act begins what the turn decided. The answer comes by the agenda.
func (m *manager) act(e *entry, t *turn) {
	env := &t.seat.Environment
	id := env.ID
	op, wake := t.action.Operation, t.action.Wake
	switch t.action.Kind {
	case sagas.Idle:
		m.rest(e, wake)
	case again:
		m.soon(func() { m.step(e) })
	case sagas.Dispatch:
		m.begun(e, &t.call)
	case sagas.Probe:
		plan := env.Plan
		ans := m.s.provider(drill.Call{Verb: drill.Preflight, Plan: &plan})
		m.answer(e, ans, func() input { return probed(id, ans) })
	case sagas.Observe:
		e.try.Observe = false
		ans := m.s.provider(drill.Call{Verb: drill.Inspect, Environment: id, Ref: env.Ref})
		m.answer(e, ans, func() input { return observed(id, ans) })
	case sagas.Reconcile:
		ans := m.s.provider(drill.ReconcileCall(m.operation(t.seat)))
		m.answer(e, ans, func() input { return found(op, ans) })
	case sagas.Exclude:
		ans := m.s.provider(drill.ExcludeCall(m.operation(t.seat)))
		m.answer(e, ans, func() input { return found(op, ans) })
	case sagas.Accept:
		m.accept(e, &t.seat, op)
	}
}

// answer brings what a call that reads has found, if it does so in time.
func (m *manager) answer(e *entry, ans drill.Answer, in func() input) {
	e.inFlight = true
	took := ans.After + m.s.upTo(50*time.Millisecond)
	if ans.Delivery == drill.Never || took > reads {
		took = reads
		in = func() input { return nothing }
	}
	m.after(took, func() { m.post(e, in(), true) })
}

func nothing(t *turn, s seatState) []events.Event {
	t.again()
	return nil
}

// post brings an answer to the entry. last says that its call is over.
func (m *manager) post(e *entry, in input, last bool) {
	if last {
		e.inFlight = false
	}
	switch now := m.seats[e.at]; now {
	case e:
	case nil:
		m.seats[e.at] = e // it was forgotten while the answer was on its way
	default:
		e = now
	}
	e.inbox = append(e.inbox, in)
	m.step(e)
}

func probed(id events.EnvironmentID, ans drill.Answer) input {
	return func(t *turn, s seatState) []events.Event {
		env := s.Environment
		if env.ID != id || !env.ProbedAt.IsZero() || env.Refusal != nil || !s.Slot.Held() {
			return nil
		}
		if ans.Err != nil {
			t.again()
			return nil
		}
		t.try.Count, t.try.Next = 0, time.Time{}
		return sagas.Probed(s, events.ImageDescription{Image: env.Plan.Image, Architecture: "sim"}, ans.Preflight, events.HostFacts{Host: "sim", Architecture: "sim"})
	}
}

func observed(id events.EnvironmentID, ans drill.Answer) input {
	return func(t *turn, s seatState) []events.Event {
		if ans.Err != nil || s.Environment.ID != id || s.Environment.Operation != nil {
			t.again()
			return nil
		}
		t.try.Count, t.try.Next = 0, time.Time{}
		es := t.m.s.k.Observed(s, ans.Facts)
		if len(es) == 0 {
			t.again() // it may have to be looked at again
		}
		return es
	}
}

func found(id events.OperationID, ans drill.Answer) input {
	return func(t *turn, s seatState) []events.Event {
		es := t.m.s.k.Found(s, id, ans.Finding, t.m.fresh())
		switch {
		case ans.Finding.Verdict == providers.Excluded && len(es) > 0:
			t.try.Count = s.Environment.Excluded
			t.again()
		case len(es) > 0:
			t.try.Count, t.try.Next = 0, time.Time{}
		case s.Environment.Operation != nil && s.Environment.Operation.ID == id:
			t.again()
		}
		return es
	}
}

// begun makes the call of an intent that is durable by now. A process that
// stalls in front of it still makes it when it wakes up, within its deadline:
// only the provider's fence is then between it and its successor.
func (m *manager) begun(e *entry, next *providers.Operation) {
	call := *next // the turn is used again
	op := &call
	e.inFlight = true
	if m.s.chance(150) && m.s.fell(m, "before a call") {
		m.alive(func() {
			if m.clock().Before(op.Deadline) {
				m.call(e, op)
			} else {
				m.post(e, answered(op, lost()), true)
			}
		})
		return
	}
	m.call(e, op)
}

func lost() providers.Outcome {
	return providers.UnknownWith(fault.New(fault.DeadlineExceeded, "no answer"))
}

func (m *manager) call(e *entry, op *providers.Operation) {
	if !m.s.books.dispatched[op.ID] {
		m.s.broke("law 1: %s %s is called and is not in the log", op.Verb, op.ID)
	}
	ans := m.s.provider(drill.CallOf(*op))
	m.s.say("%s calls %s %s %s %s", m, op.Verb, op.Alias, ans.Fault, ans.Outcome.Kind)
	if f := ans.HostFile; f != nil {
		m.s.books.files[op.ID] = sum(f.Bytes)
	}
	limit := sagas.PatienceOf(op.Verb).Call
	took := ans.After + m.s.upTo(100*time.Millisecond)
	settled := func() providers.Outcome { return m.s.machine.Settle(m.s.now, op.Environment, op.ID) }
	switch {
	case ans.Delivery == drill.Late && took > limit:
		m.outcome(e, op, limit, true, lost)
		m.outcome(e, op, took, false, settled)
	case ans.Delivery == drill.Late:
		m.outcome(e, op, took, true, settled)
	case ans.Delivery == drill.Never || took > limit:
		m.outcome(e, op, limit, true, lost)
	default:
		out := ans.Outcome // without the rest of the answer
		m.outcome(e, op, took, true, func() providers.Outcome { return out })
	}
	m.s.watch()
	if m.s.chance(150) {
		m.s.fell(m, "after a call")
	}
}

// outcome delivers an answer, checked as package providers checks one: the
// provider repeats what it was handed in its failures.
func (m *manager) outcome(e *entry, op *providers.Operation, after time.Duration, last bool, out func() providers.Outcome) {
	m.after(after, func() {
		o := out()
		if o.Fault != nil && op.Material != nil {
			told := *o.Fault
			told.Message += ": " + string(op.Material[sagas.Purpose])
			o.Fault = &told
			if !m.s.o.Sabotage.KeepSecrets {
				o.Fault = providers.ScrubFault(&told, op.Material)
			}
		}
		m.post(e, answered(op, o), last)
	})
}

// answered records the answer of a call, also one that comes late.
func answered(op *providers.Operation, out providers.Outcome) input {
	return func(t *turn, s seatState) []events.Event {
		if s.Environment.ID != op.Environment || s.Environment.WrittenOff {
			if to := t.m.seats[events.EnvironmentBoundary(op.Environment)]; to != nil && to != t.e {
				t.m.soon(func() { t.m.post(to, answered(op, out), false) })
			}
			return nil
		}
		es := t.m.s.k.Outcome(s, op.ID, out, t.m.fresh())
		if len(es) == 0 {
			return nil
		}
		t.try.Next = time.Time{}
		if t.try.Count = 0; out.Kind != providers.Done {
			t.again()
		}
		if out.Kind == providers.Unknown {
			t.try.Count = 0
		}
		return es
	}
}

// accept takes in an exported file: a provider's by reading it, a host's where
// the provider put it (R34, R37).
func (m *manager) accept(e *entry, s *seatState, id events.OperationID) {
	op, _ := s.Environment.Find(id)
	file := *op.Facts.File
	took := m.s.upTo(time.Second)
	got := m.s.books.files[id]
	if op.Arguments.HostPath == "" {
		ans := m.s.provider(drill.Call{Verb: drill.ReadFile, Environment: s.Environment.ID, Ref: s.Environment.Ref, File: file.ID})
		got = sum(ans.Stream)
		took += ans.After
		m.s.books.files[id] = got
	}
	good := got.size == file.ByteLength && got.sha == file.SHA256 && file.ByteLength <= op.Arguments.MaxBytes
	e.inFlight = true
	m.after(took, func() { m.post(e, accepted(id, file, good || m.s.o.Sabotage.AcceptAny), true) })
}

func accepted(id events.OperationID, file events.File, good bool) input {
	return func(t *turn, s seatState) []events.Event {
		now, ok := s.Environment.Find(id)
		if !ok || now.File != nil || now.Fault != nil {
			return nil
		}
		if !good {
			why := fault.New(fault.FailedPrecondition, "the exported file was rejected").WithOutcome(fault.Executed)
			return []events.Event{events.FileRejected{Environment: s.Environment.ID, Operation: id, Fault: why}}
		}
		return []events.Event{events.FileAccepted{Environment: s.Environment.ID, Operation: id, File: file}}
	}
}

// content is what bytes amount to.
type content struct {
	size int64
	sha  string
}

func sum(b []byte) content {
	h := sha256.Sum256(b)
	return content{int64(len(b)), hex.EncodeToString(h[:])}
}

// watch tells the managers what changed at the provider by itself.
func (s *sim) watch() {
	s.machine.Advance(s.now)
	for _, id := range s.machine.TakeChanged() {
		l := s.books.lives[id]
		if l == nil {
			continue
		}
		for _, m := range s.all {
			if e := m.seats[l.at]; e != nil && !m.dead {
				m.soon(func() { e.try.Observe = true; m.step(e) })
			}
		}
	}
}
