package providers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nkeys"

	"berth/events"
	"berth/events/fault"
)

// stub is a driver of which a test says what it answers.
type stub struct {
	Driver
	name string
	do   func(ctx context.Context, op Operation) Outcome
	find func() Finding
	read func() // runs before every read
	img  events.Image
	list []Listed
	host events.HostFacts
	pre  Preflight
	fact events.Facts
	err  error
}

func (s *stub) Name() string { return s.name }
func (s *stub) Do(ctx context.Context, op Operation) Outcome {
	return s.do(ctx, op)
}
func (s *stub) reading() {
	if s.read != nil {
		s.read()
	}
}
func (s *stub) Reconcile(context.Context, Operation) Finding { s.reading(); return s.find() }
func (s *stub) Exclude(context.Context, Operation) Finding   { s.reading(); return s.find() }
func (s *stub) HostFacts(context.Context) (events.HostFacts, error) {
	s.reading()
	return s.host, s.err
}
func (s *stub) DescribeImage(context.Context, events.Image) (events.ImageDescription, error) {
	s.reading()
	return events.ImageDescription{Image: s.img, Architecture: "amd64"}, s.err
}
func (s *stub) Preflight(context.Context, events.Plan) (Preflight, error) {
	s.reading()
	return s.pre, s.err
}
func (s *stub) Inspect(context.Context, events.EnvironmentID, string) (events.Facts, error) {
	s.reading()
	return s.fact, s.err
}
func (s *stub) List(context.Context) ([]Listed, error) { s.reading(); return s.list, s.err }
func (s *stub) Logs(_ context.Context, _ events.EnvironmentID, _ string, from int64, _ bool, _ io.Writer) (int64, error) {
	s.reading()
	return from + 5, s.err
}
func (s *stub) ReadFile(context.Context, events.EnvironmentID, string, string, int64) (io.ReadCloser, error) {
	s.reading()
	return nil, s.err
}
func (s *stub) Close() error { return s.err }

// canary is a credential that must not be seen: the seed of holder.
var canary, holder = func() (string, string) {
	kp, err := nkeys.CreateUser()
	if err != nil {
		panic(err)
	}
	seed, _ := kp.Seed()
	public, _ := kp.PublicKey()
	return string(seed), public
}()

func someFacts() events.Facts {
	return events.Facts{Ref: "ref", State: events.StateRunning, ObservedAt: time.Unix(1, 0)}
}

func someOp(v events.Verb) Operation {
	op := Operation{ID: "operation-00000001", Environment: "env", Verb: v}
	op.Material, _ = Launch(op.Plan, events.LaunchRequest{Environment: op.Environment, UID: "abcdefghijklmnopqrstuvwxyz", Generation: 1,
		Credential: events.CredentialDescriptor{ID: "c1", Holder: holder}}, []byte(canary))
	return op
}

// TestCallBelievesNobody: whatever a driver does, the answer is one that can
// be recorded, and unknown wherever nobody can say (law 2, R71, E13).
func TestCallBelievesNobody(t *testing.T) {
	now := time.Unix(2, 0)
	file := events.File{ID: "f", ByteLength: 5, SHA256: strings.Repeat("a", 64)}
	for name, c := range map[string]struct {
		verb events.Verb
		args events.Arguments
		ref  string
		out  Outcome
		want Kind
		code fault.Code
	}{
		"done":                 {out: DoneWith(someFacts()), want: Done},
		"no kind":              {out: Outcome{}, want: Unknown, code: fault.Internal},
		"refused, no reason":   {out: Outcome{Kind: Refused}, want: Unknown, code: fault.Internal},
		"refused":              {out: RefusedWith(fault.New(fault.Conflict, "no")), want: Refused, code: fault.Conflict},
		"no state":             {out: DoneWith(events.Facts{ObservedAt: now}), want: Unknown, code: fault.Internal},
		"no time (R64)":        {out: DoneWith(events.Facts{State: events.StateRunning}), want: Unknown, code: fault.Internal},
		"secret in ref (R71)":  {out: DoneWith(with(func(f *events.Facts) { f.Ref = "token=abcdef" })), want: Unknown, code: fault.Internal},
		"material in it (R55)": {out: DoneWith(with(func(f *events.Facts) { f.Network = canary })), want: Unknown, code: fault.Internal},
		"stopped runs (R67)":   {out: DoneWith(with(func(f *events.Facts) { f.StoppedAt = &now })), want: Unknown, code: fault.Internal},
		"other ref (R63)":      {ref: "mine", out: DoneWith(someFacts()), want: Unknown, code: fault.Internal},
		"no ref (R92)":         {verb: events.VerbReserve, out: DoneWith(with(func(f *events.Facts) { f.Ref = "" })), want: Unknown, code: fault.Internal},
		"other checkpoint": {verb: events.VerbCheckpoint, args: events.Arguments{CheckpointID: "a"}, want: Unknown, code: fault.Internal,
			out: DoneWith(with(func(f *events.Facts) { f.Checkpoint = &events.Checkpoint{ID: "b", Kind: "cold"} }))},
		"its checkpoint": {verb: events.VerbCheckpoint, args: events.Arguments{CheckpointID: "a"}, want: Done,
			out: DoneWith(with(func(f *events.Facts) { f.Checkpoint = &events.Checkpoint{ID: "a", Kind: "cold"} }))},
		"restored, and not running": {verb: events.VerbRestore, args: events.Arguments{CheckpointID: "a"}, want: Unknown, code: fault.Internal,
			out: DoneWith(with(func(f *events.Facts) { f.State, f.Incarnation = events.StateStopped, "2" }))},
		"restored, and no other machine (R64)": {verb: events.VerbRestore, args: events.Arguments{CheckpointID: "a"}, want: Unknown, code: fault.Internal,
			out: DoneWith(with(func(f *events.Facts) { f.Incarnation = "" }))},
		"restored": {verb: events.VerbRestore, args: events.Arguments{CheckpointID: "a"}, want: Done,
			out: DoneWith(with(func(f *events.Facts) { f.Incarnation = "2" }))},
		"no file (R35)":       {verb: events.VerbExport, out: DoneWith(someFacts()), want: Unknown, code: fault.Internal},
		"file at the edge":    {verb: events.VerbExport, args: events.Arguments{MaxBytes: 5}, out: withFile(file), want: Done},
		"file too big (R37)":  {verb: events.VerbExport, args: events.Arguments{MaxBytes: 4}, out: withFile(file), want: Unknown, code: fault.Internal},
		"other kind (R33)":    {verb: events.VerbExport, args: events.Arguments{MaxBytes: 5, HostPath: "/x"}, out: withFile(file), want: Unknown, code: fault.Internal},
		"URL for a file, R35": {verb: events.VerbExport, args: events.Arguments{MaxBytes: 5}, out: withFile(events.File{ID: "https://x/y", ByteLength: 5, SHA256: file.SHA256}), want: Unknown, code: fault.Internal},
	} {
		op := someOp(c.verb)
		op.Arguments, op.Ref = c.args, c.ref
		d := &stub{name: "stub", do: func(context.Context, Operation) Outcome { return c.out }}
		out := Guard(d).Do(t.Context(), op)
		if out.Kind != c.want || fault.CodeOf(errOf(out)) != c.code {
			t.Errorf("%s: %s %v, want %s %s", name, out.Kind, out.Fault, c.want, c.code)
		}
		if raw, _ := json.Marshal(out); strings.Contains(string(raw), canary) || strings.Contains(string(raw), "abcdef") {
			t.Errorf("%s: the answer holds a secret: %s", name, raw)
		}
	}
}

func errOf(o Outcome) error {
	if o.Fault == nil {
		return nil
	}
	return o.Fault
}

func with(change func(*events.Facts)) events.Facts {
	f := someFacts()
	change(&f)
	return f
}

func withFile(x events.File) Outcome {
	return DoneWith(with(func(f *events.Facts) { f.File = &x }))
}

func TestPanicsAndErrorsAreScrubbed(t *testing.T) {
	boom := func() { panic("lost " + canary + " and password: hunter2") }
	d := Guard(&stub{name: "stub", read: boom, do: func(context.Context, Operation) Outcome { boom(); return Outcome{} }})
	check := func(what string, err error) {
		t.Helper()
		if fault.CodeOf(err) != fault.Internal || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", what, err)
		}
	}
	out := d.Do(t.Context(), someOp(events.VerbStart))
	check("do", out.Fault)
	if out.Kind != Unknown || strings.Contains(out.Fault.Message, canary) {
		t.Errorf("do: %+v", out)
	}
	for _, f := range []Finding{d.Reconcile(t.Context(), someOp(events.VerbStart)), d.Exclude(t.Context(), someOp(events.VerbStart))} {
		check("finding", f.Fault)
		if f.Verdict != Open || strings.Contains(f.Fault.Message, canary) {
			t.Errorf("finding: %+v", f)
		}
	}
	for i, err := range readAll(t.Context(), d) {
		check("read "+string(rune('0'+i)), err)
	}
	failing := Guard(&stub{name: "stub", err: errors.New("Bearer abcdefgh was refused")})
	for i, err := range readAll(t.Context(), failing) {
		if fault.CodeOf(err) != fault.Unavailable || fault.From(err).Outcome != fault.Unknown || strings.Contains(err.Error(), "abcdefgh") {
			t.Errorf("read %d: %v (E13)", i, err)
		}
	}
}

// readAll calls every reading method and returns their errors.
func readAll(ctx context.Context, d Driver) []error {
	_, e1 := d.HostFacts(ctx)
	_, e2 := d.DescribeImage(ctx, events.Image{Kind: "oci", Reference: "a"})
	_, e3 := d.Preflight(ctx, events.Plan{})
	_, e4 := d.Inspect(ctx, "env", "")
	_, e5 := d.List(ctx)
	_, e6 := d.Logs(ctx, "env", "", 0, false, io.Discard)
	_, e7 := d.ReadFile(ctx, "env", "", "f", 0)
	return []error{e1, e2, e3, e4, e5, e6, e7}
}

// TestReadsAreChecked: another image (R17), zeros (R82), an unusable probe
// (R1-R3), a listed stranger and no stream are errors, not answers.
func TestReadsAreChecked(t *testing.T) {
	d := Guard(&stub{name: "stub", list: []Listed{{Environment: "not-a-uuid"}}})
	for i, err := range readAll(t.Context(), d) {
		if i != 5 && fault.CodeOf(err) != fault.Internal { // logs are fine
			t.Errorf("read %d: %v", i, err)
		}
	}
	ok := Guard(&stub{name: "stub", img: events.Image{Kind: "oci", Reference: "a"}, fact: someFacts(),
		pre:  Preflight{Checks: []events.Check{{Name: "a", OK: true}}, ProbedAt: time.Unix(1, 0)},
		host: events.HostFacts{Host: "h", Engines: []events.Engine{{Name: "e"}}, ObservedAt: time.Unix(1, 0)}})
	for i, err := range readAll(t.Context(), ok)[:6] {
		if err != nil {
			t.Errorf("read %d: %v", i, err)
		}
	}
}

func TestFindingsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		f    Finding
		want Verdict
	}{
		"landed":           {Finding{Verdict: Landed, Facts: someFacts(), Evidence: "journal"}, Landed},
		"landed, no proof": {Finding{Verdict: Landed, Facts: someFacts()}, Open},
		"landed, no facts": {Finding{Verdict: Landed, Evidence: "journal"}, Open},
		"excluded":         {Finding{Verdict: Excluded, Evidence: "tombstone"}, Excluded},
		"excluded, silent": {Finding{Verdict: Excluded}, Open},
		"open":             {Finding{Verdict: Open}, Open},
		"nonsense":         {Finding{Verdict: "maybe", Evidence: "x"}, Open},
	} {
		d := Guard(&stub{name: "stub", find: func() Finding { return c.f }})
		f := d.Reconcile(t.Context(), someOp(events.VerbStart))
		if f.Verdict != c.want || (f.Verdict == Open) != (f.Fault != nil) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestLateAnswerIsDelivered (scenario 6, R85): the caller is back at its
// deadline whatever the driver does, and a late answer still arrives, once.
func TestLateAnswerIsDelivered(t *testing.T) {
	for name, c := range map[string]struct {
		out  Outcome
		want int
	}{
		"done":    {DoneWith(someFacts()), 1},
		"refused": {RefusedWith(fault.New(fault.Conflict, "no")), 1},
		"unknown": {UnknownWith(fault.New(fault.Unavailable, "?")), 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &stub{name: "stub", do: func(context.Context, Operation) Outcome { time.Sleep(time.Hour); return c.out }}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got := 0
			began := time.Now()
			out := Call(ctx, d, someOp(events.VerbStart), func(op Operation, o Outcome) {
				if got++; op.ID != "operation-00000001" || o.Kind != c.out.Kind {
					t.Errorf("late: %s %+v", op.ID, o)
				}
			})
			if out.Kind != Unknown || out.Fault.Code != fault.DeadlineExceeded || time.Since(began) != time.Minute {
				t.Errorf("%s: after %s: %+v", name, time.Since(began), out)
			}
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if got != c.want {
				t.Errorf("%s: %d late answers", name, got)
			}
		})
	}
}

func TestEndedContextIsUnknown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := &stub{name: "stub", do: func(context.Context, Operation) Outcome { t.Error("called"); return Outcome{} }}
	if out := Call(ctx, d, someOp(events.VerbStart), nil); out.Kind != Unknown || out.Fault.Code != fault.Cancelled {
		t.Errorf("%+v", out)
	}
}

func TestExtendIsBounded(t *testing.T) {
	at := func(s int64) *time.Time { v := time.Unix(s, 0); return &v }
	limit := events.ExtendLimit{StepMs: 10_000}
	for name, c := range map[string]struct {
		before, after *time.Time
		ok            bool
	}{
		"no deadline (R31)":  {nil, nil, true},
		"lost its deadline":  {at(1), nil, false},
		"got a deadline":     {nil, at(1), false},
		"the step (R28)":     {at(100), at(110), true},
		"more than the step": {at(100), at(111), false},
		"nothing":            {at(100), at(100), true},
		"shorter (scen. 31)": {at(100), at(99), false},
	} {
		if err := CheckExtend(c.before, c.after, limit); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCapabilitiesAreAClosedSet(t *testing.T) {
	full, err := json.Marshal(events.Capabilities{Export: true, Extend: events.ExtendLimit{StepMs: 5}})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := CheckCapabilities(full); err != nil || !c.Export || c.Extend.StepMs != 5 {
		t.Errorf("%+v %v", c, err)
	}
	for _, k := range CapabilityKeys { // each missing one is named (R1)
		var m map[string]any
		if err := json.Unmarshal(full, &m); err != nil {
			t.Fatal(err)
		}
		delete(m, k)
		raw, _ := json.Marshal(m)
		if _, err := CheckCapabilities(raw); fault.CodeOf(err) != fault.BadRequest || !strings.Contains(err.Error(), k) {
			t.Errorf("without %s: %v", k, err)
		}
	}
	for name, c := range map[string]struct{ old, new string }{
		"an extra key":    {`"gpu":false`, `"gpu":false,"warp":true`},
		"a repeated key":  {`"gpu":false`, `"gpu":false,"gpu":true`},
		"another case":    {`"gpu":false`, `"GPU":false`},
		"a null":          {`"gpu":false`, `"gpu":null`},
		"a number":        {`"gpu":false`, `"gpu":1`},
		"extend true, R2": {`{"stepMs":5}`, `true`},
		"extend zero":     {`{"stepMs":5}`, `{"stepMs":0}`},
		"extend unsafe":   {`{"stepMs":5}`, `{"stepMs":9007199254740992}`},
		"extend extra":    {`{"stepMs":5}`, `{"stepMs":5,"x":1}`},
		"not an object":   {string(full), `[]`},
		"two documents":   {string(full), string(full) + string(full)},
	} {
		raw := strings.Replace(string(full), c.old, c.new, 1)
		if raw == string(full) {
			t.Fatalf("%s: nothing was replaced in %s", name, full)
		}
		if _, err := CheckCapabilities([]byte(raw)); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := CheckCapabilities(make([]byte, MaxCapabilityBytes+1)); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("too long: %v", err)
	}
}

func FuzzCheckCapabilities(f *testing.F) {
	full, _ := json.Marshal(events.Capabilities{Extend: events.ExtendLimit{StepMs: 5}})
	f.Add(full)
	f.Add([]byte(`{"extend":false}`))
	f.Add([]byte(`{"a":{"b":[1]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := CheckCapabilities(raw)
		if err != nil {
			return
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := CheckCapabilities(again); err != nil || back != c {
			t.Fatalf("%s became %s: %v", raw, again, err)
		}
	})
}
