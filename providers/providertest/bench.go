package providertest

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// bench is one check's driver and the environments that it made.
type bench struct {
	T
	o      Options
	d      providers.Driver // guarded
	raw    providers.Driver // as it was opened, for what Guard does not pass on
	cancel context.CancelFunc
	ctx    context.Context
	writer events.Writer
	made   []*seat
}

// seat is one environment under trial.
type seat struct {
	b       *bench
	id      events.EnvironmentID
	alias   events.Alias
	ref     string
	expires *time.Time
	last    events.Facts
}

func newBench(t T, o Options) *bench {
	t.Helper()
	raw := o.Open(t)
	d := raw
	if r, ok := t.(*recorder); ok {
		d = traced{d, r.sent}
	}
	b := &bench{T: t, o: o, raw: raw, d: providers.Guard(d), writer: events.Writer{Instance: events.InstanceID(strings.Repeat("a", 26)), Epoch: 7}}
	// Twice the patience: a check whose calls are each in time ends by itself.
	b.ctx, b.cancel = context.WithTimeout(context.Background(), 2*o.patience())
	return b
}

// close destroys what was made, also after a failure, so that a real driver
// leaves nothing behind.
func (b *bench) close() {
	for _, s := range b.made {
		ctx, cancel := context.WithTimeout(context.Background(), b.o.patience())
		stop, destroy := s.op(events.VerbStop, events.Arguments{Grace: "0s"}), s.op(events.VerbDestroy, events.Arguments{})
		b.d.Do(ctx, stop)
		if out := b.d.Do(ctx, destroy); out.Kind != providers.Done {
			b.Errorf("destroy of %s left behind: %s %v", s.id, out.Kind, out.Fault)
		}
		cancel()
	}
	b.cancel()
	if err := b.d.Close(); err != nil {
		b.Errorf("close: %v", err)
	}
}

func (b *bench) now() time.Time {
	if b.o.Now != nil {
		return b.o.Now()
	}
	return time.Now()
}

// notClaimed ends a check of what the driver says that it can't, and refuses.
func (b *bench) notClaimed(format string, args ...any) {
	b.Helper()
	if r, ok := b.T.(*recorder); ok {
		r.deny(format, args...)
	}
	b.Skipf(format, args...)
}

func newUUID() string { return uuid.Must(uuid.NewV7()).String() }

// seat makes an environment id; nothing is asked of the driver.
func (b *bench) seat() *seat {
	return &seat{b: b, id: events.EnvironmentID(newUUID()), alias: "trial"}
}

// capabilities is the driver's own word for the plan.
func (b *bench) capabilities() events.Capabilities {
	b.Helper()
	p, err := b.d.Preflight(b.ctx, b.o.Plan)
	if err != nil {
		b.Fatalf("preflight: %v", err)
	}
	if c, failed := p.Failed(); failed {
		b.Fatalf("preflight: check %s failed: %s; the suite needs a plan that the driver can run", c.Name, c.Detail)
	}
	return p.Capabilities
}

// op is an operation with an id of its own.
func (s *seat) op(v events.Verb, a events.Arguments) providers.Operation {
	return providers.Operation{ID: events.OperationID(newUUID()), Environment: s.id, Alias: s.alias, Verb: v, Arguments: a, Plan: s.b.o.Plan,
		Ref: s.ref, Writer: s.b.writer, Deadline: s.b.now().Add(s.b.o.patience()), Expires: s.expires}
}

// do runs an operation within the patience.
func (s *seat) do(op providers.Operation) providers.Outcome {
	s.b.Helper()
	ctx, cancel := context.WithTimeout(s.b.ctx, s.b.o.patience())
	defer cancel()
	out := s.b.d.Do(ctx, op)
	if op.Verb == events.VerbReserve && out.Kind != providers.Refused {
		s.b.made = append(s.b.made, s)
		if out.Kind == providers.Done {
			s.ref = out.Facts.Ref
		}
	}
	if out.Kind == providers.Done {
		s.last = out.Facts
	}
	return out
}

// must runs a verb that has to be done.
func (s *seat) must(v events.Verb, a events.Arguments) events.Facts {
	s.b.Helper()
	return s.mustOp(s.op(v, a))
}

func (s *seat) mustOp(op providers.Operation) events.Facts {
	s.b.Helper()
	out := s.do(op)
	if out.Kind != providers.Done {
		s.b.Fatalf("%s: %s %v, want done", op.Verb, out.Kind, out.Fault)
	}
	return out.Facts
}

// refused runs an operation that has to be refused, with one of the codes if
// any are given.
func (s *seat) refused(op providers.Operation, codes ...fault.Code) {
	s.b.Helper()
	out := s.do(op)
	if out.Kind != providers.Refused {
		s.b.Errorf("%s: %s %v, want refused", op.Verb, out.Kind, out.Fault)
		return
	}
	for _, c := range codes {
		if out.Fault.Code == c {
			return
		}
	}
	if len(codes) > 0 {
		s.b.Errorf("%s refused with %v, want one of %v", op.Verb, out.Fault, codes)
	}
}

// until takes the environment through its life as far as the verb.
func (s *seat) until(last events.Verb) *seat {
	s.b.Helper()
	for _, v := range []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart} {
		s.must(v, events.Arguments{})
		if v == last {
			break
		}
	}
	return s
}

func (s *seat) inspect() events.Facts {
	s.b.Helper()
	f, err := s.b.d.Inspect(s.b.ctx, s.id, s.ref)
	if err != nil {
		s.b.Fatalf("inspect: %v", err)
	}
	return f
}

// eventually polls until the condition holds; what says what was waited for.
func (b *bench) eventually(what string, holds func() bool) {
	b.Helper()
	deadline := time.Now().Add(b.o.patience())
	for !holds() {
		if time.Now().After(deadline) {
			b.Fatalf("%s: not within %s", what, b.o.patience())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// settle brings an operation whose answer is unknown to its end by proof, as
// a manager has to: reconcile, and exclude what has not landed.
func (s *seat) settle(op providers.Operation) providers.Finding {
	s.b.Helper()
	var f providers.Finding
	s.b.eventually("settling "+string(op.Verb), func() bool {
		if f = s.b.d.Reconcile(s.b.ctx, op); f.Verdict == providers.Open && s.b.o.NoFence == "" {
			f = s.b.d.Exclude(s.b.ctx, op)
		}
		return f.Verdict != providers.Open
	})
	return f
}
