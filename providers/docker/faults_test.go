package docker

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/adapter"
	"berth/providers/providertest"
)

// bench is one environment over a scripted engine.
type bench struct {
	*testing.T
	f   *fakeEngine
	dir string
	raw *adapter.Driver
	d   providers.Driver
	id  events.EnvironmentID
	ref string
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func newBench(t *testing.T) *bench {
	b := &bench{T: t, f: newFake(t), dir: t.TempDir(), id: events.EnvironmentID(newID())}
	b.open()
	t.Cleanup(func() { b.d.Close() })
	return b
}

// open is what a restarted manager does.
func (b *bench) open() {
	b.Helper()
	d, err := Open(Config{Dir: b.dir, Socket: b.f.socket})
	if err != nil {
		b.Fatal(err)
	}
	b.raw, b.d = d, providers.Guard(d)
}

func (b *bench) restart() {
	b.Helper()
	if err := b.d.Close(); err != nil {
		b.Fatal(err)
	}
	b.open()
}

func (b *bench) op(v events.Verb) providers.Operation {
	return providers.Operation{ID: events.OperationID(newID()), Environment: b.id, Alias: "trial", Verb: v, Plan: plan(), Ref: b.ref,
		Writer: events.Writer{Instance: events.InstanceID(strings.Repeat("a", 26)), Epoch: 1}, Deadline: time.Now().Add(time.Minute)}
}

func (b *bench) do(op providers.Operation) providers.Outcome {
	out := b.d.Do(b.Context(), op)
	if out.Kind == providers.Done && op.Verb == events.VerbReserve {
		b.ref = out.Facts.Ref
	}
	return out
}

func (b *bench) want(op providers.Operation, k providers.Kind) providers.Outcome {
	b.Helper()
	out := b.do(op)
	if out.Kind != k {
		b.Fatalf("%s: %s %v, want %s", op.Verb, out.Kind, out.Fault, k)
	}
	return out
}

// life takes the environment as far as before the verb, and returns what the
// verb asks of the engine.
func (b *bench) life(v events.Verb) string {
	b.Helper()
	to := map[events.Verb]struct {
		path   []events.Verb
		asking string
	}{
		events.VerbReserve:    {nil, "POST create"},
		events.VerbProvision:  {[]events.Verb{events.VerbReserve}, "PUT archive"},
		events.VerbStart:      {[]events.Verb{events.VerbReserve, events.VerbProvision}, "POST start"},
		events.VerbPause:      {[]events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart}, "POST pause"},
		events.VerbResume:     {[]events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart, events.VerbPause}, "POST unpause"},
		events.VerbStop:       {[]events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart}, "POST stop"},
		events.VerbDestroy:    {[]events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart}, "DELETE"},
		events.VerbCheckpoint: {[]events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart}, "GET archive"},
	}[v]
	for _, step := range to.path {
		b.want(b.op(step), providers.Done)
	}
	return to.asking
}

var sent = []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart, events.VerbPause, events.VerbResume, events.VerbStop, events.VerbDestroy}

// TestLostAnswersAreUnknown (R32, R86, scenario 5): whatever is lost or broken
// after the request went out, the outcome is unknown, the request is never
// sent again, and a look at the container settles what did land.
func TestLostAnswersAreUnknown(t *testing.T) {
	for _, v := range sent {
		for _, tr := range []trouble{cutAfter, failAfter, cutBefore, failBefore, answer503, redirect} {
			t.Run(string(v)+"/"+string(tr), func(t *testing.T) {
				b := newBench(t)
				asking := b.life(v)
				before := b.f.count(asking)
				b.f.will(asking, tr)
				op := b.op(v)
				out := b.want(op, providers.Unknown)
				if strings.Contains(out.Fault.Error(), "hunter2") {
					t.Errorf("text of the engine was not scrubbed: %v", out.Fault)
				}
				b.restart() // and nothing of it was only in memory
				landed := tr == cutAfter || tr == failAfter
				f := b.d.Reconcile(t.Context(), op)
				switch {
				case v == events.VerbReserve:
					b.settleCreate(op, f, landed)
				case landed && f.Verdict != providers.Landed:
					t.Errorf("it landed: %+v", f)
				case !landed && f.Verdict != providers.Open:
					t.Errorf("it did not land, and nobody knows: %+v", f)
				case !landed:
					b.heldOpen(op)
				}
				if v != events.VerbReserve {
					b.d.Do(t.Context(), op) // the same id again
					if n := b.f.count(asking) - before; n != 1 {
						t.Errorf("sent %d times", n)
					}
				}
			})
		}
	}
}

// heldOpen: the engine has no fence for anything but a create.
func (b *bench) heldOpen(op providers.Operation) {
	b.Helper()
	if f := b.d.Exclude(b.Context(), op); f.Verdict != providers.Open || f.Fault.Code != fault.Unimplemented {
		b.Errorf("exclude without a fence: %+v", f)
	}
}

// settleCreate: a create that did not land is fenced by its name; one that did
// is neither adopted nor removed, until a person has removed it (R92, H14).
func (b *bench) settleCreate(op providers.Operation, f providers.Finding, landed bool) {
	b.Helper()
	if f.Verdict != providers.Open {
		b.Fatalf("a create without an answer: %+v", f)
	}
	f = b.d.Exclude(b.Context(), op)
	if landed {
		if f.Verdict != providers.Open || f.Fault.Code != fault.FailedPrecondition || f.Fault.Hint == "" {
			b.Fatalf("a stray of our name: %+v", f)
		}
		if _, err := b.d.Inspect(b.Context(), b.id, ""); fault.CodeOf(err) != fault.NotFound {
			b.Errorf("a stray was adopted: %v", err)
		}
		again := b.op(events.VerbReserve)
		if out := b.do(again); out.Kind != providers.Refused {
			b.Errorf("a second create while the first is open: %s", out.Kind)
		}
		b.f.set(func() { clear(b.f.byID) })
		f = b.d.Exclude(b.Context(), op)
	}
	if f.Verdict != providers.Excluded || !strings.Contains(f.Evidence, "tombstone") {
		b.Fatalf("a create that can be fenced: %+v", f)
	}
	if n := len(b.f.byID); n != 1 {
		b.Errorf("%d containers, want the tombstone", n)
	}
	b.f.set(func() {
		if b.f.find(nameOf(op.ID)).Status != "created" {
			b.Errorf("the tombstone was started")
		}
	})
	if ls, err := b.d.List(b.Context()); err != nil || len(ls) != 0 {
		b.Errorf("a tombstone is listed: %v %v", ls, err)
	}
	if f = b.d.Exclude(b.Context(), op); f.Verdict != providers.Excluded {
		b.Errorf("again: %+v", f)
	}
}

// TestRefusalsExecuteNothing: 404 and 409 are the engine's word that it did
// nothing (E-rules on outcome); the state is as before.
func TestRefusalsExecuteNothing(t *testing.T) {
	for _, v := range sent {
		for _, tr := range []trouble{answer404, answer409} {
			t.Run(string(v)+"/"+string(tr), func(t *testing.T) {
				b := newBench(t)
				b.f.will(b.life(v), tr)
				op := b.op(v)
				out := b.want(op, providers.Refused)
				if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Excluded {
					t.Errorf("%v, then %+v", out.Fault, f)
				}
				b.want(b.op(v), providers.Done) // another id may try again
			})
		}
	}
}

// TestStartThatFailedIsRefused: a 500 to a start is unknown, unless the engine
// keeps in the container's state that it tried and failed.
func TestStartThatFailedIsRefused(t *testing.T) {
	b := newBench(t)
	b.f.will(b.life(events.VerbStart), failStart, failBefore)
	op := b.op(events.VerbStart)
	b.want(op, providers.Refused)
	if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Excluded {
		t.Errorf("%+v", f)
	}
	op = b.op(events.VerbStart) // now an older failure is in the state, and proves nothing
	b.want(op, providers.Unknown)
	b.heldOpen(op)
	b.f.set(func() {
		for _, c := range b.f.byID {
			c.Status = "exited"
		}
	})
	if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Open {
		t.Errorf("a start time as before is no start: %+v", f)
	}
}

// TestBrokenAnswersOfACreate: an id that can't be read binds nothing (R92).
func TestBrokenAnswersOfACreate(t *testing.T) {
	for _, tr := range []trouble{garbage, hugeAnswer, shortID} {
		b := newBench(t)
		b.f.will("POST create", tr)
		op := b.op(events.VerbReserve)
		b.want(op, providers.Unknown)
		if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Open || !strings.Contains(f.Evidence, "not adopted") {
			t.Errorf("%s: %+v", tr, f)
		}
	}
}

// TestLostTombstone: a tombstone whose own answer was lost still fences.
func TestLostTombstone(t *testing.T) {
	b := newBench(t)
	b.f.will("POST create", cutBefore, cutAfter)
	op := b.op(events.VerbReserve)
	b.want(op, providers.Unknown)
	if f := b.d.Exclude(t.Context(), op); f.Verdict != providers.Open {
		t.Errorf("%+v", f)
	}
	if f := b.d.Exclude(t.Context(), op); f.Verdict != providers.Excluded {
		t.Errorf("%+v", f)
	}
}

// TestNoEngine: an engine that can't be reached executed nothing, and
// preflight says so instead of failing.
func TestNoEngine(t *testing.T) {
	d, err := Open(Config{Dir: t.TempDir(), Socket: t.TempDir() + "/none"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b := &bench{T: t, d: providers.Guard(d), id: events.EnvironmentID(newID())}
	op := b.op(events.VerbReserve)
	b.want(op, providers.Refused)
	if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Excluded {
		t.Errorf("%+v", f)
	}
	p, err := b.d.Preflight(t.Context(), plan())
	if c, failed := p.Failed(); err != nil || !failed || c.Name != "engine" {
		t.Errorf("%+v %v", p, err)
	}
	if _, err := b.d.HostFacts(t.Context()); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("host facts without a host: %v (R82)", err)
	}
}

// TestAnotherEngineProvesNothing: after the socket leads to another engine,
// its 404 is not absence, and nothing is sent to it.
func TestAnotherEngineProvesNothing(t *testing.T) {
	b := newBench(t)
	b.life(events.VerbStop)
	b.f.set(func() { b.f.id = "ENGINE-2"; clear(b.f.byID) })
	if f, err := b.d.Inspect(t.Context(), b.id, b.ref); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Errorf("inspect: %+v %v", f, err)
	}
	b.want(b.op(events.VerbDestroy), providers.Refused)
	if n := b.f.count("DELETE"); n != 0 {
		t.Errorf("%d deletes were sent to another engine", n)
	}
}

// TestSwappedContainerIsNotTouched: what has the id but not our nonce is not
// ours; nothing is killed.
func TestSwappedContainerIsNotTouched(t *testing.T) {
	b := newBench(t)
	b.life(events.VerbStop)
	b.f.set(func() {
		for _, c := range b.f.byID {
			c.Req.Labels[LabelNonce] = "another"
		}
	})
	for _, v := range []events.Verb{events.VerbStop, events.VerbDestroy} {
		b.want(b.op(v), providers.Refused)
	}
	if b.f.count("DELETE")+b.f.count("POST stop") != 0 {
		t.Error("it was touched")
	}
}

// TestRemovedByHandIsAbsent: the engine that made it vouches for its absence.
func TestRemovedByHandIsAbsent(t *testing.T) {
	b := newBench(t)
	b.life(events.VerbStop)
	b.f.set(func() { clear(b.f.byID) })
	if f, err := b.d.Inspect(t.Context(), b.id, b.ref); err != nil || f.State != events.StateAbsent {
		t.Errorf("%+v %v", f, err)
	}
	b.want(b.op(events.VerbDestroy), providers.Done)
}

// TestTornCaptureIsNoCheckpoint (R37): nothing of it is kept, the seat goes
// on, and the same id can't land later.
func TestTornCaptureIsNoCheckpoint(t *testing.T) {
	for _, tr := range []trouble{shortTar, garbage, cutAfter, failBefore} {
		b := newBench(t)
		b.f.will(b.life(events.VerbCheckpoint), tr)
		op := b.op(events.VerbCheckpoint)
		op.Arguments.CheckpointID = "cp-1"
		if out := b.do(op); out.Kind == providers.Done {
			t.Errorf("%s: done %+v", tr, out.Facts)
		}
		if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Excluded {
			t.Errorf("%s: %+v", tr, f)
		}
		if f, err := b.d.Inspect(t.Context(), b.id, b.ref); err != nil || f.State != events.StateRunning {
			t.Errorf("%s: the seat is %s %v", tr, f.State, err)
		}
		op = b.op(events.VerbCheckpoint)
		op.Arguments.CheckpointID = "cp-1"
		b.want(op, providers.Done)
	}
}

// TestMaterialIsNowhereButInside (R54, R55, scenario 65): not in the create
// request and not in the journal.
func TestMaterialIsNowhereButInside(t *testing.T) {
	b := newBench(t)
	b.want(b.op(events.VerbReserve), providers.Done)
	op := b.op(events.VerbProvision)
	var err error
	if op.Material, err = providertest.Launch(op, &events.BearerSource{Kind: events.BearerHTTPS, URL: "https://authority.example"}); err != nil {
		t.Fatal(err)
	}
	canary := string(op.Material[providers.MaterialCredential])
	b.want(op, providers.Done)
	b.f.set(func() {
		for _, c := range b.f.byID {
			if raw, _ := json.Marshal(c.Req); strings.Contains(string(raw), canary) {
				t.Error("the create request holds it")
			}
			if string(c.Files[MaterialDir+"/agent-credential"]) != canary {
				t.Error("it was not staged")
			}
			if !strings.Contains(string(c.Files[MaterialDir+"/launch-request"]), `"url":"https://authority.example"`) {
				t.Error("the bearer source was not staged with it (R46)")
			}
		}
	})
	if raw, err := json.Marshal(b.record()); err != nil || strings.Contains(string(raw), canary) {
		t.Errorf("the journal holds it (%v)", err)
	}
	op = b.op(events.VerbProvision)
	op.Material = providers.Material{"../../etc/passwd": []byte(canary)}
	if out := b.raw.Do(t.Context(), op); out.Kind != providers.Refused {
		t.Errorf("a piece that is no plain name: %s", out.Kind)
	}
}

// R51: a container reaches https sources on the engine's bridge, and no others.
func TestSourcesThatAContainerReaches(t *testing.T) {
	d, none := newBench(t).d, "none"
	https := events.BearerSource{Kind: events.BearerHTTPS, URL: "https://authority.example"}
	if err := providers.ExposeBearer(d, events.Plan{}, https); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"no network": providers.ExposeBearer(d, events.Plan{Network: &none}, https),
		"a socket":   providers.ExposeBearer(d, events.Plan{}, events.BearerSource{Kind: events.BearerSocket, Path: "/run/x"}),
	} {
		if fault.CodeOf(err) != fault.FailedPrecondition {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func (b *bench) record() any {
	b.Helper()
	ids, err := b.raw.Known()
	if err != nil || len(ids) != 1 {
		b.Fatalf("%v %v", ids, err)
	}
	raw, err := readFile(b.dir, string(ids[0])+".json")
	if err != nil {
		b.Fatal(err)
	}
	return raw
}
