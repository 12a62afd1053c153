package drill

import (
	"runtime"
	"slices"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// find handles reconcile and exclude: two questions about one operation id.
func (m *Machine) find(t time.Time, c Call, r Rule) Answer {
	var a Answer
	if why := turnedAwayRead(c, r); why != nil {
		a.Finding = open(why)
		return m.deliverRead(a, c, r)
	}
	if c.Verb == Exclude {
		a.Finding = m.exclude(t, c)
	} else {
		a.Finding = m.reconcile(t, c)
	}
	return m.deliverRead(a, c, r)
}

func open(why *fault.Error) providers.Finding {
	return providers.Finding{Verdict: providers.Open, Evidence: "no answer", Fault: why}
}

func (m *Machine) reconcile(t time.Time, c Call) providers.Finding {
	if e := m.s.Envs[c.Environment]; e != nil {
		if o := e.op(c.Operation); o != nil {
			return o.finding(e, t)
		}
	}
	f := open(fault.New(fault.NotFound, "operation %s was not seen; it may still arrive", c.Operation))
	f.Evidence = "drill journal: not seen"
	return f
}

// exclude is a real fence: an id that has not landed never will.
func (m *Machine) exclude(t time.Time, c Call) providers.Finding {
	e := m.place(c)
	o := e.op(c.Operation)
	if o == nil {
		own := c
		own.Verb, own.Target = Verb(c.Target), ""
		o = &op{ID: c.Operation, Print: own.fingerprint(), Verb: own.Verb, Phase: pending}
		e.Ops = append(e.Ops, o)
	}
	if o.Phase == pending {
		o.back(e)
		o.end(excluded, t, nil)
	}
	return o.finding(e, t)
}

// turnedAwayRead is why a call that mutates nothing is refused by the script.
func turnedAwayRead(c Call, r Rule) *fault.Error {
	switch r.Fault {
	case Refuse:
		return fault.New(r.codeOr(fault.FailedPrecondition), "the drill script refuses %s", c.Verb)
	case Throttle:
		return throttled(r)
	}
	return nil
}

// read handles the calls that observe.
func (m *Machine) read(t time.Time, c Call, r Rule) Answer {
	var a Answer
	if a.Err = turnedAwayRead(c, r); a.Err != nil && c.Verb != Preflight {
		return m.deliverRead(a, c, r)
	}
	switch c.Verb {
	case Inspect:
		a.Facts, a.Err = m.inspect(t, c)
	case List:
		a.Listed = m.list(r.Fault)
	case Logs:
		var e *env
		if e, a.Err = m.mine(c); e != nil {
			a.Facts = e.facts(t)
			a.Stream = spoil(from(e.output(), c.Offset), r.Fault)
		}
	case ReadFile:
		a.Stream, a.Err = m.readFile(c, r.Fault)
	case Preflight:
		a.Preflight, a.Err = preflight(t, c, a.Err), nil
	case DescribeImage:
		a.Image = describe(*c.Image)
	default:
		a.Err = fault.New(fault.Unimplemented, "provider drill has no verb %q", events.Scrub(string(c.Verb)))
	}
	if r.Fault == SlowStream {
		a.Pause = time.Duration(r.DelayMs) * time.Millisecond
	}
	return m.deliverRead(a, c, r)
}

// mine finds the environment of a read; silence about it is an error, and
// only a tombstone is a proof of absence.
func (m *Machine) mine(c Call) (*env, *fault.Error) {
	e := m.s.Envs[c.Environment]
	switch {
	case e == nil || e.State == "" || e.Vanished:
		return nil, fault.New(fault.NotFound, "there is no environment %s", c.Environment)
	case c.Ref != "" && c.Ref != e.ref():
		return nil, fault.New(fault.NotFound, "the reference is not that of environment %s", c.Environment)
	}
	return e, nil
}

func (m *Machine) inspect(t time.Time, c Call) (events.Facts, *fault.Error) {
	e, err := m.mine(c)
	if err != nil {
		return events.Facts{}, err
	}
	return e.facts(t), nil
}

func (m *Machine) readFile(c Call, f Fault) ([]byte, *fault.Error) {
	e, err := m.mine(c)
	if err != nil {
		return nil, err
	}
	x := e.file(c.File)
	if x == nil {
		return nil, fault.New(fault.NotFound, "environment %s has no such exported file", c.Environment)
	}
	b, _ := m.contentOf(e.ID, x.Checkpoint)
	if c.Offset < 0 || c.Offset > int64(len(b)) {
		return nil, fault.New(fault.BadRequest, "offset %d is outside the file of %d bytes", c.Offset, len(b))
	}
	return spoil(from(b, c.Offset), f), nil
}

func from(b []byte, offset int64) []byte { return b[min(max(offset, 0), int64(len(b))):] }

// list is what the provider holds, by id, as wrong as the fault says.
func (m *Machine) list(f Fault) []providers.Listed {
	var ls []providers.Listed
	for _, e := range m.s.Envs {
		switch {
		case f == ListStale && e.State == events.StateAbsent && e.Incarnation > 0:
			ls = append(ls, providers.Listed{Environment: e.ID, Ref: e.ref(), State: events.StateRunning})
		case e.held():
			ls = append(ls, providers.Listed{Environment: e.ID, Ref: e.ref(), State: e.State})
		}
	}
	slices.SortFunc(ls, func(a, b providers.Listed) int { return strings.Compare(string(a.Environment), string(b.Environment)) })
	switch {
	case f == ListEmpty:
		return nil
	case f == ListDuplicate:
		return append(ls, ls...)
	case f == ListStale && len(ls) > 0:
		return m.withoutNewest(ls)
	}
	return ls
}

// withoutNewest drops the held environment with the highest id: ids rise with
// time.
func (m *Machine) withoutNewest(ls []providers.Listed) []providers.Listed {
	for i := len(ls) - 1; i >= 0; i-- {
		if m.s.Envs[ls[i].Environment].held() {
			return slices.Delete(ls, i, i+1)
		}
	}
	return ls
}

// capabilities is what every plan gets here.
func capabilities() events.Capabilities {
	return events.Capabilities{Custody: true, ColdCheckpoint: true, MemoryCheckpoint: true, Snapshot: true, PauseKeepsMemory: true,
		Export: true, DurableSeatHome: true, Screen: true, Extend: events.ExtendLimit{StepMs: ExtendStepMs}}
}

func preflight(t time.Time, c Call, why *fault.Error) providers.Preflight {
	p := providers.Preflight{Capabilities: capabilities(), Network: "drill", ProbedAt: t}
	if c.Plan.Network != nil {
		p.Network = *c.Plan.Network
	}
	add := func(name string, ok bool, detail string) {
		p.Checks = append(p.Checks, events.Check{Name: name, OK: ok, Detail: detail})
	}
	if why == nil {
		add("provider", true, "simulated")
	} else {
		add("provider", false, why.Error())
	}
	add("image", c.Plan.Image.Reference != "", "any reference is accepted")
	add("options", len(c.Plan.Options) == 0, "drill has no options")
	return p
}

func describe(i events.Image) events.ImageDescription {
	return events.ImageDescription{Image: i, Architecture: runtime.GOARCH, ABI: "drill"}
}

// deliverRead decides what the caller hears of a call that mutates nothing.
func (m *Machine) deliverRead(a Answer, c Call, r Rule) Answer {
	a.Delivery = Answered
	lose := func(d Delivery, code fault.Code, why string) Answer {
		e := fault.New(code, "%s", why)
		return Answer{Delivery: d, Err: e, Finding: open(e)}
	}
	switch r.Fault {
	case AcceptThenDrop:
		return lose(Dropped, fault.Unavailable, "the connection to the provider was lost")
	case NeverAnswer:
		return lose(Never, fault.Unavailable, "the provider does not answer")
	case ErrorAfterAccept:
		return lose(Answered, r.codeOr(fault.Unavailable), "the provider failed after it had accepted the call")
	case AcceptThenLateAnswer:
		a.After = time.Duration(r.DelayMs) * time.Millisecond
	}
	return a
}
