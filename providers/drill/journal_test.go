package drill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// randomCalls is a seeded mix of all verbs on few environments and operation
// ids, so that they collide.
func randomCalls(seed uint64, n int) []entry {
	rng := rand.New(rand.NewPCG(seed, 1))
	now := t0
	var es []entry
	for range n {
		now = now.Add(time.Duration(rng.IntN(60_000)) * time.Millisecond)
		to := now.Add(time.Hour)
		plan := plan1()
		c := Call{Verb: Verbs[rng.IntN(len(Verbs))], Operation: events.OperationID(fmt.Sprintf("operation-%08d", rng.IntN(n))),
			Environment: envID(rng.IntN(3)), Alias: events.Alias(fmt.Sprintf("web-%d", rng.IntN(2))), Target: events.Verbs[rng.IntN(len(events.Verbs))],
			Arguments: events.Arguments{ExtendTo: &to, CheckpointID: fmt.Sprintf("cp-%d", rng.IntN(2)), MaxBytes: 1 << 20},
			Writer:    events.Writer{Instance: "one", Epoch: uint64(1 + rng.IntN(2))}, Expires: &to}
		if rng.IntN(4) > 0 { // a sensible life more often than nonsense
			c.Verb = []Verb{"reserve", "provision", "start", "checkpoint", "export", "extend"}[rng.IntN(6)]
		}
		switch c.Verb {
		case Preflight:
			c.Plan = &plan
		case DescribeImage:
			c.Image = &plan.Image
		}
		es = append(es, entry{At: now, Call: &c})
	}
	return es
}

// randomScript has every fault somewhere.
func randomScript(seed uint64) Script {
	rng := rand.New(rand.NewPCG(seed, 2))
	var s Script
	for _, f := range Faults {
		r := Rule{Verb: AnyVerb, Alias: fmt.Sprintf("web-%d", rng.IntN(2)), Nth: 1 + rng.IntN(12), Fault: f}
		if faults[f].takesDelay() {
			r.DelayMs = int64(1 + rng.IntN(100_000))
		}
		s.Rules = append(s.Rules, r)
	}
	return s
}

func stateOf(t *testing.T, m *Machine) string {
	t.Helper()
	b, err := json.Marshal(m.s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func lines(t *testing.T, es []entry) [][]byte {
	t.Helper()
	var ls [][]byte
	for _, e := range es {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		ls = append(ls, append(b, '\n'))
	}
	return ls
}

// TestReplayIsExact: what is read back from the journal is what was, for every
// verb and every fault; looking at the status in between changes nothing, and
// neither does a snapshot in the middle.
func TestReplayIsExact(t *testing.T) {
	for seed := range uint64(12) {
		script := randomScript(seed)
		if err := script.Check(); err != nil {
			t.Fatal(err)
		}
		es := append([]entry{{At: t0, Script: &script}}, randomCalls(seed, 80)...)
		live, resumed := NewMachine(script), NewMachine(script)
		for i, e := range es[1:] {
			live.Apply(e.At, *e.Call)
			live.Status(e.At.Add(time.Millisecond))
			resumed.Apply(e.At, *e.Call)
			if i == 40 {
				var again state
				if err := json.Unmarshal([]byte(stateOf(t, resumed)), &again); err != nil {
					t.Fatal(err)
				}
				resumed = &Machine{s: again}
				resumed.rebuild()
			}
		}
		read := NewMachine(Script{})
		if _, _, err := replayLines(read, bytes.NewReader(bytes.Join(lines(t, es), nil))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		end := es[len(es)-1].At.Add(time.Hour)
		for _, m := range []*Machine{live, read, resumed} {
			m.Advance(end)
		}
		if a, b, c := stateOf(t, live), stateOf(t, read), stateOf(t, resumed); a != b || a != c {
			t.Fatalf("seed %d:\nlive    %s\nread    %s\nresumed %s", seed, a, b, c)
		}
	}
}

// TestTornAtAnyByte: whatever a crash leaves of the last line, the calls
// before it are all there and nothing else is.
func TestTornAtAnyByte(t *testing.T) {
	ls := lines(t, randomCalls(3, 4))
	whole := bytes.Join(ls, nil)
	want := map[int]string{}
	m, size := NewMachine(Script{}), 0
	want[0] = stateOf(t, m)
	for _, l := range ls {
		if _, _, err := replayLines(m, bytes.NewReader(l)); err != nil {
			t.Fatal(err)
		}
		size += len(l)
		want[size] = stateOf(t, m)
	}
	good := 0
	for cut := range len(whole) + 1 {
		if _, ok := want[cut]; ok {
			good = cut
		}
		m := NewMachine(Script{})
		_, n, err := replayLines(m, bytes.NewReader(whole[:cut]))
		if err != nil || n != int64(good) || stateOf(t, m) != want[good] {
			t.Fatalf("cut at byte %d: %d whole bytes, want %d (%v)", cut, n, good, err)
		}
	}
}

func openDir(t *testing.T, dir string, rules ...Rule) *Driver {
	t.Helper()
	d, err := Open(Config{Dir: dir, Script: Script{Rules: rules}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func realOp(n int, v events.Verb) providers.Operation {
	return providers.Operation{ID: events.OperationID(fmt.Sprintf("operation-%08d", n)), Environment: envID(n), Alias: "web-1", Verb: v,
		Writer: events.Writer{Instance: "one", Epoch: 1}}
}

func TestTornTailIsCutOff(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, dir)
	if out := d.Do(t.Context(), realOp(1, events.VerbReserve)); out.Kind != providers.Done {
		t.Fatalf("%+v", out)
	}
	d.Close()
	f, err := os.OpenFile(filepath.Join(dir, journalName(0)), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, `{"at":"2026-01-02T03:04:05Z","call":{"verb":"rese`)
	f.Close()
	d = openDir(t, dir)
	if out := d.Do(t.Context(), realOp(2, events.VerbReserve)); out.Kind != providers.Done {
		t.Fatalf("%+v", out)
	}
	s, err := ReadStatus(dir, time.Now())
	if err != nil || len(s.Environments) != 2 || len(s.Calls) != 2 {
		t.Errorf("%+v %v", s, err)
	}
}

func TestUnreadableIsRefused(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a broken line in the middle": {journalName(0): "{}\nnonsense\n{}\n"},
		"a broken snapshot":           {snapshotName: "nonsense"},
		"a newer snapshot":            {snapshotName: `{"format":2}`},
	} {
		dir := t.TempDir()
		for n, text := range files {
			if err := os.WriteFile(filepath.Join(dir, n), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // and the lock is not kept
			if _, err := Open(Config{Dir: dir}); fault.CodeOf(err) != fault.FailedPrecondition {
				t.Errorf("%s: %v", name, err)
			}
		}
		for n, text := range files {
			if b, err := os.ReadFile(filepath.Join(dir, n)); err != nil || string(b) != text {
				t.Errorf("%s: %s was changed (%v)", name, n, err)
			}
		}
	}
	if _, err := ReadStatus(filepath.Join(t.TempDir(), "none"), time.Now()); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("status of nothing: %v", err)
	}
}

func TestOneManagerAtATime(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, dir)
	if _, err := Open(Config{Dir: dir}); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Errorf("opened twice: %v", err)
	}
	d.Close()
	openDir(t, dir)
}

// TestCompaction: a snapshot changes nothing, at whatever point a crash comes.
func TestCompaction(t *testing.T) {
	dir := t.TempDir()
	rule := Rule{Verb: "start", Nth: 2, Fault: Refuse}
	d := openDir(t, dir, rule)
	do := func(n int, v events.Verb, suffix string) providers.Outcome {
		op := realOp(n, v)
		op.ID += events.OperationID(suffix)
		return d.Do(t.Context(), op)
	}
	do(1, events.VerbReserve, "a")
	do(1, events.VerbProvision, "b")
	do(1, events.VerbStart, "c")
	before := d.Status()
	if err := d.j.compact(d.m, d.now()); err != nil {
		t.Fatal(err)
	}
	do(2, events.VerbReserve, "a")
	do(2, events.VerbProvision, "b")
	if out := do(2, events.VerbStart, "c"); out.Kind != providers.Refused {
		t.Errorf("the rules count anew after a snapshot: %+v", out)
	}
	after := stateOf(t, d.m)
	d.Close()
	// A crash just before and just after the rename leaves such files behind.
	for _, n := range []string{journalName(0), journalName(2)} {
		if err := os.WriteFile(filepath.Join(dir, n), []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d = openDir(t, dir, rule)
	if got := stateOf(t, d.m); got != after {
		t.Errorf("after a restart:\n%s\nbefore:\n%s", got, after)
	}
	if len(before.Environments) != 1 || len(d.Status().Environments) != 2 {
		t.Errorf("%+v", d.Status())
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "journal-*")); len(left) != 1 {
		t.Errorf("journals left: %v", left)
	}
}

// TestStatusBesideAWriter: reading takes no lock and always finds a whole
// state, also when the journal is replaced under it.
func TestStatusBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, dir)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 1; n <= 60; n++ {
			d.Do(t.Context(), realOp(n, events.VerbReserve))
			if n%10 == 0 {
				d.mu.Lock()
				if err := d.j.compact(d.m, d.now()); err != nil {
					t.Error(err)
				}
				d.mu.Unlock()
			}
		}
	}()
	last := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		s, err := ReadStatus(dir, time.Now())
		if err != nil || len(s.Environments) < last {
			t.Fatalf("%d environments after %d: %v", len(s.Environments), last, err)
		}
		last = len(s.Environments)
	}
	if last != 60 {
		t.Errorf("%d environments at the end", last)
	}
}

// TestScriptChange: another script counts anew from where it is given, and the
// past stays what it was.
func TestScriptChange(t *testing.T) {
	dir := t.TempDir()
	reopen(t, dir, func(d *Driver) { d.Do(t.Context(), realOp(1, events.VerbReserve)) }, Rule{Verb: "reserve", Nth: 1, Fault: AcceptThenDrop})
	same := Rule{Verb: "reserve", Nth: 1, Fault: Refuse}
	// The same script again goes on counting: its first reserve is over.
	for i, want := range []providers.Kind{providers.Refused, providers.Done} {
		s, err := ReadStatus(dir, time.Now())
		if err != nil || s.Calls[0].Fault != AcceptThenDrop {
			t.Fatalf("%+v %v", s, err)
		}
		reopen(t, dir, func(d *Driver) {
			if out := d.Do(t.Context(), realOp(i+2, events.VerbReserve)); out.Kind != want {
				t.Errorf("opening %d: %+v, want %s", i, out, want)
			}
		}, same)
	}
}

// reopen opens a directory for the time of f.
func reopen(t *testing.T, dir string, f func(*Driver), rules ...Rule) {
	t.Helper()
	d, err := Open(Config{Dir: dir, Script: Script{Rules: rules}})
	if err != nil {
		t.Fatal(err)
	}
	f(d)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestFullDisk: a call that can't be journaled is refused and did not happen.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no /dev/full here: %v", err)
	}
	d := openDir(t, t.TempDir())
	d.j.f.Close()
	d.j.f = full
	out := d.Do(t.Context(), realOp(1, events.VerbReserve))
	if out.Kind != providers.Refused || out.Fault.Code != fault.ResourceExhausted {
		t.Errorf("on a full disk: %+v", out)
	}
	if s := d.Status(); len(s.Environments)+len(s.Calls) != 0 {
		t.Errorf("it happened all the same: %+v", s)
	}
}

// TestConcurrentCallsAreAllKept: calls that wait together are all durable, and nothing of the
// material is in any file (R55).
func TestConcurrentCallsAreAllKept(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, dir)
	const canary = "canary-5up3r-53cr3t"
	var wg sync.WaitGroup
	for n := 1; n <= 32; n++ {
		wg.Go(func() {
			op := realOp(n, events.VerbReserve)
			op.Material = providers.Material{"agent-credential": []byte(canary)}
			if out := d.Do(t.Context(), op); out.Kind != providers.Done {
				t.Errorf("%+v", out)
			}
		})
	}
	wg.Wait()
	s, err := ReadStatus(dir, time.Now())
	if err != nil || len(s.Environments) != 32 {
		t.Errorf("%d environments: %v", len(s.Environments), err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if b, err := os.ReadFile(n); err != nil || strings.Contains(string(b), canary) {
			t.Errorf("%s holds material (%v)", filepath.Base(n), err)
		}
	}
}
