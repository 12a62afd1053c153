package drill

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// rig drives a machine with a clock of its own.
type rig struct {
	*testing.T
	m   *Machine
	now time.Time
	n   int
	out Answer // of the last call
}

func newRig(t *testing.T, rules ...Rule) *rig {
	t.Helper()
	s := Script{Rules: rules}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return &rig{T: t, m: NewMachine(s), now: t0}
}

func envID(n int) events.EnvironmentID {
	return events.EnvironmentID(fmt.Sprintf("01890000-0000-7000-8000-%012d", n))
}

// op is a new operation on environment 1 by one writer.
func (r *rig) op(v events.Verb, a events.Arguments) providers.Operation {
	r.n++
	return providers.Operation{ID: events.OperationID(fmt.Sprintf("operation-%08d", r.n)), Environment: envID(1), Alias: "web-1", Verb: v,
		Arguments: a, Writer: events.Writer{Instance: "one", Epoch: 1}}
}

func (r *rig) do(op providers.Operation) providers.Outcome {
	r.out = r.m.Apply(r.now, CallOf(op))
	return r.out.Outcome
}

func (r *rig) must(v events.Verb, a events.Arguments) events.Facts {
	r.Helper()
	out := r.do(r.op(v, a))
	if out.Kind != providers.Done {
		r.Fatalf("%s: %s %v", v, out.Kind, out.Fault)
	}
	return out.Facts
}

func (r *rig) until(last events.Verb) {
	r.Helper()
	for _, v := range []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart} {
		r.must(v, events.Arguments{})
		if v == last {
			return
		}
	}
}

func (r *rig) state() events.ProviderState {
	e := r.m.s.Envs[envID(1)]
	r.m.Advance(r.now)
	if e == nil {
		return "none"
	}
	return e.State
}

func (r *rig) verdict(op providers.Operation) providers.Verdict {
	return r.m.Apply(r.now, ReconcileCall(op)).Finding.Verdict
}

func (r *rig) exclude(op providers.Operation) providers.Verdict {
	return r.m.Apply(r.now, ExcludeCall(op)).Finding.Verdict
}

// TestAcceptedButUnheard: for every fault that loses an answer, the caller
// believes unknown while the operation has landed, and reconciliation proves
// it (R86, scenario 1).
func TestAcceptedButUnheard(t *testing.T) {
	for f, delivery := range map[Fault]Delivery{AcceptThenDrop: Dropped, NeverAnswer: Never, ErrorAfterAccept: Answered} {
		r := newRig(t, Rule{Verb: "start", Fault: f})
		r.until(events.VerbProvision)
		op := r.op(events.VerbStart, events.Arguments{})
		out := r.do(op)
		if out.Kind != providers.Unknown || r.out.Delivery != delivery || out.Fault.Outcome != fault.Unknown {
			t.Errorf("%s: heard %s %v by %s", f, out.Kind, out.Fault, r.out.Delivery)
		}
		if r.state() != events.StateRunning || r.verdict(op) != providers.Landed || r.exclude(op) != providers.Landed {
			t.Errorf("%s: state %s, verdict %s", f, r.state(), r.verdict(op))
		}
	}
}

// TestDelayedLanding: with delayMs the same faults land later; until then
// the operation is open, and can be fenced (H14, scenario 6).
func TestDelayedLanding(t *testing.T) {
	for _, f := range []Fault{AcceptThenDrop, NeverAnswer, ErrorAfterAccept, AcceptThenLateAnswer, Stuck} {
		for _, fence := range []bool{false, true} {
			r := newRig(t, Rule{Verb: "start", Fault: f, DelayMs: 1000})
			r.until(events.VerbProvision)
			op := r.op(events.VerbStart, events.Arguments{})
			if out := r.do(op); out.Kind != providers.Unknown {
				t.Fatalf("%s: %s", f, out.Kind)
			}
			r.now = r.now.Add(999 * time.Millisecond)
			if r.state() != events.StateCreating || r.verdict(op) != providers.Open {
				t.Errorf("%s: before it lands: %s %s", f, r.state(), r.verdict(op))
			}
			wantState, wantVerdict, wantKind := events.StateRunning, providers.Landed, providers.Done
			if fence {
				wantState, wantVerdict, wantKind = events.StateCreating, providers.Excluded, providers.Refused
				if v := r.exclude(op); v != providers.Excluded {
					t.Errorf("%s: exclude before it lands: %s", f, v)
				}
			}
			r.now = r.now.Add(time.Millisecond)
			if r.state() != wantState || r.verdict(op) != wantVerdict {
				t.Errorf("%s, fence %v: %s %s, want %s %s", f, fence, r.state(), r.verdict(op), wantState, wantVerdict)
			}
			if out := r.m.Settle(r.now, op.Environment, op.ID); out.Kind != wantKind {
				t.Errorf("%s, fence %v: the late answer is %s, want %s", f, fence, out.Kind, wantKind)
			}
		}
	}
}

// TestStuckCanBeDestroyed (scenarios 18, 19): a provision that never finishes
// is open for ever, and can be fenced and destroyed.
func TestStuckCanBeDestroyed(t *testing.T) {
	r := newRig(t, Rule{Verb: "provision", Fault: Stuck})
	r.until(events.VerbReserve)
	op := r.op(events.VerbProvision, events.Arguments{})
	r.do(op)
	r.now = r.now.Add(1000 * time.Hour)
	if r.state() != events.StateCreating || r.verdict(op) != providers.Open {
		t.Errorf("stuck: %s %s", r.state(), r.verdict(op))
	}
	if v := r.exclude(op); v != providers.Excluded || r.state() != events.StateReserved {
		t.Errorf("fenced: %s %s", v, r.state())
	}
	if f := r.must(events.VerbDestroy, events.Arguments{}); f.State != events.StateAbsent {
		t.Errorf("destroyed: %+v", f)
	}
}

func TestRefuseAndThrottleExecuteNothing(t *testing.T) {
	for f, want := range map[Fault]fault.Code{Refuse: fault.FailedPrecondition, Throttle: fault.ResourceExhausted} {
		r := newRig(t, Rule{Verb: "start", Nth: 1, Fault: f})
		r.until(events.VerbProvision)
		op := r.op(events.VerbStart, events.Arguments{})
		for range 2 { // and nothing will be executed under this id
			if out := r.do(op); out.Kind != providers.Refused || out.Fault.Code != want || out.Fault.Retryable != (f == Throttle) {
				t.Errorf("%s: %s %v", f, out.Kind, out.Fault)
			}
		}
		if r.verdict(op) != providers.Excluded || r.state() != events.StateCreating {
			t.Errorf("%s: %s %s", f, r.verdict(op), r.state())
		}
		r.must(events.VerbStart, events.Arguments{})
	}
}

// TestVanishAndSwap (scenario 58): what is behind a reference is gone, or is
// another machine; the provider tells nobody but whoever looks.
func TestVanishAndSwap(t *testing.T) {
	r := newRig(t, Rule{Verb: "inspect", Nth: 2, Fault: SwapIncarnation}, Rule{Verb: "inspect", Nth: 3, Fault: Vanish})
	r.until(events.VerbStart)
	inspect := func() Answer { return r.m.Apply(r.now, Call{Verb: Inspect, Environment: envID(1)}) }
	first, second, third := inspect(), inspect(), inspect()
	if first.Facts.Incarnation != "1" || second.Facts.Incarnation != "2" {
		t.Errorf("incarnations %q, then %q", first.Facts.Incarnation, second.Facts.Incarnation)
	}
	if third.Err == nil || third.Err.Code != fault.NotFound {
		t.Errorf("inspect of a vanished one: %+v", third)
	}
	if got := r.m.TakeChanged(); len(got) != 2 {
		t.Errorf("changed by itself: %v", got)
	}
	if out := r.do(r.op(events.VerbPause, events.Arguments{})); out.Kind != providers.Refused || out.Fault.Code != fault.NotFound {
		t.Errorf("pause of a vanished one: %+v", out)
	}
	if f := r.must(events.VerbDestroy, events.Arguments{}); f.State != events.StateAbsent {
		t.Errorf("destroy of a vanished one: %+v", f)
	}
	made := newRig(t, Rule{Verb: "reserve", Fault: Vanish})
	made.until(events.VerbReserve)
	if s := made.m.Status(made.now); len(s.Environments) != 0 || s.Tombstones[0].State != "vanished" {
		t.Errorf("a reserve that vanishes: %+v", s)
	}
}

// TestLists: a list is evidence for a person, and each fault makes it lie in
// its own way (R92, H13).
func TestLists(t *testing.T) {
	r := newRig(t, Rule{Verb: List, Nth: 2, Fault: ListEmpty}, Rule{Verb: List, Nth: 3, Fault: ListDuplicate}, Rule{Verb: List, Nth: 4, Fault: ListStale})
	for i := 1; i <= 3; i++ {
		op := r.op(events.VerbReserve, events.Arguments{})
		op.Environment = envID(i)
		r.do(op)
	}
	r.must(events.VerbDestroy, events.Arguments{}) // of the first
	list := func() (ids []events.EnvironmentID) {
		for _, l := range r.m.Apply(r.now, Call{Verb: List}).Listed {
			ids = append(ids, l.Environment)
		}
		return ids
	}
	for i, want := range [][]events.EnvironmentID{{envID(2), envID(3)}, nil, {envID(2), envID(3), envID(2), envID(3)}, {envID(1), envID(2)}} {
		if got := list(); !slices.Equal(got, want) {
			t.Errorf("list %d: %v, want %v", i+1, got, want)
		}
	}
}

func TestStreamFaults(t *testing.T) {
	r := newRig(t, Rule{Verb: ReadFile, Nth: 2, Fault: TruncateStream}, Rule{Verb: ReadFile, Nth: 3, Fault: GrowStream},
		Rule{Verb: ReadFile, Nth: 4, Fault: CorruptStream}, Rule{Verb: ReadFile, Nth: 5, Fault: SlowStream, DelayMs: 7})
	r.until(events.VerbStart)
	r.must(events.VerbCheckpoint, events.Arguments{CheckpointID: "cp"})
	f := *r.must(events.VerbExport, events.Arguments{CheckpointID: "cp", MaxBytes: 1 << 20}).File
	read := func() Answer { return r.m.Apply(r.now, Call{Verb: ReadFile, Environment: envID(1), File: f.ID}) }
	good, short, long, bad, slow := read(), read(), read(), read(), read()
	if int64(len(good.Stream)) != f.ByteLength || digest(good.Stream) != f.SHA256 {
		t.Errorf("the faithful stream is not the file")
	}
	if len(short.Stream) >= len(good.Stream) || len(long.Stream) <= len(good.Stream) {
		t.Errorf("truncated %d, grown %d, whole %d bytes", len(short.Stream), len(long.Stream), len(good.Stream))
	}
	if len(bad.Stream) != len(good.Stream) || digest(bad.Stream) == f.SHA256 {
		t.Errorf("the corrupted stream is not corrupted alone")
	}
	if slow.Pause != 7*time.Millisecond || digest(slow.Stream) != f.SHA256 {
		t.Errorf("slow: %s", slow.Pause)
	}
}

// TestExpiry: the provider ends an environment by itself, evaluated from
// timestamps; the moment itself belongs to the end (scenarios 30, 33).
func TestExpiry(t *testing.T) {
	r := newRig(t)
	at := t0.Add(time.Hour)
	op := r.op(events.VerbReserve, events.Arguments{})
	op.Expires = &at
	r.do(op)
	r.must(events.VerbProvision, events.Arguments{})
	r.must(events.VerbStart, events.Arguments{})
	if next, ok := r.m.Next(); !ok || !next.Equal(at) {
		t.Errorf("next: %s %v", next, ok)
	}
	r.now = at.Add(-time.Millisecond)
	to := at.Add(100 * time.Hour)
	f := r.must(events.VerbExtend, events.Arguments{ExtendTo: &to}) // bounded by the step (R28)
	if want := at.Add(ExtendStepMs * time.Millisecond); !f.ExpiresAt.Equal(want) {
		t.Errorf("extended to %s, want %s", f.ExpiresAt, want)
	}
	r.now = at
	if r.state() != events.StateRunning {
		t.Errorf("it ended at its old deadline")
	}
	r.now = *f.ExpiresAt
	if r.state() != events.StateStopped {
		t.Errorf("it did not end at its deadline: %s", r.state())
	}
	e := r.m.s.Envs[envID(1)]
	if !e.StoppedAt.Equal(*f.ExpiresAt) || *e.ExitCode != 137 {
		t.Errorf("stopped at %s with %d", e.StoppedAt, *e.ExitCode)
	}
	for _, v := range []events.Verb{events.VerbStart, events.VerbExtend, events.VerbPause} {
		if out := r.do(r.op(v, events.Arguments{ExtendTo: &to})); out.Kind != providers.Refused {
			t.Errorf("%s of what is over: %s", v, out.Kind)
		}
	}
}

// TestClockOffset (scenario 38): the provider's clock is its own.
func TestClockOffset(t *testing.T) {
	r := newRig(t, Rule{Verb: Inspect, Nth: 1, Fault: ClockOffset, DelayMs: 2 * 60 * 60 * 1000}, Rule{Verb: Inspect, Nth: 2, Fault: ClockOffset})
	at := t0.Add(time.Hour)
	op := r.op(events.VerbReserve, events.Arguments{})
	op.Expires = &at
	r.do(op)
	ask := func() events.Facts { return r.m.Apply(r.now, Call{Verb: Inspect, Environment: envID(1)}).Facts }
	if f := ask(); !f.ObservedAt.Equal(t0.Add(2*time.Hour)) || f.State != events.StateStopped {
		t.Errorf("two hours ahead: %+v", f)
	}
	if f := ask(); !f.ObservedAt.Equal(t0) {
		t.Errorf("set right again: %+v", f)
	}
}

// TestEpochs (decision 1, scenario 52): who was superseded is refused, by
// another instance too, until its own epoch has risen.
func TestEpochs(t *testing.T) {
	r := newRig(t)
	by := func(instance events.InstanceID, epoch uint64) providers.Kind {
		op := r.op(events.VerbStop, events.Arguments{})
		op.Writer = events.Writer{Instance: instance, Epoch: epoch}
		return r.do(op).Kind
	}
	r.until(events.VerbStart) // by one, epoch 1
	for i, c := range []struct {
		instance events.InstanceID
		epoch    uint64
		want     providers.Kind
	}{
		{"one", 2, providers.Done}, {"one", 1, providers.Refused}, {"two", 1, providers.Done},
		{"one", 2, providers.Refused}, {"two", 1, providers.Done}, {"one", 3, providers.Done}, {"two", 1, providers.Refused},
	} {
		if got := by(c.instance, c.epoch); got != c.want {
			t.Errorf("step %d: %s at %d: %s, want %s", i, c.instance, c.epoch, got, c.want)
		}
	}
}

// TestRuleCounting: nth is one call, times are the first ones, the alias is a
// glob, and the first rule that fires decides.
func TestRuleCounting(t *testing.T) {
	r := newRig(t, Rule{Verb: Inspect, Alias: "web-*", Nth: 3, Fault: NeverAnswer}, Rule{Verb: Inspect, Times: 2, Fault: Refuse},
		Rule{Verb: Inspect, Alias: "db", Fault: Refuse}, Rule{Verb: AnyVerb, Alias: "web-1", Nth: 6, Fault: ErrorAfterAccept})
	r.until(events.VerbReserve)
	var got []Fault
	for range 5 {
		got = append(got, r.m.Apply(r.now, Call{Verb: Inspect, Environment: envID(1)}).Fault)
	}
	if want := []Fault{Refuse, Refuse, NeverAnswer, "", ErrorAfterAccept}; !slices.Equal(got, want) {
		t.Errorf("faults %v, want %v", got, want)
	}
}

func TestPreflightRuleFailsACheck(t *testing.T) {
	p := plan1()
	r := newRig(t, Rule{Verb: Preflight, Nth: 1, Fault: Refuse}, Rule{Verb: Preflight, Nth: 2, Fault: ErrorAfterAccept})
	ask := func() Answer { return r.m.Apply(r.now, Call{Verb: Preflight, Plan: &p}) }
	a, b, c := ask(), ask(), ask()
	if failed, bad := a.Preflight.Failed(); !bad || failed.Name != "provider" || a.Err != nil {
		t.Errorf("refused: %+v (R8)", a)
	}
	if b.Err == nil || c.Err != nil {
		t.Errorf("failed: %v, then %v", b.Err, c.Err)
	}
	if _, bad := c.Preflight.Failed(); bad {
		t.Errorf("faithful: %+v", c.Preflight)
	}
}

func plan1() events.Plan {
	return events.Plan{Provider: "drill", Image: events.Image{Kind: "template", Reference: "any"}, Command: []string{"x"}}
}

func TestLimitsAtTheEdge(t *testing.T) {
	r := newRig(t)
	r.until(events.VerbStart)
	e := r.m.s.Envs[envID(1)]
	for len(e.Ops) < MaxOperations-1 {
		e.Ops = append(e.Ops, &op{ID: "operation-before", Phase: landed})
	}
	r.must(events.VerbStop, events.Arguments{})
	if out := r.do(r.op(events.VerbStop, events.Arguments{})); out.Kind != providers.Refused || out.Fault.Code != fault.ResourceExhausted {
		t.Errorf("operation %d: %+v", MaxOperations+1, out)
	}
	for range MaxCalls + 1500 {
		r.m.Apply(r.now, Call{Verb: Inspect, Environment: envID(1)})
	}
	if n := len(r.m.Status(r.now).Calls); n != MaxCalls {
		t.Errorf("%d calls are kept", n)
	}
}

// TestTombstonesAreBounded: the oldest is forgotten, live ones never are.
func TestTombstonesAreBounded(t *testing.T) {
	r := newRig(t)
	r.until(events.VerbStart)
	for i := 2; i < MaxTombstones; i++ {
		e := &env{ID: envID(i), State: events.StateAbsent}
		r.m.s.Envs[e.ID] = e
		r.m.bury(e)
	}
	for i := MaxTombstones; i < MaxTombstones+20; i++ {
		for _, v := range []events.Verb{events.VerbReserve, events.VerbDestroy} {
			op := r.op(v, events.Arguments{})
			op.Environment = envID(i)
			if out := r.do(op); out.Kind != providers.Done {
				t.Fatalf("%s %d: %+v", v, i, out)
			}
		}
	}
	s := r.m.Status(r.now)
	if len(s.Tombstones) != MaxTombstones || len(s.Environments) != 1 || len(r.m.s.Envs)-r.m.dead != 1 {
		t.Errorf("%d tombstones, %d environments, %d counted live", len(s.Tombstones), len(s.Environments), len(r.m.s.Envs)-r.m.dead)
	}
	if first := s.Tombstones[0].ID; first != envID(20) {
		t.Errorf("the oldest tombstone is %s, want that of 20", first)
	}
	r.m.rebuild()
	if len(r.m.s.Envs)-r.m.dead != 1 {
		t.Errorf("counted %d live after a rebuild", len(r.m.s.Envs)-r.m.dead)
	}
}

func TestEnvironmentsAreBounded(t *testing.T) {
	r := newRig(t)
	for i := 1; i <= MaxEnvironments; i++ {
		r.m.s.Envs[envID(i)] = &env{ID: envID(i), State: events.StateRunning}
	}
	op := r.op(events.VerbReserve, events.Arguments{})
	op.Environment = envID(MaxEnvironments + 1)
	if out := r.do(op); out.Kind != providers.Refused || out.Fault.Code != fault.ResourceExhausted {
		t.Errorf("one too many: %+v", out)
	}
	delete(r.m.s.Envs, envID(7))
	op = r.op(events.VerbReserve, events.Arguments{})
	op.Environment = envID(MaxEnvironments + 2)
	if out := r.do(op); out.Kind != providers.Done {
		t.Errorf("the last that fits: %+v", out)
	}
}
