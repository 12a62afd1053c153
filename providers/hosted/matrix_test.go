package hosted_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/drill"
	"berth/providers/hosted/server"
	"berth/providers/process"
)

// hasty is the deadline of a call whose answer does not come.
const hasty = 300 * time.Millisecond

// crossing is the way of one request that is meddled with. What it holds back
// arrives when the test lets it.
type crossing struct {
	mu   sync.Mutex
	held []func()
}

func (c *crossing) hold(arrive func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = append(c.held, arrive)
}

func (c *crossing) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, arrive := range c.held {
		arrive()
	}
	c.held = nil
}

// status answers with a bare status, before or after the provider had the request.
func status(code int, accepted bool) func(*crossing, http.Handler, http.ResponseWriter, *http.Request) {
	return func(_ *crossing, inner http.Handler, w http.ResponseWriter, r *http.Request) {
		if accepted {
			inner.ServeHTTP(httptest.NewRecorder(), r)
		}
		w.WriteHeader(code)
	}
}

// wayFaults are what the way between manager and provider does to a request.
var wayFaults = map[string]func(*crossing, http.Handler, http.ResponseWriter, *http.Request){
	"slow": func(_ *crossing, inner http.Handler, _ http.ResponseWriter, r *http.Request) {
		again := repeatable(r)
		inner.ServeHTTP(httptest.NewRecorder(), again())
		<-r.Context().Done() // the client gives up
		panic(http.ErrAbortHandler)
	},
	"reordered": func(c *crossing, inner http.Handler, _ http.ResponseWriter, r *http.Request) {
		again := repeatable(r)
		late := again().WithContext(context.WithoutCancel(r.Context()))
		c.hold(func() { inner.ServeHTTP(httptest.NewRecorder(), late) })
		panic(http.ErrAbortHandler)
	},
	"repeated later": func(c *crossing, inner http.Handler, _ http.ResponseWriter, r *http.Request) {
		again := repeatable(r)
		late := again().WithContext(context.WithoutCancel(r.Context()))
		c.hold(func() { inner.ServeHTTP(httptest.NewRecorder(), late) })
		inner.ServeHTTP(httptest.NewRecorder(), again())
		panic(http.ErrAbortHandler)
	},
	"429": status(http.StatusTooManyRequests, false), "429 after accept": status(http.StatusTooManyRequests, true),
	"500 after accept": status(http.StatusInternalServerError, true), "503 after accept": status(http.StatusServiceUnavailable, true),
}

func init() {
	for name, c := range meddling {
		wayFaults[name] = func(_ *crossing, inner http.Handler, w http.ResponseWriter, r *http.Request) { c.how(inner, w, r) }
	}
}

// ownFaults are what the simulated provider does by itself.
var ownFaults = map[string]drill.Rule{
	"accept-then-drop": {Fault: drill.AcceptThenDrop}, "accept late": {Fault: drill.AcceptThenDrop, DelayMs: 40},
	"late answer": {Fault: drill.AcceptThenLateAnswer, DelayMs: 40}, "error after accept": {Fault: drill.ErrorAfterAccept},
	"throttled after accept": {Fault: drill.ErrorAfterAccept, Code: fault.ResourceExhausted}, "never answers": {Fault: drill.NeverAnswer},
	"refuses": {Fault: drill.Refuse}, "throttles": {Fault: drill.Throttle}, "stuck": {Fault: drill.Stuck}, "swaps the machine": {Fault: drill.SwapIncarnation},
}

// heard counts how often a driver hears of an operation.
type heard struct {
	providers.Driver
	mu  sync.Mutex
	ops map[events.OperationID]int
}

func hearing(d providers.Driver) *heard { return &heard{Driver: d, ops: map[events.OperationID]int{}} }

func (h *heard) Do(ctx context.Context, op providers.Operation) providers.Outcome {
	h.mu.Lock()
	h.ops[op.ID]++
	h.mu.Unlock()
	return h.Driver.Do(ctx, op)
}

func (h *heard) of(id events.OperationID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ops[id]
}

// needs is what an environment went through before a verb makes sense.
var needs = map[events.Verb][]events.Verb{
	events.VerbReserve: {}, events.VerbProvision: {events.VerbReserve}, events.VerbStart: {events.VerbReserve, events.VerbProvision},
}

// after is the state that a verb leaves.
var after = map[events.Verb]events.ProviderState{
	events.VerbStart: events.StateRunning, events.VerbPause: events.StatePaused, events.VerbResume: events.StateRunning, events.VerbExtend: events.StateRunning,
	events.VerbCheckpoint: events.StateRunning, events.VerbRestore: events.StateRunning, events.VerbExport: events.StateRunning, events.VerbStop: events.StateStopped,
}

func init() {
	started := []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart}
	for _, v := range []events.Verb{events.VerbPause, events.VerbExtend, events.VerbCheckpoint, events.VerbStop, events.VerbDestroy} {
		needs[v] = started
	}
	needs[events.VerbResume] = append(slices.Clone(started), events.VerbPause)
	needs[events.VerbRestore] = append(slices.Clone(started), events.VerbCheckpoint)
	needs[events.VerbExport] = append(slices.Clone(started), events.VerbCheckpoint)
	needs[events.VerbDestroy] = append(slices.Clone(started), events.VerbStop)
}

// trial is one cell of the matrix: one environment, one verb that is meddled with.
type trial struct {
	*testing.T
	d       providers.Driver // the manager's
	truth   *heard
	plan    events.Plan
	id      events.EnvironmentID
	ref     string
	expires time.Time
	cp      string
}

func (c *trial) op(v events.Verb) providers.Operation {
	op := operation(c.id, v, c.ref)
	op.Plan, op.Expires = c.plan, &c.expires
	switch v {
	case events.VerbExtend:
		to := c.expires.Add(time.Minute)
		op.Arguments.ExtendTo = &to
	case events.VerbCheckpoint, events.VerbRestore:
		op.Arguments.CheckpointID = c.cp
	case events.VerbExport:
		op.Arguments.CheckpointID, op.Arguments.MaxBytes = c.cp, 1<<30
	case events.VerbStop:
		op.Arguments.Grace = "0s"
	}
	return op
}

// must runs a verb over a way that nobody meddles with. What the provider
// does not claim ends the cell.
func (c *trial) must(v events.Verb) {
	c.Helper()
	out := c.d.Do(within(c), c.op(v))
	if out.Kind == providers.Refused && out.Fault.Code == fault.Unimplemented {
		c.Skipf("not claimed: %v", out.Fault)
	}
	if out.Kind != providers.Done {
		c.Fatalf("%s: %s %v", v, out.Kind, out.Fault)
	}
	if out.Facts.Ref != "" {
		c.ref = out.Facts.Ref
	}
}

// converge runs a verb over whatever happens to it, proves what became of it,
// and goes on under another id only after the first was excluded (law 2). In
// the end it was done once.
func (c *trial) converge(v events.Verb, limit time.Duration, meddle func(do func()), late func()) {
	c.Helper()
	var tried []providers.Operation
	for landed := false; !landed; {
		if len(tried) > 3 {
			c.Fatalf("%s was excluded %d times", v, len(tried))
		}
		op := c.op(v)
		tried = append(tried, op)
		var out providers.Outcome
		meddle(func() {
			ctx, cancel := contextFor(limit)
			defer cancel()
			out = c.d.Do(ctx, op)
		})
		f := settle(c, c.d, op)
		late()
		landed = f.Verdict == providers.Landed
		if out.Kind == providers.Done && !landed || out.Kind == providers.Refused && landed {
			c.Errorf("%s: heard %s, proved %s (E8)", v, out.Kind, f.Verdict)
		}
		if landed && f.Facts.Ref != "" {
			c.ref = f.Facts.Ref
		}
		if limit, meddle = patience, plainly; out.Kind == providers.Refused && out.Fault.Code == fault.Unimplemented {
			c.Skipf("not claimed: %v", out.Fault)
		}
	}
	for i, op := range tried {
		last := i == len(tried)-1
		if f := c.d.Reconcile(within(c), op); (f.Verdict == providers.Landed) != last || f.Verdict == providers.Open {
			c.Errorf("attempt %d of %s is %s in the end", i+1, v, f.Verdict)
		}
		if again := c.d.Do(within(c), op); (again.Kind == providers.Done) != last || again.Kind == providers.Unknown {
			c.Errorf("attempt %d of %s again: %s %v (R27)", i+1, v, again.Kind, again.Fault)
		}
		if n := c.truth.of(op.ID); n > 1 {
			c.Errorf("the driver heard %d times of attempt %d of %s", n, i+1, v)
		}
	}
}

func plainly(do func()) { do() }

// cell makes an environment, meddles with one verb, looks at the truth, and
// destroys what it made.
func (c *trial) cell(v events.Verb, limit time.Duration, meddle func(do func()), late func()) {
	c.id, c.cp, c.expires = newEnvironment(), string(newEnvironment()), events.MillisUTC(time.Now().Add(time.Hour))
	for _, before := range needs[v] {
		c.must(before)
	}
	c.converge(v, limit, meddle, late)
	f, err := c.truth.Inspect(within(c), c.id, c.ref)
	if want := after[v]; want != "" && (err != nil || f.State != want) {
		c.Errorf("after %s: %s %v, want %s", v, f.State, err, want)
	}
	if v == events.VerbDestroy {
		if err == nil && f.State != events.StateAbsent {
			c.Errorf("after destroy: %s", f.State)
		}
		return
	}
	if v != events.VerbStop && len(needs[v]) >= 2 {
		c.must(events.VerbStop)
	}
	c.must(events.VerbDestroy)
}

var matrixVerbs = slices.DeleteFunc(slices.Clone(events.Verbs), func(v events.Verb) bool { return v == events.VerbDeleteFile })

// sample is the whole matrix with BERTH_PROVE=1, else some cells of it, the
// same ones every time.
func sample(t *testing.T, faults []string, some int) (cells [][2]string) {
	slices.Sort(faults)
	for _, f := range faults {
		for _, v := range matrixVerbs {
			cells = append(cells, [2]string{f, string(v)})
		}
	}
	if os.Getenv("BERTH_PROVE") == "1" {
		t.Logf("the whole matrix: %d cells", len(cells))
		return cells
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
	return cells[:some]
}

func names[V any](m map[string]V) (out []string) {
	for n := range m {
		out = append(out, n)
	}
	return out
}

// TestMatrixOfTheWay (R27, R32, R85, R86, E8, scenarios 1 3 5 6 81): every fault of the way
// on every verb, over simulated and real environments.
func TestMatrixOfTheWay(t *testing.T) {
	t.Parallel()
	t.Run("drill", func(t *testing.T) {
		d := openDrill(t, faithful)
		t.Cleanup(func() { d.Close() })
		overWay(t, d, plan(), 12)
	})
	t.Run("process", func(t *testing.T) {
		if runtime.GOOS != "linux" || testing.Short() {
			t.Skip("starts real processes of Linux; -short leaves it out")
		}
		d, err := process.New(process.Config{Dir: filepath.Join(t.TempDir(), "seats")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		overWay(t, d, runnable(t, d), 4)
	})
}

func overWay(t *testing.T, d providers.Driver, p events.Plan, some int) {
	truth := hearing(d)
	s, err := server.New(server.Config{Driver: truth, Log: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, cell := range sample(t, names(wayFaults), some) {
		name, v := cell[0], events.Verb(cell[1])
		t.Run(name+"/"+cell[1], func(t *testing.T) {
			way := &crossing{}
			m := &meddle{inner: s, how: func(inner http.Handler, w http.ResponseWriter, r *http.Request) { wayFaults[name](way, inner, w, r) }}
			c := client(t, config(behind(t, m)))
			t.Cleanup(func() { c.Close() })
			limit := patience
			if name == "slow" {
				limit = hasty
			}
			(&trial{T: t, d: c, truth: truth, plan: p}).cell(v, limit, func(do func()) { m.armed.Store(true); do(); m.armed.Store(false) }, way.release)
		})
	}
}

// TestMatrixOfTheProvider (R27, R32, R85, R86, E8, scenarios 1 5 6): every fault of the
// simulated provider on every verb, through HTTPS.
func TestMatrixOfTheProvider(t *testing.T) {
	t.Parallel()
	for _, cell := range sample(t, names(ownFaults), 14) {
		name, v := cell[0], events.Verb(cell[1])
		t.Run(name+"/"+cell[1], func(t *testing.T) {
			rule := ownFaults[name]
			rule.Verb, rule.Nth = drill.Verb(v), 1
			d, err := drill.Open(drill.Config{Dir: t.TempDir(), Script: drill.Script{Rules: []drill.Rule{rule}}})
			if err != nil {
				t.Fatal(err)
			}
			truth := hearing(d)
			e := serve(t, server.Config{Driver: truth, Log: memory.New()})
			c := client(t, config(e.addr))
			t.Cleanup(func() { c.Close(); e.stop(); d.Close() })
			limit := patience
			if rule.Fault == drill.NeverAnswer {
				limit = hasty
			}
			(&trial{T: t, d: c, truth: truth, plan: plan()}).cell(v, limit, plainly, func() {})
		})
	}
}

// TestMatrixOfQuestions (R86, R92, H14): the questions about a lost operation
// fail too, each in each way, and end in the same proof.
func TestMatrixOfQuestions(t *testing.T) {
	t.Parallel()
	for _, q := range []drill.Verb{drill.Reconcile, drill.Exclude} {
		for _, r := range []drill.Rule{{Fault: drill.AcceptThenDrop}, {Fault: drill.ErrorAfterAccept}, {Fault: drill.Refuse}, {Fault: drill.Throttle}, {Fault: drill.AcceptThenLateAnswer, DelayMs: 40}} {
			t.Run(fmt.Sprintf("%s/%s", q, r.Fault), func(t *testing.T) {
				r.Verb, r.Times = q, 2
				lost := drill.Rule{Verb: drill.Verb(events.VerbStart), Nth: 1, Fault: drill.AcceptThenDrop}
				if q == drill.Exclude {
					lost.Fault = drill.Stuck
				}
				d, err := drill.Open(drill.Config{Dir: t.TempDir(), Script: drill.Script{Rules: []drill.Rule{lost, r}}})
				if err != nil {
					t.Fatal(err)
				}
				truth := hearing(d)
				e := serve(t, server.Config{Driver: truth, Log: memory.New()})
				c := client(t, config(e.addr))
				t.Cleanup(func() { c.Close(); e.stop(); d.Close() })
				(&trial{T: t, d: c, truth: truth, plan: plan()}).cell(events.VerbStart, patience, plainly, func() {})
			})
		}
	}
}
