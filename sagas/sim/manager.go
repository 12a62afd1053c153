package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/drill"
	"berth/sagas"
)

// manager is one epoch: what the engine's shell remembers, without goroutines.
type manager struct {
	s             *sim
	epoch         uint64
	offset        time.Duration // of its clock
	dead, stalled bool
	late          []func() // what came while it stalled
	seats         map[events.Boundary]*seat
	goals         map[events.Boundary]*goalSeat
}

type seat struct {
	at   events.Boundary
	fold aggregates.Seat
	try  sagas.Try
	wake int // generation of the wake time that counts
}

type goalSeat struct {
	state goal.State
	seq   uint64
}

func (m *manager) writer() events.Writer { return events.Writer{Instance: self, Epoch: m.epoch} }

func (m *manager) clock() time.Time { return m.s.now.Add(m.offset) }

// alive runs f now, or when a stalled manager wakes up, or never.
func (m *manager) alive(f func()) {
	switch {
	case m.dead:
	case m.stalled:
		m.late = append(m.late, f)
	default:
		f()
	}
}

func (m *manager) wakeUp() {
	if m.dead {
		return
	}
	m.s.say("epoch %d wakes up", m.epoch)
	m.stalled = false
	late := m.late
	m.late = nil
	for _, f := range late {
		m.alive(f)
	}
}

// boot takes up every boundary of the log.
func (m *manager) boot() {
	var bs []events.Boundary
	_ = m.s.log.Scan(context.Background(), 0, func(r events.Record) error {
		if !slices.Contains(bs, r.Boundary) {
			bs = append(bs, r.Boundary)
		}
		return nil
	})
	for _, b := range bs {
		m.heard(b)
		if st := m.seats[b]; st != nil {
			st.try.Observe = true
		}
	}
}

// heard is the follow: the boundary is folded anew and asked again.
func (m *manager) heard(b events.Boundary) {
	m.alive(func() {
		switch b.Kind() {
		case events.KindSeat:
			m.reload(b)
			m.step(m.seats[b])
		case events.KindGoal:
			m.stepGoal(b)
		}
	})
}

func (m *manager) reload(b events.Boundary) {
	st := m.seats[b]
	if st == nil {
		st = &seat{at: b}
		m.seats[b] = st
	}
	st.fold = m.s.fold(b)
}

func (m *manager) fresh() events.OperationID { return events.OperationID(m.s.ids.UUID()) }

func (m *manager) view(st *seat) sagas.View {
	v := sagas.View{Seat: st.fold, Self: m.writer(), Now: m.clock(), Fresh: m.fresh(), Try: st.try}
	if g := m.goals[st.fold.Slot.Goal]; g != nil {
		v.Goal = g.state
	}
	return v
}

// step asks the kernel until it rests or waits for a call.
func (m *manager) step(st *seat) {
	v := m.view(st)
	for range 64 {
		if m.dead || m.stalled {
			return
		}
		a := sagas.Next(v)
		switch a.Kind {
		case sagas.Append:
			if !m.commit(st, a.Events...) {
				return
			}
		case sagas.Mint:
			v.Minted = sagas.Minted{ID: events.CredentialID(m.s.ids.Token()), Holder: "U" + strings.ToUpper(m.s.ids.Token())}
			continue
		case sagas.Clean:
			if !m.commit(st, events.SlotCleaned{UID: st.fold.Slot.UID}) {
				return
			}
		case sagas.Accept:
			op, _ := st.fold.Environment.Find(a.Operation)
			if !m.commit(st, events.FileAccepted{Environment: st.fold.Environment.ID, Operation: a.Operation, File: *op.Facts.File}) {
				return
			}
		case sagas.Idle:
			m.rest(st, a.Wake)
			return
		default:
			m.act(st, a)
			return
		}
		v = m.view(st)
	}
	m.s.broke("%s: the kernel does not come to rest", st.at)
}

// rest sets the wake time; a later one replaces it.
func (m *manager) rest(st *seat, at time.Time) {
	st.wake++
	if at.IsZero() {
		return
	}
	n := st.wake
	m.s.at(at.Add(-m.offset), func() {
		m.alive(func() {
			if st.wake == n {
				m.step(st)
			}
		})
	})
}

// commit appends at the fold's sequence; the process may die before or after,
// and the answer may be lost.
func (m *manager) commit(st *seat, es ...events.Event) bool {
	if m.s.chance(200) {
		m.falls(st, "before an append")
		return false
	}
	meta := m.s.meta(m.epoch, m.clock())
	if err := st.fold.Check(meta, es...); err != nil {
		m.s.broke("%s: an append that the tables refuse: %v", st.at, err)
		return false
	}
	if st.fold.Slot.Epoch > m.epoch {
		m.s.broke("%s: epoch %d appends after it saw epoch %d", st.at, m.epoch, st.fold.Slot.Epoch)
	}
	r, err := m.s.log.Commit(context.Background(), events.Commit{Boundary: st.at, Expect: st.fold.Sequence, Meta: meta, Events: es})
	if err != nil {
		if fault.CodeOf(err) != fault.Conflict {
			m.s.broke("%v", err)
		}
		m.s.after(m.s.upTo(time.Second), func() { m.heard(st.at) })
		return false
	}
	for _, e := range es {
		m.s.say("epoch %d %s %s", m.epoch, st.at, e.EventType())
	}
	m.s.notify(st.at)
	m.goalsOf(st)
	if m.s.chance(200) {
		m.falls(st, "after an append")
		return false
	}
	if m.s.chance(60) {
		m.s.say("the acknowledgement is lost")
		m.s.after(m.s.upTo(time.Second), func() { m.heard(st.at) })
		return false
	}
	st.fold = st.fold.Apply(r)
	return true
}

// falls ends the process in the middle of a decision. One that only stalled
// looks at the seat anew when it wakes up.
func (m *manager) falls(st *seat, where string) {
	m.s.fell(where)
	m.s.after(time.Millisecond, func() { m.heard(st.at) })
}

func (m *manager) again(st *seat) {
	st.try.Next = m.clock().Add(sagas.Backoff(st.try.Count, m.s.rng.Float64()))
	st.try.Count++
}

func (m *manager) operation(st *seat) providers.Operation {
	e := st.fold.Environment
	o := e.Operation
	return providers.Operation{ID: o.ID, Environment: e.ID, Alias: st.fold.Alias, Verb: o.Verb, Arguments: o.Arguments, Plan: e.Plan, Ref: e.Ref,
		Writer: m.writer(), Deadline: o.Deadline, Expires: e.Deadline}
}

// act begins a call. Its answer comes by the agenda.
func (m *manager) act(st *seat, a sagas.Action) {
	env := st.fold.Environment
	if a.Kind == sagas.Dispatch {
		if m.s.epoch() != m.epoch {
			m.s.say("epoch %d finds that it is over", m.epoch)
			m.dead = true
			return
		}
		if m.commit(st, a.Events...) {
			m.call(st)
		}
		return
	}
	st.try.InFlight = true
	var c drill.Call
	switch a.Kind {
	case sagas.Probe:
		c = drill.Call{Verb: drill.Preflight, Plan: &env.Plan}
	case sagas.Observe:
		c = drill.Call{Verb: drill.Inspect, Environment: env.ID, Ref: env.Ref}
	case sagas.Reconcile:
		c = drill.ReconcileCall(m.operation(st))
	case sagas.Exclude:
		c = drill.ExcludeCall(m.operation(st))
	}
	ans := m.s.machine.Apply(m.s.now, c)
	m.s.say("epoch %d calls %s %s %s", m.epoch, c.Verb, st.fold.Alias, ans.Fault)
	took := ans.After + m.s.upTo(50*time.Millisecond)
	if ans.Delivery == drill.Never || took > 30*time.Second {
		took = 30 * time.Second
		ans = drill.Answer{Err: fault.New(fault.DeadlineExceeded, "no answer"), Finding: providers.Finding{Verdict: providers.Open}}
	}
	m.s.after(took, func() { m.alive(func() { m.answered(st, a, env.ID, ans) }) })
}

// answered takes in the answer of a call that reads.
func (m *manager) answered(st *seat, a sagas.Action, id events.EnvironmentID, ans drill.Answer) {
	st.try.InFlight = false
	if m.reload(st.at); st.fold.Environment.ID != id || st.fold.Slot.Epoch > m.epoch {
		m.step(st)
		return
	}
	var es []events.Event
	switch a.Kind {
	case sagas.Probe:
		if ans.Err == nil && st.fold.Environment.ProbedAt.IsZero() && st.fold.Environment.Refusal == nil && st.fold.Slot.Held() {
			es = sagas.Probed(st.fold, events.ImageDescription{Image: st.fold.Environment.Plan.Image, Architecture: "sim"}, ans.Preflight, events.HostFacts{Host: "sim", Architecture: "sim"})
		}
	case sagas.Observe:
		st.try.Observe = false
		if ans.Err == nil && st.fold.Environment.Operation == nil {
			es = sagas.Observed(st.fold, ans.Facts)
		}
	default:
		es = sagas.Found(st.fold, a.Operation, ans.Finding, m.fresh())
	}
	if len(es) == 0 && a.Kind != sagas.Observe {
		m.again(st)
	} else {
		st.try.Count, st.try.Next = 0, time.Time{}
	}
	if len(es) == 0 || m.commit(st, es...) {
		m.step(st)
	}
}

// call dispatches the open operation, which must be durable by now (law 1).
func (m *manager) call(st *seat) {
	op := m.operation(st)
	if now := m.s.fold(st.at).Environment.Operation; now == nil || now.ID != op.ID {
		m.s.broke("%s: %s is called and is not in the log", st.at, op.ID)
	}
	if m.s.chance(150) {
		m.falls(st, "before a call")
		return
	}
	ans := m.s.machine.Apply(m.s.now, drill.CallOf(op))
	m.s.say("epoch %d calls %s %s %s", m.epoch, op.Verb, st.fold.Alias, ans.Fault)
	if m.s.chance(150) {
		m.falls(st, "after a call")
		return
	}
	st.try.InFlight = true
	limit := sagas.PatienceOf(op.Verb).Call
	took := ans.After + m.s.upTo(100*time.Millisecond)
	lost := providers.UnknownWith(fault.New(fault.DeadlineExceeded, "no answer"))
	switch {
	case ans.Delivery == drill.Late && took > limit:
		m.deliver(st, op.ID, limit, true, func() providers.Outcome { return lost })
		m.deliver(st, op.ID, took, false, func() providers.Outcome { return m.s.machine.Settle(m.s.now, op.Environment, op.ID) })
	case ans.Delivery == drill.Late:
		m.deliver(st, op.ID, took, true, func() providers.Outcome { return m.s.machine.Settle(m.s.now, op.Environment, op.ID) })
	case ans.Delivery == drill.Never || took > limit:
		m.deliver(st, op.ID, limit, true, func() providers.Outcome { return lost })
	default:
		m.deliver(st, op.ID, took, true, func() providers.Outcome { return ans.Outcome })
	}
}

func (m *manager) deliver(st *seat, id events.OperationID, after time.Duration, last bool, out func() providers.Outcome) {
	m.s.after(after, func() { m.alive(func() { m.outcome(st, id, out(), last) }) })
}

// outcome takes in the answer of a mutation, also a late one.
func (m *manager) outcome(st *seat, id events.OperationID, out providers.Outcome, last bool) {
	if last {
		st.try.InFlight = false
	}
	if m.reload(st.at); st.fold.Slot.Epoch > m.epoch {
		m.step(st)
		return
	}
	es := sagas.Outcome(st.fold, id, out, m.fresh())
	if len(es) > 0 {
		st.try.Count, st.try.Next = 0, time.Time{}
		if out.Kind != providers.Done {
			m.again(st)
		}
		if out.Kind == providers.Unknown {
			st.try.Count = 0
		}
		if !m.commit(st, es...) {
			return
		}
	}
	m.step(st)
}
