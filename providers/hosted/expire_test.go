package hosted_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/server"
)

// endless is a driver without deadlines: what runs in it runs until it is
// stopped. One that holds a deadline tells of it.
type endless struct {
	stub
	holds bool

	mu     sync.Mutex
	states map[events.EnvironmentID]events.ProviderState
	stops  map[events.EnvironmentID][]providers.Operation
	refuse int  // so many stops
	lost   bool // answers of stops
}

func newEndless() *endless {
	return &endless{states: map[events.EnvironmentID]events.ProviderState{}, stops: map[events.EnvironmentID][]providers.Operation{}}
}

func (d *endless) facts(id events.EnvironmentID) events.Facts {
	f := events.Facts{Ref: string(id), State: d.states[id], ObservedAt: events.MillisUTC(time.Now())}
	if d.holds {
		at := f.ObservedAt.Add(time.Hour)
		f.ExpiresAt = &at
	}
	return f
}

func (d *endless) Do(_ context.Context, op providers.Operation) providers.Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch op.Verb {
	case events.VerbStart:
		d.states[op.Environment] = events.StateRunning
	case events.VerbStop:
		if d.stops[op.Environment] = append(d.stops[op.Environment], op); len(d.stops[op.Environment]) <= d.refuse {
			return providers.RefusedWith(fault.New(fault.FailedPrecondition, "not now"))
		}
		d.states[op.Environment] = events.StateStopped
		if d.lost {
			return providers.UnknownWith(d.fault())
		}
	}
	return providers.DoneWith(d.facts(op.Environment))
}

func (d *endless) Reconcile(_ context.Context, op providers.Operation) providers.Finding {
	d.mu.Lock()
	defer d.mu.Unlock()
	return providers.Finding{Verdict: providers.Landed, Facts: d.facts(op.Environment), Evidence: "it is stopped"}
}

func (d *endless) Inspect(_ context.Context, id events.EnvironmentID, _ string) (events.Facts, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.facts(id), nil
}

func (d *endless) state(id events.EnvironmentID) events.ProviderState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.states[id]
}

func (d *endless) stopped(id events.EnvironmentID) func() bool {
	return func() bool { return d.state(id) == events.StateStopped }
}

func (d *endless) stopsOf(id events.EnvironmentID) []providers.Operation {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stops[id]
}

// moving is a wall clock that a test sets forward: no deadline of a test comes
// by itself, however slow the machine is.
type moving struct{ ahead atomic.Int64 }

func (m *moving) now() time.Time          { return time.Now().Add(time.Duration(m.ahead.Load())) }
func (m *moving) forward(d time.Duration) { m.ahead.Add(int64(d)) }

// until is an operation on an environment that ends so long from now.
func until(id events.EnvironmentID, v events.Verb, left time.Duration) providers.Operation {
	op, at := operation(id, v, string(id)), time.Now().Add(left)
	op.Expires = &at
	return op
}

// TestServerEndsWhatTheDriverDoesNot (R31, scenario 30): an environment of a
// driver without deadlines is stopped at its end, by one journaled operation
// under the writer that asked, and can't be started or restored.
func TestServerEndsWhatTheDriverDoesNot(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*endless) (stops int){
		"at once":       func(*endless) int { return 1 },
		"refused twice": func(d *endless) int { d.refuse = 2; return 3 },
		"lost answer":   func(d *endless) int { d.lost = true; return 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newEndless()
			stops := set(d)
			var clock moving
			e := serve(t, server.Config{Driver: d, Log: memory.New(), Clock: clock.now})
			defer func() { e.stop() }()
			c := client(t, config(e.addr))
			defer c.Close()
			id, free := newEnvironment(), newEnvironment()
			for _, op := range []providers.Operation{until(id, events.VerbStart, time.Hour), operation(free, events.VerbStart, string(free))} {
				if out := c.Do(within(t), op); out.Kind != providers.Done {
					t.Fatalf("%s %v", out.Kind, out.Fault)
				}
			}
			clock.forward(2 * time.Hour)
			eventually(t, "the end of the environment", d.stopped(id))
			for _, v := range []events.Verb{events.VerbStart, events.VerbRestore} {
				out := c.Do(within(t), until(id, v, -time.Second))
				if out.Kind != providers.Refused || out.Fault.Code != fault.FailedPrecondition || !strings.Contains(out.Fault.Message, "lifetime ended") {
					t.Errorf("%s after the end: %s %v", v, out.Kind, out.Fault)
				}
			}
			if d.state(free) != events.StateRunning {
				t.Error("an environment without a deadline was ended")
			}
			e.stop()
			e.start() // what was done is known
			got := d.stopsOf(id)
			if len(got) != stops {
				t.Fatalf("%d stops, not %d", len(got), stops)
			}
			seen := map[events.OperationID]bool{}
			for _, op := range got {
				if seen[op.ID] || op.Writer.Instance != operation(id, events.VerbStop, "").Writer.Instance || op.Ref != string(id) {
					t.Errorf("%+v", op)
				}
				seen[op.ID] = true
			}
		})
	}
}

// TestDeadlineOutlivesTheServer (R31, law 1): the deadline is in the journal; a
// server that was down at the end ends the environment when it starts again.
func TestDeadlineOutlivesTheServer(t *testing.T) {
	t.Parallel()
	d := newEndless()
	var clock moving
	e := serve(t, server.Config{Driver: d, Log: memory.New(), Clock: clock.now})
	defer func() { e.stop() }()
	c := client(t, config(e.addr))
	defer c.Close()
	id := newEnvironment()
	if out := c.Do(within(t), until(id, events.VerbStart, time.Hour)); out.Kind != providers.Done {
		t.Fatalf("%s %v", out.Kind, out.Fault)
	}
	e.stop()
	if n := len(d.stopsOf(id)); n != 0 {
		t.Errorf("%d stops before the end", n)
	}
	clock.forward(2 * time.Hour)
	e.start()
	eventually(t, "the end of the environment", d.stopped(id))
}

// TestDriverKeepsItsDeadlines: where the driver has observed a deadline the
// server ends nothing, whatever its own clock says.
func TestDriverKeepsItsDeadlines(t *testing.T) {
	t.Parallel()
	held, free := newEndless(), newEndless()
	held.holds = true
	var clock moving
	ids := [2]events.EnvironmentID{newEnvironment(), newEnvironment()}
	for n, d := range []*endless{held, free} {
		e := serve(t, server.Config{Driver: d, Log: memory.New(), Clock: clock.now})
		defer e.stop()
		c := client(t, config(e.addr))
		defer c.Close()
		if out := c.Do(within(t), until(ids[n], events.VerbStart, time.Hour)); out.Kind != providers.Done {
			t.Fatalf("%s %v", out.Kind, out.Fault)
		}
	}
	clock.forward(2 * time.Hour)
	eventually(t, "the end of the one without", free.stopped(ids[1]))
	if n := len(held.stopsOf(ids[0])); n != 0 {
		t.Errorf("%d stops of the one with", n)
	}
}
