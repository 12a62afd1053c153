package sagastest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"runtime"
	"sync"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/internal/handoff"
	"berth/providers"
	"berth/providers/drill"
)

// Provider is drill.Machine behind the driver contract, in memory: it goes on
// when an engine dies, as a remote provider does.
type Provider struct {
	mu            sync.Mutex
	m             *drill.Machine
	next          time.Time
	watches       map[chan struct{}]struct{}
	over          chan struct{}
	handed        map[events.OperationID][]byte
	running, peak int // mutations that are being answered, and the most of them
}

var (
	_ providers.Driver  = (*Provider)(nil)
	_ providers.Watcher = (*Provider)(nil)
)

// NewProvider is an empty provider that follows the script.
func NewProvider(s drill.Script) *Provider {
	return &Provider{m: drill.NewMachine(s), watches: map[chan struct{}]struct{}{}, over: make(chan struct{}), handed: map[events.OperationID][]byte{}}
}

// TakesHandoff implements providers.Delegator.
func (p *Provider) TakesHandoff(context.Context) error { return nil }

// Handed is the hand-off that each operation brought, those that brought one.
func (p *Provider) Handed() map[events.OperationID][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.handed)
}

// SetScript replaces the script.
func (p *Provider) SetScript(s drill.Script) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.m.SetScript(s)
}

// Status is the truth at this moment.
func (p *Provider) Status() drill.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.m.Status(time.Now())
}

// Peak is the largest number of mutations that were being answered at once.
func (p *Provider) Peak() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}

func (p *Provider) apply(c drill.Call) drill.Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.m.Apply(time.Now(), c)
	p.ring()
	return a
}

// ring wakes the watchers if the next moment is another one now.
func (p *Provider) ring() {
	next, _ := p.m.Next()
	if next.Equal(p.next) {
		return
	}
	p.next = next
	for w := range p.watches {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	var at <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		at = t.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-at:
		return nil
	}
}

// Name is "drill".
func (p *Provider) Name() string { return "drill" }

// HostFacts never fails.
func (p *Provider) HostFacts(context.Context) (events.HostFacts, error) {
	return events.HostFacts{Host: "drill", Architecture: runtime.GOARCH, OS: runtime.GOOS,
		Engines: []events.Engine{{Name: "drill"}}, ObservedAt: events.MillisUTC(time.Now())}, nil
}

// Do runs one mutation as the script says; a late answer comes when it comes.
func (p *Provider) Do(ctx context.Context, op providers.Operation) providers.Outcome {
	p.mu.Lock()
	p.running++
	p.peak = max(p.peak, p.running)
	if b, ok := op.Material[handoff.Purpose]; ok {
		p.handed[op.ID] = b
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.running--
		p.mu.Unlock()
	}()
	a := p.apply(drill.CallOf(op))
	if a.HostFile != nil {
		if err := os.WriteFile(a.HostFile.Path, a.HostFile.Bytes, 0o600); err != nil {
			return providers.UnknownWith(fault.From(err))
		}
	}
	switch a.Delivery {
	case drill.Never:
		return providers.UnknownWith(fault.From(wait(ctx, -1)))
	case drill.Late:
		select {
		case <-time.After(a.After):
		case <-p.over:
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.m.Settle(time.Now(), op.Environment, op.ID)
	case drill.Answered:
		if err := wait(ctx, a.After); err != nil && a.After > 0 {
			return providers.UnknownWith(fault.From(err))
		}
	}
	return a.Outcome
}

func (p *Provider) read(ctx context.Context, c drill.Call) (drill.Answer, error) {
	a := p.apply(c)
	after := a.After
	if a.Delivery == drill.Never {
		after = -1
	}
	if err := wait(ctx, after); err != nil {
		return drill.Answer{Finding: providers.Finding{Verdict: providers.Open, Fault: fault.From(err)}}, fault.From(err)
	}
	if a.Err != nil {
		return a, a.Err
	}
	return a, nil
}

// Reconcile tells what the provider knows of the operation.
func (p *Provider) Reconcile(ctx context.Context, op providers.Operation) providers.Finding {
	a, _ := p.read(ctx, drill.ReconcileCall(op))
	return a.Finding
}

// Exclude is a real fence.
func (p *Provider) Exclude(ctx context.Context, op providers.Operation) providers.Finding {
	a, _ := p.read(ctx, drill.ExcludeCall(op))
	return a.Finding
}

// DescribeImage accepts any reference.
func (p *Provider) DescribeImage(ctx context.Context, i events.Image) (events.ImageDescription, error) {
	a, err := p.read(ctx, drill.Call{Verb: drill.DescribeImage, Image: &i})
	return a.Image, err
}

// Preflight offers what the machine can.
func (p *Provider) Preflight(ctx context.Context, plan events.Plan) (providers.Preflight, error) {
	a, err := p.read(ctx, drill.Call{Verb: drill.Preflight, Plan: &plan})
	return a.Preflight, err
}

// Inspect observes one environment.
func (p *Provider) Inspect(ctx context.Context, id events.EnvironmentID, ref string) (events.Facts, error) {
	a, err := p.read(ctx, drill.Call{Verb: drill.Inspect, Environment: id, Ref: ref})
	return a.Facts, err
}

// Logs writes what there is.
func (p *Provider) Logs(ctx context.Context, id events.EnvironmentID, ref string, from int64, _ bool, w io.Writer) (int64, error) {
	a, err := p.read(ctx, drill.Call{Verb: drill.Logs, Environment: id, Ref: ref, Offset: from})
	if err != nil {
		return from, err
	}
	n, err := w.Write(a.Stream)
	return from + int64(n), err
}

// ReadFile streams an exported file.
func (p *Provider) ReadFile(ctx context.Context, id events.EnvironmentID, ref, file string, offset int64) (io.ReadCloser, error) {
	a, err := p.read(ctx, drill.Call{Verb: drill.ReadFile, Environment: id, Ref: ref, File: file, Offset: offset})
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(a.Stream)), nil
}

// List is what the provider holds.
func (p *Provider) List(ctx context.Context) ([]providers.Listed, error) {
	a, err := p.read(ctx, drill.Call{Verb: drill.List})
	return a.Listed, err
}

// Close does nothing: the environments go on.
func (p *Provider) Close() error { return nil }

// Watch tells of what happens by itself, until ctx ends.
func (p *Provider) Watch(ctx context.Context, fn func(events.EnvironmentID)) error {
	bell := make(chan struct{}, 1)
	p.mu.Lock()
	p.watches[bell] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.watches, bell)
		p.mu.Unlock()
	}()
	for {
		p.mu.Lock()
		p.m.Advance(time.Now())
		ids := p.m.TakeChanged()
		next, any := p.m.Next()
		p.mu.Unlock()
		for _, id := range ids {
			fn(id)
		}
		var at <-chan time.Time
		if any {
			at = time.After(max(time.Until(next), time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-bell:
		case <-at:
		}
	}
}

// TakesConnector implements providers.Connector, as the drill driver does.
func (p *Provider) TakesConnector(events.Connector) error { return nil }
