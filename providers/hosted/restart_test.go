package hosted_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/drill"
	"berth/providers/hosted/server"
)

// TestRestartBetweenAcceptAndAnswer (R32, R86, R90, law 1): an operation that a stop
// left without an answer is not run again; the driver says what became of it,
// and from then on the answer is kept.
func TestRestartBetweenAcceptAndAnswer(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]providers.Verdict{
		`{"rules":[{"verb":"start","fault":"never-answer"}]}`: providers.Landed,
		`{"rules":[{"verb":"start","fault":"stuck"}]}`:        providers.Excluded,
	} {
		e, d := overDrill(t, script)
		truth := e.cfg.Driver.(*drill.Driver)
		id, ref := provisioned(t, d)
		op := operation(id, events.VerbStart, ref)
		heard := make(chan providers.Outcome, 1)
		ctx, cancel := context.WithCancel(within(t))
		go func() { heard <- d.Do(ctx, op) }()
		starts := func() (n int) {
			for _, c := range truth.Status().Calls {
				if c.Verb == drill.Verb(events.VerbStart) && c.Operation == op.ID {
					n++
				}
			}
			return n
		}
		eventually(t, "the driver hears of the start", func() bool { return starts() == 1 })
		e.stop()
		cancel()
		if out := <-heard; out.Kind != providers.Unknown {
			t.Errorf("%s: heard %s %v", script, out.Kind, out.Fault)
		}
		e.start()
		d.Close() // what was connected to the stopped one
		if out := d.Do(within(t), op); want == providers.Landed && out.Kind != providers.Done || want == providers.Excluded && out.Kind != providers.Unknown {
			t.Errorf("%s: the same id after the restart is %s %v", script, out.Kind, out.Fault)
		}
		if f := settle(t, d, op); f.Verdict != want {
			t.Errorf("%s: %+v, want %s", script, f, want)
		}
		e.stop() // what was proved is kept by the provider itself
		e.start()
		d.Close()
		if f := d.Reconcile(within(t), op); f.Verdict != want || f.Evidence == "" {
			t.Errorf("%s: after another restart %+v", script, f)
		}
		if n := starts(); n != 1 {
			t.Errorf("%s: the driver was called %d times", script, n)
		}
	}
}

// TestFenceOutlivesRestart (H14): what was excluded before it arrived is
// refused after a restart too, and by a driver that has no fence itself.
func TestFenceOutlivesRestart(t *testing.T) {
	t.Parallel()
	stub := &stub{}
	e := serveOn(t, server.Config{Driver: stub, Log: memory.New()})
	defer func() { e.stop() }()
	d := client(t, config(e.addr))
	defer d.Close()
	op := operation(newEnvironment(), events.VerbReserve, "")
	if f := d.Exclude(within(t), op); f.Verdict != providers.Excluded {
		t.Fatalf("exclude: %+v", f)
	}
	e.stop()
	e.start()
	d.Close() // what was connected to the stopped one
	if out := d.Do(within(t), op); out.Kind != providers.Refused || out.Fault.Code != fault.Expired {
		t.Errorf("%s %v", out.Kind, out.Fault)
	}
	if n := stub.did.Load(); n != 0 {
		t.Errorf("the driver was called %d times", n)
	}
	// What did arrive is out of our hands: no fence, no proof.
	landed := operation(newEnvironment(), events.VerbReserve, "")
	stub.lose.Store(true)
	if out := d.Do(within(t), landed); out.Kind != providers.Unknown || out.Fault.Code != fault.Unavailable { // in the driver's own words
		t.Errorf("%s %v", out.Kind, out.Fault)
	}
	if f := d.Exclude(within(t), landed); f.Verdict != providers.Open || f.Fault.Code != fault.Unimplemented {
		t.Errorf("exclude of what arrived, without a fence: %+v", f)
	}
}

// TestManyUncertainAtOnce: a thousand questions after a restart never exceed
// the configured concurrency.
func TestManyUncertainAtOnce(t *testing.T) {
	t.Parallel()
	stub := &stub{}
	stub.lose.Store(true)
	e := serveOn(t, server.Config{Driver: stub, Log: memory.New(), Concurrent: 4})
	defer func() { e.stop() }()
	d := client(t, config(e.addr))
	defer d.Close()
	var ops []providers.Operation
	for range 20 {
		op := operation(newEnvironment(), events.VerbReserve, "")
		if out := d.Do(within(t), op); out.Kind != providers.Unknown {
			t.Fatalf("%+v", out)
		}
		ops = append(ops, op)
	}
	e.stop()
	e.start()
	d.Close()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for _, op := range ops {
				if f := d.Reconcile(within(t), op); f.Verdict != providers.Open || f.Fault.Code != fault.Unavailable {
					t.Errorf("%+v", f)
				}
			}
		})
	}
	wg.Wait()
	if most := stub.most.Load(); most > 4 || most == 0 {
		t.Errorf("%d questions at once, at most 4 were to be", most)
	}
}

// TestWatchTellsOfChanges (scenarios 30 33): an end by itself is told; after a
// restart of the provider everything is.
func TestWatchTellsOfChanges(t *testing.T) {
	t.Parallel()
	stub := &stub{changes: make(chan events.EnvironmentID)}
	e := serveOn(t, server.Config{Driver: stub, Log: memory.New()})
	defer func() { e.stop() }()
	d := client(t, config(e.addr))
	defer d.Close()
	id, known := newEnvironment(), newEnvironment()
	_, _ = d.Inspect(within(t), known, "")
	var mu sync.Mutex
	var told []events.EnvironmentID
	heard := func(id events.EnvironmentID) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return slices.Contains(told, id) }
	}
	ctx, cancel := context.WithCancel(within(t))
	ended := make(chan error, 1)
	go func() {
		ended <- d.Watch(ctx, func(id events.EnvironmentID) { mu.Lock(); defer mu.Unlock(); told = append(told, id) })
	}()
	// The first poll only says from where on; changes before it are not told.
	eventually(t, "a change is told", func() bool {
		select {
		case stub.changes <- id:
		default:
		}
		return heard(id)()
	})
	if heard(known)() {
		t.Error("an environment was told that did not change")
	}
	e.stop()
	e.start()
	eventually(t, "everything is told after a restart", heard(known))
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("watch: %v", err)
	}
}

// stub is a driver without a fence that can lose its answers.
type stub struct {
	did, now, most atomic.Int64
	lose           atomic.Bool
	say            string // in its failures of operations
	changes        chan events.EnvironmentID
}

func (s *stub) Name() string { return "stub" }

func (s *stub) fault() *fault.Error {
	return fault.New(fault.Unavailable, "nobody knows %s", s.say).WithOutcome(fault.Unknown)
}

func (s *stub) HostFacts(context.Context) (events.HostFacts, error) {
	return events.HostFacts{}, s.fault()
}

func (s *stub) DescribeImage(context.Context, events.Image) (events.ImageDescription, error) {
	return events.ImageDescription{}, s.fault()
}

func (s *stub) Preflight(context.Context, events.Plan) (providers.Preflight, error) {
	return providers.Preflight{}, s.fault()
}

func (s *stub) Do(context.Context, providers.Operation) providers.Outcome {
	s.did.Add(1)
	if s.lose.Load() {
		return providers.UnknownWith(s.fault())
	}
	return providers.RefusedWith(s.fault())
}

func (s *stub) Reconcile(context.Context, providers.Operation) providers.Finding {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for {
		most := s.most.Load()
		if n <= most || s.most.CompareAndSwap(most, n) {
			break
		}
	}
	return providers.Finding{Verdict: providers.Open, Evidence: "none", Fault: s.fault()}
}

func (s *stub) Exclude(context.Context, providers.Operation) providers.Finding {
	return providers.Finding{Verdict: providers.Open, Evidence: "none", Fault: fault.New(fault.Unimplemented, "no fence")}
}

func (s *stub) Inspect(context.Context, events.EnvironmentID, string) (events.Facts, error) {
	return events.Facts{}, s.fault()
}

func (s *stub) Logs(context.Context, events.EnvironmentID, string, int64, bool, io.Writer) (int64, error) {
	return 0, s.fault()
}

func (s *stub) ReadFile(context.Context, events.EnvironmentID, string, string, int64) (io.ReadCloser, error) {
	return nil, s.fault()
}

func (s *stub) List(context.Context) ([]providers.Listed, error) { return nil, nil }

func (s *stub) Close() error { return nil }

func (s *stub) Watch(ctx context.Context, fn func(events.EnvironmentID)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case id := <-s.changes:
			fn(id)
		}
	}
}
