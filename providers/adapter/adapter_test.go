package adapter

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// stub is a backend whose every answer a test decides.
type stub struct {
	carry  func(context.Context, *Call) (events.Facts, error)
	landed bool
	fence  error
	state  events.ProviderState
}

func (s *stub) Name() string { return "stub" }
func (s *stub) HostFacts(ctx context.Context) (events.HostFacts, error) {
	return events.HostFacts{}, ctx.Err()
}
func (s *stub) DescribeImage(context.Context, events.Image) (events.ImageDescription, error) {
	return events.ImageDescription{}, nil
}
func (s *stub) Preflight(context.Context, events.Plan) (providers.Preflight, error) {
	return providers.Preflight{}, nil
}
func (s *stub) Supports(v events.Verb) bool { return v != events.VerbExtend }
func (s *stub) Carry(ctx context.Context, c *Call) (events.Facts, error) {
	return s.carry(ctx, c)
}
func (s *stub) Landed(context.Context, *Call) (events.Facts, bool, string, error) {
	return events.Facts{State: s.state}, s.landed, "looked", nil
}
func (s *stub) Fence(context.Context, *Call) (string, error) { return "fenced", s.fence }
func (s *stub) Observe(context.Context, *Record) (events.Facts, error) {
	return events.Facts{State: s.state}, nil
}
func (s *stub) Capture(context.Context, *Call, io.Writer) error { return nil }
func (s *stub) Logs(_ context.Context, _ *Record, from int64, _ bool, _ io.Writer) (int64, error) {
	return from, nil
}
func (s *stub) List(context.Context) ([]providers.Listed, error) { return nil, nil }
func (s *stub) Close() error                                     { return nil }

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func opOf(id events.EnvironmentID, v events.Verb) providers.Operation {
	return providers.Operation{ID: events.OperationID(newID()), Environment: id, Verb: v,
		Writer: events.Writer{Instance: events.InstanceID(strings.Repeat("a", 26)), Epoch: 2}}
}

func open2(t *testing.T, dir string, s *stub) *Driver {
	t.Helper()
	d, err := Open(dir, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func bound(context.Context, *Call) (events.Facts, error) {
	return events.Facts{Ref: "stub:1", State: events.StateReserved}, nil
}

// TestSlowAnswerIsNotLost (R85, scenario 81): the caller is back at its end;
// the call goes on, and reconciliation waits for its answer.
func TestSlowAnswerIsNotLost(t *testing.T) {
	called, release := make(chan struct{}), make(chan struct{})
	s := &stub{carry: func(ctx context.Context, c *Call) (events.Facts, error) {
		close(called)
		<-release
		return bound(ctx, c)
	}}
	d := open2(t, t.TempDir(), s)
	op := opOf(events.EnvironmentID(newID()), events.VerbReserve)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-called; cancel() }()
	if out := d.Do(ctx, op); out.Kind != providers.Unknown {
		t.Fatalf("%+v", out)
	}
	found := make(chan providers.Finding, 1)
	go func() { found <- d.Reconcile(t.Context(), op) }()
	close(release)
	if f := <-found; f.Verdict != providers.Landed || f.Facts.Ref != "stub:1" {
		t.Errorf("%+v", f)
	}
}

// TestCloseLeavesItOpen: what is under way when the manager ends has no result,
// and a new process sees it begun and sends nothing.
func TestCloseLeavesItOpen(t *testing.T) {
	dir, called, times := t.TempDir(), make(chan struct{}), 0
	s := &stub{carry: func(ctx context.Context, _ *Call) (events.Facts, error) {
		times++
		close(called)
		<-ctx.Done()
		return events.Facts{}, ctx.Err()
	}}
	d := open2(t, dir, s)
	op := opOf(events.EnvironmentID(newID()), events.VerbReserve)
	out := make(chan providers.Outcome, 1)
	go func() { out <- d.Do(t.Context(), op) }()
	<-called
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if o := <-out; o.Kind != providers.Unknown {
		t.Errorf("%+v", o)
	}
	if o := d.Do(t.Context(), op); o.Kind != providers.Unknown {
		t.Errorf("after the end: %+v", o)
	}
	d = open2(t, dir, s)
	if o := d.Do(t.Context(), op); o.Kind != providers.Unknown || times != 1 {
		t.Errorf("sent %d times: %+v", times, o)
	}
	s.fence = errors.New("no")
	if f := d.Exclude(t.Context(), op); f.Verdict != providers.Open {
		t.Errorf("without a fence: %+v", f)
	}
	s.fence = nil
	if f := d.Exclude(t.Context(), op); f.Verdict != providers.Excluded || f.Evidence != "fenced" {
		t.Errorf("with one: %+v", f)
	}
}

// TestBrokenJournalDecidesNothing: neither landed nor excluded, and nothing is
// sent on its word.
func TestBrokenJournalDecidesNothing(t *testing.T) {
	for name, raw := range map[string]string{"torn": `{"format":1`, "newer": `{"format":2}`, "another's": `{"format":1,"environment":"x"}`} {
		dir := t.TempDir()
		s := &stub{carry: func(context.Context, *Call) (events.Facts, error) { t.Error("sent"); return events.Facts{}, nil }}
		d := open2(t, dir, s)
		op := opOf(events.EnvironmentID(newID()), events.VerbReserve)
		if err := os.WriteFile(filepath.Join(dir, string(op.Environment)+".json"), []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := d.Do(t.Context(), op); out.Kind != providers.Unknown {
			t.Errorf("%s: %+v", name, out)
		}
		if f := d.Exclude(t.Context(), op); f.Verdict != providers.Open {
			t.Errorf("%s: %+v", name, f)
		}
		if _, err := d.Inspect(t.Context(), op.Environment, ""); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOperationsAreBounded: at the edge stop is still taken, others are not.
func TestOperationsAreBounded(t *testing.T) {
	s := &stub{carry: bound, state: events.StateReserved}
	d := open2(t, t.TempDir(), s)
	id := events.EnvironmentID(newID())
	if out := d.Do(t.Context(), opOf(id, events.VerbReserve)); out.Kind != providers.Done {
		t.Fatalf("%+v", out)
	}
	r, err := d.s.load(id)
	if err != nil {
		t.Fatal(err)
	}
	for len(r.Operations) < MaxOperations-1 {
		r.set(Entry{Operation: events.OperationID(newID()), Verb: events.VerbStop, Standing: Refused, Fault: fault.New(fault.Conflict, "x")})
	}
	if err := d.s.save(r); err != nil {
		t.Fatal(err)
	}
	if out := d.Do(t.Context(), opOf(id, events.VerbProvision)); out.Kind != providers.Done {
		t.Errorf("the last one: %+v", out)
	}
	if out := d.Do(t.Context(), opOf(id, events.VerbProvision)); out.Kind != providers.Refused || out.Fault.Code != fault.ResourceExhausted {
		t.Errorf("one too many: %+v", out)
	}
	if out := d.Do(t.Context(), opOf(id, events.VerbStop)); out.Kind != providers.Done {
		t.Errorf("stop: %+v", out)
	}
}
