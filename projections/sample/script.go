package sample

import (
	"fmt"
	"time"

	"berth/events"
	"berth/events/fault"
)

// script is a whole life of a name, commit by commit.
func (g *Generator) script(l *life) []step {
	w := &writer{g: g, l: l, seat: events.SeatBoundary(l.owner, l.alias), uid: events.UID(g.ids.Token()), env: events.EnvironmentID(g.ids.UUID()), holder: g.hosts[g.random.IntN(2)]}
	w.goal = events.GoalBoundary(events.Caller{Owner: "local", Actor: "operator", UID: "abcdefghijklmnopqrstuvwxyz"}, events.GoalID("spawn-"+string(w.uid)))
	w.claim()
	switch {
	case !g.o.Calm && g.chance(8):
		w.refused()
	case !g.o.Calm && g.chance(10):
		w.writtenOff()
	default:
		w.run()
		if !g.o.Calm {
			w.wander()
		}
		if !g.o.Stay {
			w.retire()
		}
	}
	return w.out
}

type writer struct {
	g      *Generator
	l      *life
	seat   events.Boundary
	goal   events.Boundary
	uid    events.UID
	env    events.EnvironmentID
	holder events.InstanceID
	plan   events.Plan
	out    []step
}

func (w *writer) at(b events.Boundary, es ...events.Event) {
	w.out = append(w.out, step{at: b, events: es})
}

func (w *writer) operation() events.OperationID { return events.OperationID(w.g.ids.UUID()) }

func (w *writer) claim() {
	cpus := []string{"0.25", "0.5", "1", "2.125"}[w.g.random.IntN(4)]
	w.plan = events.Plan{Provider: "process", Image: events.Image{Kind: "template", Reference: "host"}, Lifetime: time.Hour,
		Resources: events.Resources{CPUs: events.MustQuantity(cpus), MemoryMiB: int64(128 << w.g.random.IntN(4)), DiskGiB: int64(w.g.random.IntN(3))},
		Command:   []string{"sh", "-c", "while :; do date; sleep 1; done"}}
	ready, deadline := Start.Add(2*time.Minute), Start.Add(time.Hour)
	w.at(w.goal, events.GoalAccepted{Command: "spawn", Fingerprint: "sha256:" + string(w.uid), Request: []byte(`{"name":"` + string(w.l.alias) + `"}`), Holder: w.holder,
		Allocated: events.Allocation{Name: w.l.alias, Owner: w.l.owner, Actor: events.Actor(w.l.alias), UID: w.uid, Environment: w.env}, Ready: ready})
	w.at(events.UIDBoundary(w.uid), events.UIDReserved{UID: w.uid, Owner: w.l.owner, Actor: events.Actor(w.l.alias), MintedBy: w.holder})
	w.out = append(w.out, step{at: w.seat, events: []events.Event{
		events.SlotClaimed{UID: w.uid, Environment: w.env, Goal: string(w.goal), Holder: w.holder, Plan: w.plan, Target: events.TargetRunning, Deadline: &deadline, Ready: ready},
		events.HeadActivated{UID: w.uid, Operation: w.operation()},
	}, meta: func(m *events.Meta) {
		m.Command, m.Fingerprint = events.CommandID(m.ID), "sha256:"+string(w.uid)
	}})
}

// do is one operation from its intent to its end.
func (w *writer) do(v events.Verb, f events.Facts, also ...events.Event) {
	op, now := w.operation(), Start.Add(time.Minute)
	f.ObservedAt = now
	w.at(w.seat, events.OperationDispatched{Environment: w.env, Operation: op, Verb: v, Goal: string(w.goal), Deadline: now})
	calm := w.g.o.Calm || !w.g.chance(6)
	if calm {
		w.at(w.seat, append([]events.Event{events.OperationConfirmed{Environment: w.env, Operation: op, Facts: f}}, also...)...)
		return
	}
	w.at(w.seat, events.OperationUncertain{Environment: w.env, Operation: op, Fault: fault.New(fault.DeadlineExceeded, "no answer in time").WithOutcome(fault.Unknown)})
	if w.g.chance(2) {
		w.at(w.seat, events.OperationStuck{Environment: w.env, Operation: op, Since: now})
	}
	w.at(w.seat, append([]events.Event{events.OperationLanded{Environment: w.env, Operation: op, Facts: f, Evidence: "the provider's journal has it"}}, also...)...)
}

func (w *writer) ref() string { return "seat/" + string(w.env) }

func (w *writer) run() {
	w.at(w.seat, events.EnvironmentProbed{Environment: w.env, Image: events.ImageDescription{Image: w.plan.Image, Architecture: "amd64"}, Checks: []events.Check{{Name: "namespaces", OK: true}},
		Capabilities: events.Capabilities{Custody: true, Exec: true, Export: true, PauseKeepsMemory: true, ColdCheckpoint: true, Extend: events.ExtendLimit{StepMs: 3_600_000}},
		ProbedAt:     Start, Host: "host-0", Architecture: "amd64", Engine: "process"})
	w.do(events.VerbReserve, events.Facts{Ref: w.ref(), State: events.StateReserved})
	w.do(events.VerbProvision, events.Facts{State: events.StateReserved})
	expires := Start.Add(time.Hour)
	w.do(events.VerbStart, events.Facts{State: events.StateRunning, Incarnation: "1", ExpiresAt: &expires, Custody: &events.Custody{BootID: "boot", PID: 4242, StartTime: 99}},
		events.GateOpened{UID: w.uid, Generation: 1}, events.SlotActivated{UID: w.uid})
	w.at(w.goal, events.GoalEnded{State: events.GoalSucceeded, Result: []byte(`{"ready":true}`)})
}

// wander is what may happen to a running seat.
func (w *writer) wander() {
	for range w.g.random.IntN(4) {
		switch w.g.random.IntN(5) {
		case 0:
			w.do(events.VerbPause, events.Facts{State: events.StatePaused})
			w.do(events.VerbResume, events.Facts{State: events.StateRunning})
		case 1:
			w.do(events.VerbCheckpoint, events.Facts{State: events.StateRunning, Checkpoint: &events.Checkpoint{ID: "c" + string(w.uid), Kind: "cold", ByteLength: 1000, CapturedAt: Start}})
		case 2:
			to := Start.Add(3 * time.Hour)
			w.at(w.seat, events.DeadlineChanged{Environment: w.env, Deadline: to})
			w.do(events.VerbExtend, events.Facts{State: events.StateRunning, ExpiresAt: &to})
		case 3:
			w.holder = w.g.hosts[w.g.random.IntN(2)]
			w.at(w.seat, events.SlotTakenOver{UID: w.uid, Holder: w.holder, Epoch: 2}, events.HeadEpochAdvanced{UID: w.uid, Operation: w.operation(), Epoch: 2})
		case 4:
			code, at := 3, Start.Add(2*time.Minute)
			w.at(w.seat, events.EnvironmentObserved{Environment: w.env, Facts: events.Facts{State: events.StateStopped, ExitCode: &code, StoppedAt: &at, ObservedAt: at}})
		}
	}
}

func (w *writer) retire() {
	op := events.OperationID("retire-" + string(w.uid))
	reason := []string{"retired", "expired", "exited"}[w.g.random.IntN(3)]
	w.at(w.seat, events.SlotTerminalizing{UID: w.uid, Reason: reason}, events.HeadRetiring{UID: w.uid, Operation: op}, events.GateFrozen{UID: w.uid, Operation: op, Kind: "retirement"})
	at := Start.Add(10 * time.Minute)
	w.do(events.VerbStop, events.Facts{State: events.StateStopped, StoppedAt: &at})
	w.do(events.VerbDestroy, events.Facts{State: events.StateAbsent})
	w.at(w.seat, events.SlotCleaned{UID: w.uid}, events.GateRetired{UID: w.uid, Operation: op}, events.HeadRetired{UID: w.uid, Operation: op}, events.SlotRetired{UID: w.uid})
}

// refused is a life that ends before anything was dispatched.
func (w *writer) refused() {
	why := fault.New(fault.FailedPrecondition, "check namespaces failed")
	op := events.OperationID("retire-" + string(w.uid))
	w.at(w.seat, events.EnvironmentRefused{Environment: w.env, Fault: why})
	w.at(w.goal, events.GoalEnded{State: events.GoalFailed, Fault: why})
	w.at(w.seat, events.SlotTerminalizing{UID: w.uid, Reason: "failed"}, events.HeadRetiring{UID: w.uid, Operation: op})
	w.at(w.seat, events.SlotCleaned{UID: w.uid}, events.HeadRetired{UID: w.uid, Operation: op}, events.SlotRetired{UID: w.uid})
}

// writtenOff is a life whose create was lost and never found before an
// operator gave it up; half of them are found later (decision 13).
func (w *writer) writtenOff() {
	op, by := w.operation(), events.Caller{Owner: "local", Actor: "operator", UID: "abcdefghijklmnopqrstuvwxyz"}
	sent := events.OperationDispatched{Environment: w.env, Operation: op, Verb: events.VerbReserve, Deadline: Start.Add(time.Minute)}
	w.at(w.seat, sent)
	w.at(w.seat, events.OperationUncertain{Environment: w.env, Operation: op, Fault: fault.New(fault.DeadlineExceeded, "no answer in time")})
	w.at(w.goal, events.GoalEnded{State: events.GoalUncertain})
	w.at(w.seat, events.EnvironmentWrittenOff{Environment: w.env, UID: w.uid, By: by, Reason: "the provider is gone"})
	own := events.EnvironmentBoundary(w.env)
	w.at(own, events.EnvironmentInherited{Environment: w.env, From: w.seat, UID: w.uid, Holder: w.holder, Plan: w.plan, Open: sent})
	if w.g.chance(2) {
		w.at(own, events.OperationLanded{Environment: w.env, Operation: op, Facts: events.Facts{State: events.StateRunning, Ref: w.ref(), ObservedAt: Start}, Evidence: "a late answer"})
		end := w.operation()
		w.at(own, events.OperationDispatched{Environment: w.env, Operation: end, Verb: events.VerbDestroy, Deadline: Start.Add(time.Hour)})
		w.at(own, events.OperationConfirmed{Environment: w.env, Operation: end, Facts: events.Facts{State: events.StateAbsent, ObservedAt: Start}})
		w.at(w.goal, events.GoalSettled{State: events.GoalFailed, Fault: fault.New(fault.Cancelled, "found and destroyed after %s", fmt.Sprint(w.l.alias))})
	}
}
