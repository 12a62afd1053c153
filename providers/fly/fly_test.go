package fly

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/providertest"
)

func plan() events.Plan {
	return events.Plan{Provider: Name, Image: events.Image{Kind: "oci", Reference: "registry.example/seat@sha256:" + strings.Repeat("a", 64)},
		Resources: events.Resources{CPUs: events.MustQuantity("1"), MemoryMiB: 256}, Lifetime: time.Hour, Command: []string{"sleep", "600"}}
}

func configOf(t providertest.T, f *fakeAPI, dir string) Config {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(testToken+"\n"), 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	return Config{Dir: dir, App: "trial", TokenFile: token, BaseURL: f.url, Transport: &http.Transport{DisableKeepAlives: true}, Pace: -1}
}

// TestConformance holds the adapter to the contract over a scripted API (R1-R12,
// R26, R32-R41, R61, R86, R89, R92); it has no logs, which is refused.
func TestConformance(t *testing.T) {
	for _, c := range providertest.Checks {
		if c.Name == "logs-by-offset" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			f := newFake(t)
			c.Run(t, providertest.Options{Plan: plan(), Open: func(t providertest.T) providers.Driver {
				d, err := Open(configOf(t, f, t.TempDir()))
				if err != nil {
					t.Fatalf("%v", err)
				}
				return d
			}})
		})
	}
}

type bench struct {
	*testing.T
	f   *fakeAPI
	cfg Config
	d   providers.Driver
	id  events.EnvironmentID
	ref string
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, f: newFake(t), id: events.EnvironmentID(newID())}
	b.cfg = configOf(t, b.f, t.TempDir())
	b.open()
	t.Cleanup(func() { b.d.Close() })
	return b
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func (b *bench) open() {
	b.Helper()
	d, err := Open(b.cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.d = providers.Guard(d)
}

func (b *bench) restart() {
	b.Helper()
	if err := b.d.Close(); err != nil {
		b.Fatal(err)
	}
	b.open()
}

func (b *bench) op(v events.Verb) providers.Operation {
	op := providers.Operation{ID: events.OperationID(newID()), Environment: b.id, Alias: "trial", Verb: v, Plan: plan(), Ref: b.ref,
		Writer: events.Writer{Instance: events.InstanceID(strings.Repeat("a", 26)), Epoch: 1}, Deadline: time.Now().Add(time.Minute)}
	if v == events.VerbCheckpoint {
		op.Arguments.CheckpointID = "cp-1"
	}
	return op
}

func (b *bench) want(op providers.Operation, k providers.Kind) providers.Outcome {
	b.Helper()
	out := b.d.Do(b.Context(), op)
	if out.Kind != k {
		b.Fatalf("%s: %s %v, want %s", op.Verb, out.Kind, out.Fault, k)
	}
	if out.Kind == providers.Done && op.Verb == events.VerbReserve {
		b.ref = out.Facts.Ref
	}
	return out
}

// asking is the request that carries each verb out.
var asking = map[events.Verb]string{events.VerbReserve: "POST machines", events.VerbStart: "POST start", events.VerbStop: "POST stop",
	events.VerbDestroy: "DELETE machine", events.VerbCheckpoint: "POST exec"}

// before takes the environment as far as before the verb.
func (b *bench) before(v events.Verb) string {
	b.Helper()
	steps := []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart}
	switch v {
	case events.VerbReserve:
		steps = nil
	case events.VerbStart:
		steps = steps[:2]
	}
	for _, s := range steps {
		b.want(b.op(s), providers.Done)
	}
	return asking[v]
}

var sent = []events.Verb{events.VerbReserve, events.VerbStart, events.VerbStop, events.VerbDestroy}

// TestLostAnswersAreUnknown (R32, R86, scenario 5): whatever is lost or broken
// after a change went out, the outcome is unknown and it is never sent again.
func TestLostAnswersAreUnknown(t *testing.T) {
	for _, v := range sent {
		for _, tr := range []trouble{cutAfter, failAfter, cutBefore, failBefore, redirect} {
			t.Run(string(v)+"/"+string(tr), func(t *testing.T) {
				b := newBench(t)
				request := b.before(v)
				was := b.f.count(request)
				b.f.will(request, tr)
				op := b.op(v)
				out := b.want(op, providers.Unknown)
				if text := out.Fault.Error(); strings.Contains(text, "hunter2") || strings.Contains(text, testToken) {
					t.Errorf("the failure holds a secret: %s", text)
				}
				b.restart()
				found := b.d.Reconcile(t.Context(), op)
				landed := tr == cutAfter || tr == failAfter
				settles := landed && (v == events.VerbStop || v == events.VerbDestroy)
				if settles != (found.Verdict == providers.Landed) || !settles && found.Verdict != providers.Open {
					t.Errorf("landed %v: %+v", landed, found)
				}
				if !settles && !(v == events.VerbStart && landed) {
					if x := b.d.Exclude(t.Context(), op); x.Verdict != providers.Open || x.Fault.Code != fault.Unimplemented {
						t.Errorf("exclude without a fence: %+v", x)
					}
				}
				b.d.Do(t.Context(), op)
				if n := b.f.count(request) - was; n != 1 {
					t.Errorf("sent %d times", n)
				}
			})
		}
	}
}

// TestLostCreateIsNeverAdopted (R92): neither a list that shows the machine nor
// one that is wrongly empty ends the uncertainty, and no second create is made.
func TestLostCreateIsNeverAdopted(t *testing.T) {
	for _, tr := range []trouble{cutAfter, garbage, otherName} {
		b := newBench(t)
		b.f.will("POST machines", tr)
		op := b.op(events.VerbReserve)
		b.want(op, providers.Unknown)
		if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Open || !strings.Contains(f.Evidence, "not adopted") {
			t.Errorf("%s: listed: %+v", tr, f)
		}
		b.f.will("GET list", emptyList)
		if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Open || !strings.Contains(f.Evidence, "does not say") {
			t.Errorf("%s: wrongly empty: %+v", tr, f)
		}
		b.want(b.op(events.VerbReserve), providers.Refused)
		b.want(b.op(events.VerbDestroy), providers.Refused)
		if n := b.f.count("POST machines"); n != 1 {
			t.Errorf("%s: %d creates", tr, n)
		}
		if ls, err := b.d.List(t.Context()); err != nil || len(ls) != 0 {
			t.Errorf("%s: a stray is listed as ours: %v %v", tr, ls, err)
		}
	}
}

// TestRefusalsExecuteNothing: these statuses are the API's word that it did
// nothing; a later operation may try again.
func TestRefusalsExecuteNothing(t *testing.T) {
	for _, v := range sent {
		for _, tr := range []trouble{answer404, answer409, answer422, answer429, noCapacity} {
			b := newBench(t)
			b.f.will(b.before(v), tr)
			op := b.op(v)
			b.want(op, providers.Refused)
			if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Excluded {
				t.Errorf("%s %s: %+v", v, tr, f)
			}
			b.want(b.op(v), providers.Done)
		}
	}
}

// TestRateLimitsAreTold: a 429 is answered with the time to wait, and nothing
// is sent again in here.
func TestRateLimitsAreTold(t *testing.T) {
	b := newBench(t)
	b.f.will("POST machines", answer429)
	out := b.want(b.op(events.VerbReserve), providers.Refused)
	if out.Fault.Code != fault.ResourceExhausted || !out.Fault.Retryable {
		t.Errorf("%+v", out.Fault)
	}
	told := ""
	for _, d := range out.Fault.Details {
		told += d.Kind + " " + d.Facts["retryAfter"] + d.Facts["requestId"] + ";"
	}
	if told != "berth.fly 01TEST-fra;berth.throttled 7s;" || b.f.count("POST machines") != 1 {
		t.Errorf("told %q, sent %d times", told, b.f.count("POST machines"))
	}
	for h, want := range map[string]time.Duration{"": time.Second, "0": time.Second, "-4": time.Second, "soon": time.Second, "3600": time.Hour, "3601": time.Hour} {
		if got := retryAfter(h); got != want {
			t.Errorf("Retry-After %q: %s", h, got)
		}
	}
}

// TestLeasesAndVersions: without the lease, or with one of another version,
// nothing is sent; the lease is let go.
func TestLeasesAndVersions(t *testing.T) {
	for _, tr := range []trouble{answer409, staleLease, noNonce, cutAfter, failBefore, answer429} {
		b := newBench(t)
		b.before(events.VerbStop)
		b.f.will("POST lease", tr)
		out := b.want(b.op(events.VerbStop), providers.Refused)
		if b.f.count("POST stop") != 0 {
			t.Errorf("%s: sent without the lease: %v", tr, out.Fault)
		}
		if tr == cutAfter || tr == noNonce {
			// The lease is held by nobody who knows its nonce: until it lapses,
			// it is a conflict.
			if out := b.want(b.op(events.VerbStop), providers.Refused); out.Fault.Code != fault.Conflict {
				t.Errorf("%s: %v", tr, out.Fault)
			}
			b.f.set(func() {
				for _, m := range b.f.machines {
					m.lease = ""
				}
			})
		}
		b.want(b.op(events.VerbStop), providers.Done)
		b.f.set(func() {
			for _, m := range b.f.machines {
				if m.lease != "" {
					t.Errorf("%s: the lease is still held", tr)
				}
			}
		})
	}
}

// TestWaitsAreAskedAgain: a 408 of a wait says only that it is not so yet.
func TestWaitsAreAskedAgain(t *testing.T) {
	b := newBench(t)
	b.before(events.VerbStop)
	b.f.will("GET wait", answer408, answer408)
	b.want(b.op(events.VerbStop), providers.Done)
	if n := b.f.count("POST stop"); n != 1 {
		t.Errorf("%d stops", n)
	}
}

// R51: a machine in the cloud reaches an https source and no socket of this host.
func TestSourcesThatAMachineReaches(t *testing.T) {
	d := newBench(t).d
	if err := providers.ExposeBearer(d, events.Plan{}, events.BearerSource{Kind: events.BearerHTTPS, URL: "https://authority.example"}); err != nil {
		t.Error(err)
	}
	if err := providers.ExposeBearer(d, events.Plan{}, events.BearerSource{Kind: events.BearerSocket, Path: "/run/x"}); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Errorf("a socket: %v", err)
	}
}

// TestGateHoldsTheSeat (R54-R56): the material goes in by one exec before the
// seat begins; a start whose exec was lost is settled by the gate.
func TestGateHoldsTheSeat(t *testing.T) {
	b := newBench(t)
	b.before(events.VerbStart)
	op := b.op(events.VerbStart)
	material, err := providertest.Launch(op, &events.BearerSource{Kind: events.BearerHTTPS, URL: "https://authority.example"})
	if err != nil {
		t.Fatal(err)
	}
	canary := string(material[providers.MaterialCredential])
	op.Material = material
	b.f.will("POST exec", cutBefore)
	b.want(op, providers.Unknown)
	op.Material = nil
	if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Open || !strings.Contains(f.Evidence, "shut") {
		t.Errorf("a shut gate: %+v", f)
	}
	if f := b.d.Exclude(t.Context(), op); f.Verdict != providers.Open || f.Fault.Code != fault.Unavailable {
		t.Errorf("the gate may still be opened by the exec on its way: %+v", f)
	}
	b.f.set(func() {
		for _, m := range b.f.machines {
			m.State = "stopped" // the gate's time is over
		}
	})
	if f := b.d.Exclude(t.Context(), op); f.Verdict != providers.Excluded {
		t.Errorf("a start whose machine has ended: %+v", f)
	}
	op = b.op(events.VerbStart)
	op.Material = material
	b.f.will("POST exec", cutAfter)
	b.want(op, providers.Unknown)
	if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Landed || f.Facts.State != events.StateRunning {
		t.Errorf("an open gate: %+v", f)
	}
	b.f.set(func() {
		for _, m := range b.f.machines {
			raw, _ := json.Marshal(m.Config)
			if string(m.files["agent-credential"]) != canary || strings.Contains(string(raw), canary) {
				t.Errorf("material: %q; config %s", m.files, raw)
			}
		}
		for _, body := range b.f.bodies {
			if strings.Contains(body, canary) {
				t.Errorf("the material is in the clear in %s", body)
			}
		}
	})
	op = b.op(events.VerbStart)
	if _, err := pack(providers.Material{"x": make([]byte, MaxMaterialBytes+1)}); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("one byte too many: %v", err)
	}
	if _, err := pack(providers.Material{"x": make([]byte, MaxMaterialBytes)}); err != nil {
		t.Error(err)
	}
}

// TestDamagedCapturesAreRefused (R37): length and digest decide; nothing of a
// bad copy is kept, and the next attempt is whole.
func TestDamagedCapturesAreRefused(t *testing.T) {
	for _, tr := range []trouble{damaged, wrongSum, garbage, cutAfter, answer429, failAfter} {
		b := newBench(t)
		b.before(events.VerbCheckpoint)
		b.f.will("POST exec", tr)
		if tr == damaged {
			b.f.set(func() { b.f.faults["POST exec"] = []trouble{"", damaged} })
		}
		op := b.op(events.VerbCheckpoint)
		if out := b.d.Do(t.Context(), op); out.Kind == providers.Done {
			t.Errorf("%s: %+v", tr, out.Facts)
		}
		if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Excluded {
			t.Errorf("%s: %+v", tr, f)
		}
		out := b.want(b.op(events.VerbCheckpoint), providers.Done)
		if n := out.Facts.Checkpoint.ByteLength; n != int64(len(b.f.content)) {
			t.Errorf("%s: %d bytes", tr, n)
		}
	}
	b := newBench(t)
	b.before(events.VerbCheckpoint)
	b.f.set(func() { b.f.content = make([]byte, MaxCaptureBytes+1) })
	if out := b.want(b.op(events.VerbCheckpoint), providers.Refused); out.Fault.Code != fault.ResourceExhausted {
		t.Errorf("one byte too many: %v", out.Fault)
	}
}

// TestNobodyVouchesForA404: an unknown machine is an error; only a destroy of
// ours, with the app still there, is an absence.
func TestNobodyVouchesForA404(t *testing.T) {
	b := newBench(t)
	b.before(events.VerbStop)
	b.f.will("GET machine", answer404, unreachable)
	if f, err := b.d.Inspect(t.Context(), b.id, b.ref); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("%+v %v", f, err)
	}
	if f, err := b.d.Inspect(t.Context(), b.id, b.ref); err != nil || f.State != events.StateUnknown {
		t.Errorf("a host that is unreachable: %+v %v", f, err)
	}
	b.f.will("DELETE machine", cutAfter)
	op := b.op(events.VerbDestroy)
	b.want(op, providers.Unknown)
	b.f.set(func() { b.f.appGone = true })
	if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Open {
		t.Errorf("the whole app answers 404: %+v", f)
	}
	b.f.set(func() { b.f.appGone = false })
	if f := b.d.Reconcile(t.Context(), op); f.Verdict != providers.Landed || f.Facts.State != events.StateAbsent {
		t.Errorf("%+v", f)
	}
}

// TestSwappedMachineIsNotTouched: the id alone is not enough.
func TestSwappedMachineIsNotTouched(t *testing.T) {
	b := newBench(t)
	b.before(events.VerbStop)
	b.f.set(func() {
		for _, m := range b.f.machines {
			m.Config.Metadata = map[string]string{metaEnvironment: string(b.id), metaNonce: "another"}
		}
	})
	for _, v := range []events.Verb{events.VerbStop, events.VerbDestroy} {
		b.want(b.op(v), providers.Refused)
	}
	if b.f.count("POST stop")+b.f.count("DELETE machine") != 0 {
		t.Error("it was touched")
	}
}
