package drill

import (
	"container/heap"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// Machine is the provider as a pure state machine. It is not safe for
// concurrent use.
type Machine struct {
	s       state
	due     dueHeap
	changed []events.EnvironmentID
	dead    int // how many of s.Envs are tombstones or fences
	content lastContent
	small   int64 // see KeepSmall; zero: not told
}

// state is all that a machine remembers; it is what a snapshot holds.
type state struct {
	Script   Script                        `json:"script"`
	Hits     []int                         `json:"hits"`     // per rule
	OffsetMs int64                         `json:"offsetMs"` // of the provider's clock
	Envs     map[events.EnvironmentID]*env `json:"environments"`
	Graves   []events.EnvironmentID        `json:"graves,omitempty"` // tombstones and fences, oldest first
	Calls    []CallRecord                  `json:"calls,omitempty"`
}

// NewMachine makes an empty provider that misbehaves as the script says. The
// script must have passed Check.
func NewMachine(s Script) *Machine {
	m := &Machine{s: state{Envs: map[events.EnvironmentID]*env{}}}
	m.SetScript(s)
	return m
}

// SetScript replaces the script; its rules count from the beginning.
func (m *Machine) SetScript(s Script) {
	m.s.Script, m.s.Hits = s, make([]int, len(s.Rules))
}

// clock is the provider's own time.
func (m *Machine) clock(now time.Time) time.Time {
	return events.MillisUTC(now.Add(time.Duration(m.s.OffsetMs) * time.Millisecond))
}

// Apply handles one call that arrives now.
func (m *Machine) Apply(now time.Time, c Call) Answer {
	m.Advance(now)
	e := m.s.Envs[c.Environment]
	alias := c.Alias
	if alias == "" && e != nil {
		alias = e.Alias
	}
	r := m.match(c.Verb, string(alias))
	if r.Fault == ClockOffset {
		m.s.OffsetMs = r.DelayMs
		m.Advance(now)
	}
	held := e != nil && e.held()
	if held {
		m.strike(e, r.Fault)
	}
	t := m.clock(now)
	var a Answer
	switch {
	case !c.Verb.observes():
		a = m.mutate(t, c, r)
	case c.Verb == Reconcile || c.Verb == Exclude:
		a = m.find(t, c, r)
	default:
		a = m.read(t, c, r)
	}
	if made := m.s.Envs[c.Environment]; !held && made != nil {
		m.strike(made, r.Fault)
	}
	a.Fault = r.Fault
	m.record(now, c, alias, a)
	return a
}

// Settle is the answer of a mutation whose delivery was Late, when its time
// has come. It is no call and counts for no rule.
func (m *Machine) Settle(now time.Time, id events.EnvironmentID, o events.OperationID) providers.Outcome {
	m.Advance(now)
	if e := m.s.Envs[id]; e != nil {
		if known := e.op(o); known != nil {
			return known.outcome(e, m.clock(now))
		}
	}
	return providers.UnknownWith(fault.New(fault.Unavailable, "operation %s is not known", o))
}

// match counts the call in every rule that it fits and returns the first rule
// that fires, or an empty one.
func (m *Machine) match(v Verb, alias string) Rule {
	var hit Rule
	for i, r := range m.s.Script.Rules {
		if !r.matches(v, alias) {
			continue
		}
		m.s.Hits[i]++
		if hit.Fault == "" && r.fires(m.s.Hits[i]) {
			hit = r
		}
	}
	return hit
}

// strike loses or replaces an environment that the provider holds.
func (m *Machine) strike(e *env, f Fault) {
	if !e.held() {
		return
	}
	switch f {
	case Vanish:
		e.Vanished = true
		m.changed = append(m.changed, e.ID)
	case SwapIncarnation:
		e.Incarnation++
		m.changed = append(m.changed, e.ID)
	}
}

// Advance lets happen what is due by now: late landings and expiries, in the
// order of their times.
func (m *Machine) Advance(now time.Time) {
	t := m.clock(now)
	for len(m.due) > 0 && !m.due[0].at.After(t) {
		d := heap.Pop(&m.due).(due)
		e := m.s.Envs[d.env]
		if e == nil {
			continue
		}
		switch {
		case d.ready:
			m.ripen(e, d.at)
			continue
		case d.op != "":
			if o := e.op(d.op); o != nil && o.Phase == pending {
				m.land(e, o, d.at)
				m.changed = append(m.changed, e.ID)
			}
			continue
		}
		m.expire(e, d.at)
	}
}

func (m *Machine) expire(e *env, at time.Time) {
	if !e.held() || e.State == events.StateStopped || !e.expired(at) {
		return // extended since, or gone
	}
	killed := 137
	e.State, e.StoppedAt, e.ExitCode = events.StateStopped, copyOf(e.Expires), &killed
	m.changed = append(m.changed, e.ID)
}

// Next is when something happens by itself, on the caller's clock; false if
// nothing will.
func (m *Machine) Next() (time.Time, bool) {
	if len(m.due) == 0 {
		return time.Time{}, false
	}
	return m.due[0].at.Add(-time.Duration(m.s.OffsetMs) * time.Millisecond), true
}

// TakeChanged returns the environments that changed by themselves since it
// was last called.
func (m *Machine) TakeChanged() []events.EnvironmentID {
	c := m.changed
	m.changed = nil
	return c
}

// due is one moment at which something happens by itself: an operation lands,
// or (op empty) a seat shows its sign or an environment may have expired.
type due struct {
	at    time.Time
	env   events.EnvironmentID
	op    events.OperationID
	ready bool
}

type dueHeap []due

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if !a.at.Equal(b.at) {
		return a.at.Before(b.at)
	}
	if a.env != b.env {
		return a.env < b.env
	}
	if a.op != b.op {
		return a.op < b.op
	}
	return !a.ready && b.ready
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)   { *h = append(*h, x.(due)) }
func (h *dueHeap) Pop() any {
	old := *h
	d := old[len(old)-1]
	*h = old[:len(old)-1]
	return d
}

// rebuild makes what is derived from the state again, after a snapshot was
// read.
func (m *Machine) rebuild() {
	m.due, m.dead = nil, 0
	if m.s.Envs == nil {
		m.s.Envs = map[events.EnvironmentID]*env{}
	}
	for _, e := range m.s.Envs {
		if e.State == "" || e.State == events.StateAbsent {
			m.dead++
		}
		if e.held() && e.State != events.StateStopped && e.Expires != nil {
			m.due = append(m.due, due{at: *e.Expires, env: e.ID})
		}
		if e.ReadyDue != nil && e.held() && e.State != events.StateStopped {
			m.due = append(m.due, due{at: *e.ReadyDue, env: e.ID, ready: true})
		}
		for _, o := range e.Ops {
			if o.Phase == pending && o.Lands != nil {
				m.due = append(m.due, due{at: *o.Lands, env: e.ID, op: o.ID})
			}
		}
	}
	heap.Init(&m.due)
}
