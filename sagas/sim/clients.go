package sim

import (
	"encoding/json"
	"fmt"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/events"
	"berth/events/fault"
)

// clients is what the clients remember, to ask the same again.
type clients struct {
	goals []events.Boundary
	asked []asked
}

// asked is a command that was carried out.
type asked struct {
	alias events.Alias
	id    events.CommandID
	print string
	again func(m *manager, id events.CommandID, print string) (events.Record, error)
}

// client asks a manager for one thing.
func (s *sim) client() {
	m := s.hosts[s.rng.IntN(len(s.hosts))].current
	if s.quiet || !m.works() {
		return
	}
	n := names[s.rng.IntN(len(names))]
	if s.turns && s.rng.IntN(2) == 0 {
		s.takeTurn(m, n)
		return
	}
	switch s.rng.IntN(14) {
	case 0, 1, 2, 3, 4:
		m.spawn(n)
	case 5, 6, 7:
		s.ask(m, n, "retire", func(seat seatState) ([]events.Event, error) { return seat.Retire("", "retired", 0) })
	case 8:
		if b, ok := s.recent(); ok {
			m.cancel(b)
		}
	case 9:
		to := events.MillisUTC(m.clock().Add(s.upTo(2 * time.Hour)))
		m.operate(n, events.VerbExtend, events.Arguments{ExtendTo: &to})
	case 10:
		m.operate(n, []events.Verb{events.VerbPause, events.VerbResume}[s.rng.IntN(2)], events.Arguments{})
	case 11:
		m.export(n)
	case 12:
		s.repeat(m)
	case 13:
		for _, n := range names {
			m.writeOff(n)
		}
	}
}

func (s *sim) recent() (events.Boundary, bool) {
	g := s.clients.goals
	if len(g) == 0 {
		return "", false
	}
	return g[len(g)-1-s.rng.IntN(min(3, len(g)))], true
}

// ask is a command with an id of its own, which may come again.
func (s *sim) ask(m *manager, n events.Alias, what string, f func(seatState) ([]events.Event, error)) {
	a := asked{alias: n, id: events.CommandID(s.ids.UUID()), print: what, again: func(m *manager, id events.CommandID, print string) (events.Record, error) {
		return m.command(n, id, print, f)
	}}
	r, err := a.again(m, a.id, a.print)
	if err == nil && r.Sequence != 0 {
		s.say("client: %s %s by %s", what, n, m)
		s.clients.asked = append(s.clients.asked, a)
	}
}

// repeat sends what was carried out a second time, as it was or with the id of
// another request: nothing may come of either (scenario 3).
func (s *sim) repeat(m *manager) {
	if n := len(s.clients.asked); n > 0 {
		a := s.clients.asked[s.rng.IntN(n)]
		r, err := a.again(m, a.id, a.print)
		if err == nil && r.Sequence != 0 {
			s.broke("scenario 3: command %s on %s was carried out twice", a.id, a.alias)
		}
		if _, err = a.again(m, a.id, "another"); m.works() && fault.CodeOf(err) != fault.Conflict {
			s.broke("scenario 3: command id %s on %s served for another request", a.id, a.alias)
		}
	}
	b, ok := s.recent()
	if !ok {
		return
	}
	g := *s.books.goals[b]
	for _, print := range []string{g.Fingerprint, "another"} {
		_, r, err := m.accepts(b, events.GoalAccepted{Command: g.Command, Fingerprint: print, Request: g.Request, Holder: m.host.id, Allocated: g.Allocated, Ready: g.Ready})
		if r.Sequence != 0 || (err != nil) != (print == "another") {
			s.broke("scenario 3: %s asked again with fingerprint %q: sequence %d, %v", b, print, r.Sequence, err)
		}
	}
}

func (m *manager) accepts(b events.Boundary, e events.GoalAccepted) (goal.State, events.Record, error) {
	m.s.acting = m
	defer func() { m.s.acting = nil }()
	return m.shelf.DecideGoal(ctx(), b, m.meta(), func(g goal.State) ([]events.Event, error) { return g.Accept(e) })
}

// begins accepts a new goal; false if nothing came of that.
func (m *manager) begins(e events.GoalAccepted) (events.Boundary, goal.State, bool) {
	b := m.s.newGoal()
	e.Fingerprint, e.Request, e.Holder = "f", json.RawMessage("{}"), m.host.id
	g, r, err := m.accepts(b, e)
	if m.s.books.goals[b] != nil {
		m.s.clients.goals = append(m.s.clients.goals, b)
	}
	if err != nil || r.Sequence == 0 || !m.works() {
		return b, g, false
	}
	m.goal(b).state = g
	m.goal(b).resume = true
	return b, g, !(m.s.chance(20) && m.s.fell(m, "between the two commits of an acceptance"))
}

// spawn accepts a goal and claims the name. Names collide: whoever comes second
// is refused, also after its goal was accepted.
func (m *manager) spawn(n events.Alias) {
	s := m.s
	if s.books.seat(events.SeatBoundary("local", n)).Slot.Held() && s.rng.IntN(4) > 0 {
		return
	}
	a := events.Allocation{Name: n, Owner: "local", Actor: events.Actor(n), UID: events.UID(s.ids.Token()), Environment: events.EnvironmentID(s.ids.UUID())}
	if s.o.Sabotage.SameEnvironment && len(s.books.list) > 0 {
		a.Environment = s.books.list[0].env
	}
	e := events.GoalAccepted{Command: "spawn", Ready: events.MillisUTC(m.clock()).Add(30 * time.Second), Allocated: a}
	if s.rng.IntN(offerOneIn) == 0 {
		e.Ready = e.Ready.Add(s.upTo(time.Minute))
		m.offer(e)
	} else if b, g, ok := m.begins(e); ok {
		m.claim(b, g)
	}
}

// lifetimeOf is a lifetime from 5 to 56 minutes: some expire while much goes
// wrong.
func lifetimeOf(uid events.UID) time.Duration { return time.Duration(uid[0]%18*3+5) * time.Minute }

// claim is the second commit of a spawn, also of one that was left without it.
func (m *manager) claim(b events.Boundary, g goal.State) {
	a := g.Allocated
	if !m.clock().Before(g.Ready) {
		m.stepGoal(b)
		return
	}
	deadline := events.MillisUTC(g.AcceptedAt.Add(lifetimeOf(a.UID)))
	_, err := m.command(a.Name, claimID(a.UID), g.Fingerprint, func(seat seatState) ([]events.Event, error) {
		if m.s.books.lifeOf(a.UID) != nil {
			return nil, nil // it was claimed before, and may be long over
		}
		return seat.Claim(aggregates.Claim{UID: a.UID, Environment: a.Environment, Activation: events.OperationID("activate-" + string(a.UID)), Goal: b, Holder: m.host.id,
			Plan:   events.Plan{Provider: "drill", Image: events.Image{Kind: "template", Reference: "host"}, Lifetime: time.Hour, Command: []string{"true"}},
			Target: events.TargetRunning, Deadline: &deadline, Ready: g.Ready})
	})
	if err == nil || !m.works() || fault.CodeOf(err) != fault.FailedPrecondition {
		return // the holder's goal is asked again until it is claimed or expired
	}
	m.s.acting = m
	_, _, _ = m.shelf.DecideGoal(ctx(), b, m.meta(), func(g goal.State) ([]events.Event, error) {
		return g.End(events.GoalFailed, fault.From(err), nil), nil
	})
	m.s.acting = nil
}

func (s *sim) retire(n events.Alias) {
	for _, h := range s.hosts {
		if h.current.works() {
			s.ask(h.current, n, "retire", func(seat seatState) ([]events.Event, error) { return seat.Retire("", "retired", 0) })
			return
		}
	}
}

func (m *manager) operate(n events.Alias, v events.Verb, args events.Arguments) {
	id := m.fresh()
	now := m.clock()
	m.s.ask(m, n, string(v), func(seat seatState) ([]events.Event, error) {
		return seat.Plan(events.OperationPlanned{Operation: id, Verb: v, Arguments: args}, now)
	})
}

// export takes a checkpoint, sometimes goes back to it, and has a file made of
// it, to a path of the host or at the provider, under a goal.
func (m *manager) export(n events.Alias) {
	seat := m.s.books.seat(events.SeatBoundary("local", n))
	if !seat.Slot.Held() {
		return
	}
	args := events.Arguments{CheckpointID: fmt.Sprintf("checkpoint-%d", m.s.n)}
	m.operate(n, events.VerbCheckpoint, args)
	if m.s.rng.IntN(3) == 0 {
		m.operate(n, events.VerbRestore, args)
	}
	args.MaxBytes = []int64{1 << 20, 1 << 20, 100}[m.s.rng.IntN(3)]
	if m.s.rng.IntN(2) == 0 {
		args.HostPath = "/exports/" + args.CheckpointID
	}
	if !m.works() {
		return
	}
	request, err := json.Marshal(args)
	if err != nil {
		m.s.broke("%v", err)
	}
	b, g, ok := m.begins(events.GoalAccepted{Command: "export", Request: request, Allocated: events.Allocation{Name: n, Owner: "local", Environment: seat.Environment.ID, Operation: m.fresh()}})
	m.s.books.arguments[b] = args
	if ok {
		m.planned(b, g)
	}
}

// planned is the second commit of an export.
func (m *manager) planned(b events.Boundary, g goal.State) {
	a := g.Allocated
	_, err := m.command(a.Name, events.CommandID(a.Operation), g.Fingerprint, func(seat seatState) ([]events.Event, error) {
		if seat.Environment.ID != a.Environment {
			return nil, fault.New(fault.NotFound, "the environment is over")
		}
		return seat.Plan(events.OperationPlanned{Operation: a.Operation, Verb: events.VerbExport, Arguments: m.s.books.arguments[b], Goal: string(b)}, m.clock())
	})
	if err == nil || !m.works() {
		return
	}
	switch fault.CodeOf(err) {
	case fault.FailedPrecondition, fault.NotFound, fault.Unimplemented:
		m.s.acting = m
		_, _, _ = m.shelf.DecideGoal(ctx(), b, m.meta(), func(g goal.State) ([]events.Event, error) {
			if m.s.books.dispatched[a.Operation] {
				return nil, nil
			}
			return g.End(events.GoalFailed, fault.From(err), nil), nil
		})
		m.s.acting = nil
	}
}

func (m *manager) cancel(b events.Boundary) {
	m.s.acting = m
	_, _, _ = m.shelf.DecideGoal(ctx(), b, m.meta(), func(g goal.State) ([]events.Event, error) {
		if g.Command != "spawn" {
			return nil, nil
		}
		return g.Cancel("graceful")
	})
	m.s.acting = nil
	m.s.say("client: cancel %s", b)
}

// writeOff is an operator who gives up what has been uncertain for long
// (decision 13): two boundaries, one append.
func (m *manager) writeOff(n events.Alias) {
	s := m.s
	seat := s.books.seat(events.SeatBoundary("local", n))
	op := seat.Environment.Operation
	if !m.works() || op == nil || op.Phase != environment.Uncertain {
		return
	}
	es, inherited, err := seat.WriteOff(caller, "the simulation gives it up")
	if err != nil {
		return
	}
	at := events.EnvironmentBoundary(seat.Environment.ID)
	s.acting = m
	_, err = s.log.CommitAll(ctx(), []events.Commit{
		{Boundary: seat.Boundary(), Expect: seat.Sequence, Meta: m.meta(), Events: es},
		{Boundary: at, Expect: 0, Meta: m.meta(), Events: inherited},
	})
	s.acting = nil
	if s.books.last[at] != 0 {
		s.result.WriteOffs++
		s.say("an operator writes %s off", n)
	}
	if code := fault.CodeOf(err); err != nil && (code == fault.Internal || code == fault.BadRequest) {
		s.broke("a write-off of %s: %v", n, err)
	}
}
