package aggregates_test

import (
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/events"
	"berth/events/fault"
)

// planned asks a seat for one verb at t0.
func planned(l *life, v events.Verb, a events.Arguments) ([]events.Event, error) {
	return l.Plan(events.OperationPlanned{Operation: op1, Verb: v, Arguments: a}, t0)
}

func can(change func(*events.Capabilities)) events.Event {
	c := capable
	change(&c)
	return events.EnvironmentProbed{Environment: env1, Capabilities: c, ProbedAt: t0}
}

// Every refusal of a mutation is typed, before any effect (R89).
func TestPlanRefuses(t *testing.T) {
	to := func(d time.Duration) events.Arguments { return events.Arguments{ExtendTo: ptr(at(d))} }
	export := events.Arguments{MaxBytes: 10}
	cases := []struct {
		name string
		seat func(testing.TB) *life
		also []events.Event
		verb events.Verb
		args events.Arguments
		want fault.Code // empty: planned
	}{
		{"pause", running, nil, events.VerbPause, events.Arguments{}, ""},
		{"R9 pause without memory", running, []events.Event{can(func(c *events.Capabilities) { c.PauseKeepsMemory = false })}, events.VerbPause, events.Arguments{}, fault.Unimplemented},
		{"pause of what is paused", running, []events.Event{events.EnvironmentObserved{Environment: env1, Facts: seen(events.StatePaused)}}, events.VerbPause, events.Arguments{}, fault.FailedPrecondition},
		{"pause twice, the first queued", running, []events.Event{events.OperationPlanned{Environment: env1, Operation: op2, Verb: events.VerbPause}}, events.VerbPause, events.Arguments{}, fault.FailedPrecondition},
		{"resume behind a queued pause", running, []events.Event{events.OperationPlanned{Environment: env1, Operation: op2, Verb: events.VerbPause}}, events.VerbResume, events.Arguments{}, ""},
		{"resume of what runs", running, nil, events.VerbResume, events.Arguments{}, fault.FailedPrecondition},
		{"pause before it runs", reserved, nil, events.VerbPause, events.Arguments{}, fault.FailedPrecondition},
		{"pause while retiring", retiring, nil, events.VerbPause, events.Arguments{}, fault.FailedPrecondition},
		{"pause of nothing", fresh, nil, events.VerbPause, events.Arguments{}, fault.NotFound},
		{"pause of what is gone", running, []events.Event{events.EnvironmentObserved{Environment: env1, Facts: seen(events.StateAbsent)}}, events.VerbPause, events.Arguments{}, fault.FailedPrecondition},
		{"R26 extend", running, []events.Event{can(func(c *events.Capabilities) { c.Extend.StepMs = 0 })}, events.VerbExtend, to(2 * time.Hour), fault.Unimplemented},
		{"extend", running, nil, events.VerbExtend, to(2 * time.Hour), ""},
		{"scenario 31 extend to less", running, nil, events.VerbExtend, to(30 * time.Second), fault.FailedPrecondition},
		{"scenario 31 extend to the same", running, nil, events.VerbExtend, to(time.Hour), fault.FailedPrecondition},
		{"scenario 31 behind a longer one", running, []events.Event{events.OperationPlanned{Environment: env1, Operation: op2, Verb: events.VerbExtend, Arguments: to(3 * time.Hour)}}, events.VerbExtend, to(2 * time.Hour), fault.FailedPrecondition},
		{"scenario 31 behind a step of a longer one", running, []events.Event{events.OperationDispatched{Environment: env1, Operation: op2, Verb: events.VerbExtend, Arguments: events.Arguments{ExtendTo: ptr(at(70 * time.Minute)), Wanted: ptr(at(3 * time.Hour))}}}, events.VerbExtend, to(2 * time.Hour), fault.FailedPrecondition},
		{"extend of what stopped", running, []events.Event{events.EnvironmentObserved{Environment: env1, Facts: seen(events.StateStopped)}}, events.VerbExtend, to(2 * time.Hour), fault.FailedPrecondition},
		{"extend without a deadline", running, nil, events.VerbExtend, events.Arguments{}, fault.BadRequest},
		{"checkpoint", running, nil, events.VerbCheckpoint, events.Arguments{CheckpointID: "k1"}, ""},
		{"checkpoint without capability", running, []events.Event{can(func(c *events.Capabilities) { c.ColdCheckpoint = false })}, events.VerbCheckpoint, events.Arguments{}, fault.Unimplemented},
		{"export", running, nil, events.VerbExport, export, ""},
		{"export without capability", running, []events.Event{can(func(c *events.Capabilities) { c.Export = false })}, events.VerbExport, export, fault.Unimplemented},
		{"R33, R37 export without a limit", running, nil, events.VerbExport, events.Arguments{}, fault.BadRequest},
		{"export of no checkpoint", running, nil, events.VerbExport, events.Arguments{MaxBytes: 1, CheckpointID: "k9"}, fault.NotFound},
		{"export behind its checkpoint", running, []events.Event{events.OperationPlanned{Environment: env1, Operation: op2, Verb: events.VerbCheckpoint, Arguments: events.Arguments{CheckpointID: "k9"}}}, events.VerbExport, events.Arguments{MaxBytes: 1, CheckpointID: "k9"}, ""},
		{"restore", kept, nil, events.VerbRestore, events.Arguments{CheckpointID: "k1"}, ""},
		{"restore behind its checkpoint", running, []events.Event{events.OperationPlanned{Environment: env1, Operation: op2, Verb: events.VerbCheckpoint, Arguments: events.Arguments{CheckpointID: "k9"}}}, events.VerbRestore, events.Arguments{CheckpointID: "k9"}, ""},
		{"restore of what is paused", kept, []events.Event{events.EnvironmentObserved{Environment: env1, Facts: seen(events.StatePaused)}}, events.VerbRestore, events.Arguments{CheckpointID: "k1"}, ""},
		{"restore of what has ended", kept, []events.Event{events.EnvironmentObserved{Environment: env1, Facts: seen(events.StateStopped)}}, events.VerbRestore, events.Arguments{CheckpointID: "k1"}, ""},
		{"restore of what failed", kept, []events.Event{events.EnvironmentObserved{Environment: env1, Facts: seen(events.StateFailed)}}, events.VerbRestore, events.Arguments{CheckpointID: "k1"}, fault.FailedPrecondition},
		{"restore without capability", kept, []events.Event{can(func(c *events.Capabilities) { c.Snapshot = false })}, events.VerbRestore, events.Arguments{CheckpointID: "k1"}, fault.Unimplemented},
		{"restore of no checkpoint", running, nil, events.VerbRestore, events.Arguments{CheckpointID: "k9"}, fault.NotFound},
		{"restore of a checkpoint that is not named", kept, nil, events.VerbRestore, events.Arguments{}, fault.NotFound},
		{"pause behind a restore of what is paused", kept, []events.Event{events.EnvironmentObserved{Environment: env1, Facts: seen(events.StatePaused)},
			events.OperationPlanned{Environment: env1, Operation: op2, Verb: events.VerbRestore, Arguments: events.Arguments{CheckpointID: "k1"}}}, events.VerbPause, events.Arguments{}, ""},
		{"restore before it runs", reserved, nil, events.VerbRestore, events.Arguments{CheckpointID: "k1"}, fault.FailedPrecondition},
		{"destroy is not asked for", running, nil, events.VerbDestroy, events.Arguments{}, fault.BadRequest},
		{"an id of another verb", running, []events.Event{events.OperationPlanned{Environment: env1, Operation: op1, Verb: events.VerbCheckpoint}}, events.VerbPause, events.Arguments{}, fault.Conflict},
		{"behind an uncertain one", func(t testing.TB) *life { return running(t).dispatch(op2, events.VerbCheckpoint).lose(op2) }, nil, events.VerbPause, events.Arguments{}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			es, err := planned(c.seat(t).add(c.also...), c.verb, c.args)
			if fault.CodeOf(err) != c.want || err == nil && len(es) != 1 {
				t.Fatalf("%v, %v; want %q", es, err, c.want)
			}
			if err != nil && fault.From(err).Outcome != fault.NotExecuted {
				t.Errorf("the outcome of a refusal is %s", fault.From(err).Outcome)
			}
		})
	}
}

// A restore comes back to the same environment and the same deadline, as
// another incarnation (R63, R64); what was paused or had ended runs.
func TestRestoreKeepsTheEnvironment(t *testing.T) {
	for _, was := range []events.ProviderState{events.StateRunning, events.StatePaused, events.StateStopped} {
		l := kept(t).add(events.EnvironmentObserved{Environment: env1, Facts: seen(was)})
		f := seen(events.StateRunning)
		f.Incarnation = "m2"
		before := l.Environment
		l.call(op1, events.VerbRestore, f)
		e := l.Environment
		if e.Record != environment.Running || e.Paused || e.StoppedAt != nil || e.Incarnation != "m2" || e.Incarnations != 2 || e.Restores != 1 {
			t.Errorf("after a restore of what is %s: %+v", was, e)
		}
		if e.ID != before.ID || e.Ref != before.Ref || !e.Deadline.Equal(*before.Deadline) || len(e.Checkpoints) != 1 || l.Head.Current != "cred-1" {
			t.Errorf("a restore of what is %s changed the environment: %+v", was, e)
		}
	}
}

// A hand-off is taken once (H6), and a life that is over is not brought back.
func TestRestoreIsRefused(t *testing.T) {
	asked := events.OperationPlanned{Operation: op1, Verb: events.VerbRestore, Arguments: events.Arguments{CheckpointID: "k1"}}
	l := kept(t)
	for moment, want := range map[time.Duration]fault.Code{time.Hour - time.Millisecond: "", time.Hour: fault.Expired} {
		if _, err := l.Plan(asked, at(moment)); fault.CodeOf(err) != want {
			t.Errorf("after %s: %v, want %q", moment, err, want)
		}
	}
	l.Environment.Plan.Delegated = true
	if _, err := l.Plan(asked, t0); fault.CodeOf(err) != fault.FailedPrecondition || fault.From(err).Outcome != fault.NotExecuted {
		t.Errorf("a delegated seat: %v", err)
	}
}

// Scenario 30: an extension at the last moment is refused or holds.
func TestExtendAtTheEdge(t *testing.T) {
	e := events.OperationPlanned{Operation: op1, Verb: events.VerbExtend, Arguments: events.Arguments{ExtendTo: ptr(at(2 * time.Hour))}}
	l := running(t)
	if es, err := l.Plan(e, at(time.Hour-time.Millisecond)); err != nil || len(es) != 1 {
		t.Errorf("a millisecond before the end: %v, %v", es, err)
	}
	if _, err := l.Plan(e, at(time.Hour)); fault.CodeOf(err) != fault.Expired {
		t.Errorf("at the end: %v", err)
	}
	l.add(events.DeadlineChanged{Environment: env1, Deadline: at(2 * time.Hour)}, events.DeadlineChanged{Environment: env1, Deadline: at(time.Minute)})
	if !l.Environment.Deadline.Equal(at(2 * time.Hour)) {
		t.Errorf("scenario 31: the deadline went back to %s", l.Environment.Deadline)
	}
}

// The queue and the list of checkpoints are bounded, counting what is on its way.
func TestPlanLimits(t *testing.T) {
	l := running(t)
	for i := range environment.MaxQueue {
		l.do(l.Plan(events.OperationPlanned{Operation: opN("checkpoint", i), Verb: events.VerbCheckpoint}, t0))
	}
	if _, err := planned(l, events.VerbCheckpoint, events.Arguments{}); fault.CodeOf(err) != fault.ResourceExhausted {
		t.Errorf("one more than the queue holds: %v", err)
	}
	l = running(t)
	for i := range environment.MaxCheckpoints - 1 {
		f := seen(events.StateRunning)
		f.Checkpoint = &events.Checkpoint{ID: string(opN("k", i)), Kind: "cold", CapturedAt: t0}
		l.call(opN("checkpoint", i), events.VerbCheckpoint, f)
	}
	l.do(l.Plan(events.OperationPlanned{Operation: op2, Verb: events.VerbCheckpoint}, t0))
	if _, err := planned(l, events.VerbCheckpoint, events.Arguments{}); fault.CodeOf(err) != fault.ResourceExhausted {
		t.Errorf("a checkpoint beyond the limit, one being on its way: %v", err)
	}
	if len(l.Environment.Done) != environment.MaxDone {
		t.Errorf("%d finished operations are kept", len(l.Environment.Done))
	}
}

func opN(what string, i int) events.OperationID {
	return events.OperationID("operation-" + what + "-" + string(rune('a'+i/26)) + string(rune('a'+i%26)))
}

// Rules 2.1 and scenario 13: a held name answers who holds it, and what it is.
func TestClaim(t *testing.T) {
	again := aggregates.Claim{UID: uid2, Environment: env2, Activation: "activation-0000002", Holder: inst}
	_, err := running(t).dispatch(op1, events.VerbPause).lose(op1).Claim(again)
	f := fault.From(err)
	if f == nil || f.Code != fault.FailedPrecondition || f.Hint == "" || len(f.Details) != 1 {
		t.Fatalf("a claim of a held name: %+v", f)
	}
	for k, want := range map[string]string{"slotPhase": "active", "slotLifecycleUid": string(uid1), "ownerInstanceId": string(inst), "status": "uncertain", "operation": string(op1), "phase": "uncertain"} {
		if got := f.Details[0].Facts[k]; got != want {
			t.Errorf("scenario 13: %s is %q, want %q", k, got, want)
		}
	}
	l := over(t)
	if es, err := l.Claim(again); err != nil || len(es) != 2 {
		t.Errorf("a claim of a free name: %v, %v", es, err)
	}
	for name, c := range map[string]aggregates.Claim{"no uid": {Environment: env2}, "no environment": {UID: uid2}, "R61 an environment again": {UID: uid2, Environment: env1}} {
		if _, err := l.Claim(c); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := l.Claim(aggregates.Claim{UID: uid1, Environment: env2}); fault.CodeOf(err) != fault.PermissionDenied {
		t.Errorf("2.2: a retired lifecycle returned: %v", err)
	}
	if es, err := running(t).Claim(aggregates.Claim{UID: uid1, Environment: env1}); err != nil || len(es) != 0 {
		t.Errorf("the same claim again: %v, %v", es, err)
	}
}

// Rules 2.5, H16 and scenario 19: retiring begins in every state and ends on proof.
func TestRetire(t *testing.T) {
	for name, seat := range map[string]func(testing.TB) *life{
		"claimed": claimed, "reserved": reserved, "running": running,
		"creating":  func(t testing.TB) *life { return claimed(t).dispatch(op1, events.VerbReserve) },
		"uncertain": func(t testing.TB) *life { return claimed(t).dispatch(op1, events.VerbReserve).lose(op1) },
	} {
		l := seat(t)
		l.do(l.Retire(uid1, "retired", time.Second))
		if l.Slot.Grace != time.Second || l.Head.Gate.Kind != "retirement" || l.Head.Operation != aggregates.RetirementID(uid1) {
			t.Errorf("%s: %+v %+v", name, l.Slot, l.Head)
		}
		if es, err := l.Retire("", "again", 0); err != nil || len(es) != 0 {
			t.Errorf("%s: retiring again: %v, %v", name, es, err)
		}
		if _, err := l.Head.Mint("cred-9", "U9", nil, nil); fault.CodeOf(err) != fault.FailedPrecondition {
			t.Errorf("%s: minted behind the barrier: %v", name, err)
		}
		if _, err := l.Release(); fault.CodeOf(err) != fault.FailedPrecondition {
			t.Errorf("%s: law 2: released without proof: %v", name, err)
		}
	}
	if _, err := running(t).Retire(uid2, "retired", 0); fault.CodeOf(err) != fault.Expired {
		t.Errorf("another lifecycle: %v", err)
	}
	l := over(t)
	if es, err := l.Retire(uid1, "retired", 0); err != nil || len(es) != 0 {
		t.Errorf("one that is retired: %v, %v", es, err)
	}
	if _, err := l.Retire("", "retired", 0); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a free name: %v", err)
	}
}

// Law 2: a creation that was proved never to land gives everything back.
func TestReleaseOfWhatWasNeverCreated(t *testing.T) {
	l := claimed(t).dispatch(op1, events.VerbReserve).lose(op1)
	l.do(l.Retire("", "cancelled", 0))
	l.add(events.SlotCleaned{UID: uid1})
	if _, err := l.Release(); fault.CodeOf(err) != fault.FailedPrecondition || !l.Environment.Reserved() {
		t.Fatalf("released while the creation is uncertain: %v", err)
	}
	l.add(events.OperationExcluded{Environment: env1, Operation: op1, Evidence: "fenced"})
	l.do(l.Release())
	if l.Environment.Reserved() || l.Slot.Held() || l.Status() != aggregates.StatusRetired {
		t.Errorf("status %s, reserved %v", l.Status(), l.Environment.Reserved())
	}
	if es, err := l.Release(); err != nil || len(es) != 0 {
		t.Errorf("released twice: %v, %v", es, err)
	}
}

// R7, R8: a refused creation ends the life, and a refused reserve holds nothing.
func TestRefusedCreation(t *testing.T) {
	l := claimed(t).dispatch(op1, events.VerbReserve).
		add(events.OperationRefused{Environment: env1, Operation: op1, Fault: fault.New(fault.ResourceExhausted, "full")})
	if l.Environment.Reserved() || l.Status() != aggregates.StatusFailed || l.Environment.Refusal.Code != fault.ResourceExhausted {
		t.Errorf("status %s, reserved %v", l.Status(), l.Environment.Reserved())
	}
	if _, err := l.Advance(events.TargetRunning); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Errorf("R89: a failed seat went on: %v", err)
	}
}

// R89: no success that did nothing.
func TestAdvance(t *testing.T) {
	l := claimed(t)
	l.add(events.TargetChanged{Environment: env1, Target: events.TargetReserved})
	if l.call("operation-reserve-1", events.VerbReserve, seen(events.StateReserved)); l.Status() != aggregates.StatusReserved {
		t.Errorf("status %s", l.Status())
	}
	l.do(l.Advance(events.TargetRunning))
	if es, err := l.Advance(events.TargetProvisioned); err != nil || len(es) != 0 {
		t.Errorf("behind where it is asked to be: %v, %v", es, err)
	}
	for _, bad := range []events.Target{events.TargetPaused, events.TargetRetired, "moon"} {
		if _, err := l.Advance(bad); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := retiring(t).Advance(events.TargetRunning); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Errorf("while retiring: %v", err)
	}
}

// Decision 13 and scenario 20: the only release without proof.
func TestWriteOff(t *testing.T) {
	l := running(t).dispatch(op1, events.VerbCheckpoint)
	if _, _, err := l.WriteOff(caller, "lost"); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Errorf("an operation that is only open: %v", err)
	}
	l.lose(op1)
	if _, _, err := l.WriteOff(caller, ""); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("without a reason: %v", err)
	}
	es, inherited, err := l.WriteOff(caller, "the host burned")
	l.do(es, err)
	if l.Status() != aggregates.StatusWrittenOff || l.Environment.Reserved() || l.Slot.Held() || len(l.Head.Revoke()) > 0 {
		t.Errorf("status %s, reserved %v", l.Status(), l.Environment.Reserved())
	}
	orphan := environment.State{}.Apply(events.Meta{Time: t0}, inherited[0])
	if orphan.ID != env1 || orphan.Ref != "ref-1" || orphan.Operation == nil || orphan.Operation.Phase != environment.Uncertain {
		t.Fatalf("what goes on being reconciled: %+v", orphan)
	}
	late := orphan.Apply(events.Meta{Time: t0}, events.OperationLanded{Environment: env1, Operation: op1, Facts: seen(events.StateRunning), Evidence: "late"})
	if late.Operation != nil || late.Record != environment.Running {
		t.Errorf("a late answer: %+v", late)
	}
	before := l.Seat
	if after := before.With(events.Meta{}, events.OperationLanded{Environment: env1, Operation: op1, Facts: seen(events.StateRunning)}); after.Status() != aggregates.StatusWrittenOff {
		t.Errorf("the name was touched by a late answer: %s", after.Status())
	}
}

// Decision 1, law 3 and scenario 52: an epoch that is over takes nothing.
func TestTakeOver(t *testing.T) {
	l := running(t) // claimed by epoch 2
	for epoch, want := range map[uint64]struct {
		n    int
		code fault.Code
	}{1: {0, fault.Expired}, 2: {0, ""}, 3: {1, ""}} {
		if es, err := l.TakeOver(inst, epoch); len(es) != want.n || fault.CodeOf(err) != want.code {
			t.Errorf("epoch %d: %v, %v", epoch, es, err)
		}
	}
	l.do(l.TakeOver("jjjjjjjjjjjjjjjjjjjjjjjjjj", 1))
	if l.Slot.Holder == inst || l.Slot.Epoch != 1 {
		t.Errorf("%+v", l.Slot)
	}
	if _, err := over(t).TakeOver(inst, 9); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("of a free name: %v", err)
	}
}

// R63, R67, R68, R70, R74 and scenario 58: what an observation changes.
func TestObservations(t *testing.T) {
	see := func(l *life, change func(*events.Facts)) environment.State {
		f := seen(events.StateRunning)
		change(&f)
		l.add(events.EnvironmentObserved{Environment: env1, Facts: f})
		return l.Environment
	}
	if e := see(running(t), func(f *events.Facts) { f.Ref, f.Incarnation = "ref-2", "m2" }); e.Ref != "ref-2" || e.ID != env1 || e.Incarnations != 2 {
		t.Errorf("R63, scenario 58: %+v", e)
	}
	if e := see(running(t), func(f *events.Facts) { f.ExpiresAt = nil }); e.ExpiresAt != nil {
		t.Errorf("R31, R68: expiresAt %v", e.ExpiresAt)
	}
	if e := see(running(t), func(f *events.Facts) { f.State, f.ExpiresAt = events.StateUnknown, nil }); e.ExpiresAt == nil || e.Record != environment.Running {
		t.Errorf("R31: unknown is not a fact: %+v", e)
	}
	drifted := running(t)
	was := see(drifted, func(f *events.Facts) { f.Network = "none" }).Network
	if e := see(drifted, func(f *events.Facts) { f.Network = "host" }); e.Network != was || e.Drift != "host" {
		t.Errorf("R23, R25: network %q, drift %q", e.Network, e.Drift)
	}
	if e := see(drifted, func(f *events.Facts) { f.Network = was }); e.Network != was || e.Drift != "" {
		t.Errorf("R25: a drift that is over is told still: %q", e.Drift)
	}
	l := running(t)
	e := see(l, func(f *events.Facts) {
		f.State, f.StoppedAt, f.ExitCode = events.StateStopped, ptr(at(time.Minute)), ptr(3)
	})
	if e.Record != environment.Stopped || !e.StoppedAt.Equal(at(time.Minute)) || *e.ExitCode != 3 {
		t.Errorf("R67: %+v", e)
	}
	if e := see(l, func(*events.Facts) {}); e.Record != environment.Stopped {
		t.Errorf("a stale observation brought a stopped seat back: %+v", e)
	}
	if e := see(running(t), func(f *events.Facts) { f.State = events.StateAbsent }); !e.Gone || e.StoppedAt == nil || e.Record != environment.Stopped {
		t.Errorf("R67: absence proves the exit: %+v", e)
	}
}

// Decision 15: one function says one word for every state.
func TestStatus(t *testing.T) {
	for want, l := range map[aggregates.Status]*life{
		aggregates.StatusNone: fresh(t), aggregates.StatusStarting: claimed(t), aggregates.StatusRunning: running(t),
		aggregates.StatusRetiring: retiring(t), aggregates.StatusRetired: over(t),
		aggregates.StatusUncertain: retiring(t).dispatch(op1, events.VerbStop).lose(op1),
		aggregates.StatusStopping:  retiring(t).dispatch(op1, events.VerbStop),
		aggregates.StatusPaused:    running(t).call(op1, events.VerbPause, seen(events.StatePaused)),
		aggregates.StatusStopped:   running(t).add(events.EnvironmentObserved{Environment: env1, Facts: seen(events.StateStopped)}),
		aggregates.StatusFailed:    running(t).add(events.EnvironmentObserved{Environment: env1, Facts: seen(events.StateFailed)}),
	} {
		if got := l.Status(); got != want {
			t.Errorf("status %s, want %s", got, want)
		}
	}
	l := running(t)
	if l.dispatch(op1, events.VerbPause).add(events.OperationStuck{Environment: env1, Operation: op1, Since: t0}); !l.Stuck() || !l.Live() {
		t.Errorf("scenario 18: stuck %v, live %v", l.Stuck(), l.Live())
	}
}

// An operation that a goal waits for is not forgotten for the many steps of a
// long extension (the simulation's seed 7291). Beyond the limit the oldest is.
func TestWhatAGoalWaitsForIsKept(t *testing.T) {
	l := running(t)
	const goal = "goal.local.me.abcdefghijklmnopqrstuvwxyz.one"
	waited := func(i int) events.OperationID { return opN("waited", i) }
	for i := range environment.MaxDone - 1 {
		f := seen(events.StateRunning)
		f.Checkpoint = &events.Checkpoint{ID: string(waited(i)), Kind: "cold", CapturedAt: t0}
		l.add(events.OperationDispatched{Environment: env1, Operation: waited(i), Verb: events.VerbCheckpoint, Goal: goal, Deadline: at(time.Minute)},
			events.OperationConfirmed{Environment: env1, Operation: waited(i), Facts: f})
		l.call(opN("pause", i), events.VerbPause, seen(events.StatePaused)).call(opN("resume", i), events.VerbResume, seen(events.StateRunning))
	}
	if _, ok := l.Environment.Find(waited(0)); !ok || len(l.Environment.Done) != environment.MaxDone {
		t.Errorf("the first is kept: %t, of %d", ok, len(l.Environment.Done))
	}
}
