package hosted

import (
	"context"
	"slices"
	"sync"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/wire"
)

// Driver is a provider on another machine. It holds no state of environments
// but which it heard of, for Watch.
type Driver struct {
	name  string
	clock func() time.Time
	link  *link

	mu       sync.Mutex
	known    map[events.EnvironmentID]struct{}
	defaults *providers.Defaults // as the other side last said
	asked    time.Time           // when it did
}

// maxKnown bounds the environments that Watch reports when changes may have
// been missed; beyond it any of them is forgotten.
const maxKnown = 100_000

var (
	_ providers.Driver  = (*Driver)(nil)
	_ providers.Watcher = (*Driver)(nil)
)

// New makes a driver and reads its files; it does not connect, so that a
// manager starts while a provider is away. bad-request names what is wrong.
func New(c Config) (*Driver, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	l, err := newLink(c)
	if err != nil {
		return nil, err
	}
	d := &Driver{name: c.Name, clock: c.Clock, link: l, known: map[events.EnvironmentID]struct{}{}}
	if d.clock == nil {
		d.clock = time.Now
	}
	return d, nil
}

// Name is the configured name.
func (d *Driver) Name() string { return d.name }

// Close closes idle connections; environments go on.
func (d *Driver) Close() error {
	d.link.close()
	return nil
}

// Provider asks who answers.
func (d *Driver) Provider(ctx context.Context) (wire.Provider, error) {
	return ask[wire.Provider](ctx, d, wire.PathProvider, struct{}{})
}

// HostFacts are those of the machine behind the endpoint.
func (d *Driver) HostFacts(ctx context.Context) (events.HostFacts, error) {
	return ask[events.HostFacts](ctx, d, wire.PathHost, struct{}{})
}

// DescribeImage asks the provider of the image (R16, R17).
func (d *Driver) DescribeImage(ctx context.Context, image events.Image) (events.ImageDescription, error) {
	return ask[events.ImageDescription](ctx, d, wire.PathImage, wire.Imaged{Image: image})
}

// Preflight probes the plan there. Capabilities with a missing or an extra
// key are refused (R1).
func (d *Driver) Preflight(ctx context.Context, plan events.Plan) (providers.Preflight, error) {
	p, err := ask[wire.Preflight](ctx, d, wire.PathPreflight, wire.Planned{Plan: plan})
	if err != nil {
		return providers.Preflight{}, err
	}
	c, err := providers.CheckCapabilities(p.Capabilities)
	if err != nil {
		return providers.Preflight{}, err
	}
	out := providers.Preflight{Checks: p.Checks, Capabilities: c, Network: p.Network}
	if p.ProbedAt > 0 && p.ProbedAt <= events.MaxSafeInteger {
		out.ProbedAt = time.UnixMilli(p.ProbedAt).UTC()
	}
	return out, nil
}

// Do sends one mutation, once.
func (d *Driver) Do(ctx context.Context, op providers.Operation) providers.Outcome {
	if !slices.Contains(events.Verbs, op.Verb) {
		return providers.RefusedWith(fault.New(fault.Unimplemented, "provider %s has no verb %q", d.name, events.Scrub(string(op.Verb))))
	}
	if op.Arguments.HostPath != "" {
		return providers.RefusedWith(fault.New(fault.Unimplemented, "provider %s is on another machine and can't write to a path of this one; export a provider file (R34)", d.name))
	}
	w := wire.Of(op)
	if err := w.Check(); err != nil {
		return providers.RefusedWith(fault.From(err))
	}
	d.remember(op.Environment)
	body, err := encode(w)
	if err != nil {
		return providers.RefusedWith(fault.From(err)) // nothing was sent
	}
	var a wire.Outcome
	if err := d.link.post(ctx, wire.OperationPath(op.Verb), body, &a); err != nil {
		return providers.UnknownWith(err)
	}
	if a.Operation != op.ID {
		return providers.UnknownWith(fault.New(fault.Unavailable, "provider %s answered another operation than %s", d.name, op.ID))
	}
	switch {
	case a.Outcome == providers.Done && a.Facts != nil:
		if op.Verb == events.VerbDestroy {
			d.forget(op.Environment)
		}
		return providers.DoneWith(*a.Facts)
	case a.Outcome == providers.Refused && a.Fault != nil:
		return providers.RefusedWith(d.link.clean(a.Fault))
	case a.Outcome == providers.Unknown && a.Fault != nil:
		return providers.UnknownWith(d.link.clean(a.Fault))
	}
	return providers.UnknownWith(fault.New(fault.Unavailable, "provider %s gave no usable answer to operation %s", d.name, op.ID))
}

// Reconcile asks what became of op.
func (d *Driver) Reconcile(ctx context.Context, op providers.Operation) providers.Finding {
	return d.find(ctx, wire.PathReconcile, op)
}

// Exclude asks that op can never land.
func (d *Driver) Exclude(ctx context.Context, op providers.Operation) providers.Finding {
	return d.find(ctx, wire.PathExclude, op)
}

func (d *Driver) find(ctx context.Context, path string, op providers.Operation) providers.Finding {
	open := func(e *fault.Error) providers.Finding {
		return providers.Finding{Verdict: providers.Open, Evidence: "no answer", Fault: e.WithOutcome(fault.Unknown)}
	}
	d.remember(op.Environment)
	a, err := ask[wire.Finding](ctx, d, path, wire.Asked(op))
	if err != nil {
		return open(fault.From(err))
	}
	f := providers.Finding{Verdict: a.Verdict, Evidence: a.Evidence, Fault: d.link.clean(a.Fault)}
	switch {
	case a.Operation != op.ID:
		return open(fault.New(fault.Unavailable, "provider %s answered of another operation than %s", d.name, op.ID))
	case a.Verdict == providers.Landed && a.Facts == nil:
		return open(fault.New(fault.Unavailable, "provider %s says that operation %s landed, without facts", d.name, op.ID))
	case a.Verdict != providers.Landed && a.Verdict != providers.Excluded && a.Verdict != providers.Open:
		return open(fault.New(fault.Unavailable, "provider %s gave no usable answer about operation %s", d.name, op.ID))
	case a.Facts != nil:
		f.Facts = *a.Facts
	}
	return f
}

// Inspect observes the environment there (R64).
func (d *Driver) Inspect(ctx context.Context, id events.EnvironmentID, ref string) (events.Facts, error) {
	d.remember(id)
	return ask[events.Facts](ctx, d, wire.PathInspect, wire.Seen{Environment: id, Ref: ref})
}

// List is evidence for a person (R92).
func (d *Driver) List(ctx context.Context) ([]providers.Listed, error) {
	l, err := ask[wire.List](ctx, d, wire.PathList, struct{}{})
	if err != nil {
		return nil, err
	}
	var out []providers.Listed
	for _, e := range l.Environments {
		out = append(out, providers.Listed(e))
	}
	return out, nil
}

// ask makes one call that changes nothing.
func ask[Out any](ctx context.Context, d *Driver, path string, in any) (out Out, err error) {
	body, err := encode(in)
	if err != nil {
		return out, err
	}
	if e := d.link.post(ctx, path, body, &out); e != nil {
		var zero Out
		return zero, e
	}
	return out, nil
}

func (d *Driver) remember(id events.EnvironmentID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.known[id]; !ok && len(d.known) >= maxKnown {
		for other := range d.known {
			delete(d.known, other)
			break
		}
	}
	d.known[id] = struct{}{}
}

func (d *Driver) forget(id events.EnvironmentID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, id)
}
