package plane

import (
	"context"
	"errors"

	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

func (p *Plane) describe(_ context.Context, _ *call, _ commands.Empty) (commands.DescribeResult, error) {
	out := commands.DescribeResult{Name: "berth", Version: p.Version, Space: p.Space, Digest: commands.Digest(), Commands: []commands.Description{}}
	for _, c := range commands.Table {
		out.Commands = append(out.Commands, c.Describe())
	}
	return out, nil
}

func (p *Plane) status(ctx context.Context, _ *call, _ commands.Empty) (commands.StatusResult, error) {
	tip, err := p.Log.Tip(ctx)
	if err != nil {
		return commands.StatusResult{}, err
	}
	out := commands.StatusResult{
		InstanceID: p.Self.Instance, Epoch: p.Self.Epoch, Space: p.Space, Caller: p.Caller, Version: p.Version, Durability: p.Durability, Providers: p.Providers.Names(),
		Connectors: p.Connectors.Reports(), ClassSpawn: p.classSpawn,
		StartedAt: rfc3339(p.started), UptimeMs: p.Now().Sub(p.started).Milliseconds(), Tip: tip, Engine: p.Engine(), Requests: p.Requests(),
	}
	p.Views.Read(func(v *projections.Views) { out.AsOf, out.Counts = v.Sequence(), v.Counts() })
	return out, nil
}

func (p *Plane) hosts(ctx context.Context, _ *call, _ commands.Empty) (commands.HostsResult, error) {
	out := commands.HostsResult{InstanceID: p.Self.Instance, Providers: map[string]events.HostFacts{}, Headroom: map[string]events.HostCapacity{}, Unprobed: map[string]*fault.Error{}}
	for name, a := range p.probeAll(ctx) {
		if a.err != nil {
			out.Unprobed[name] = fault.From(a.err) // R82: never zeros in the place of what is not known
			continue
		}
		out.Providers[name] = a.facts
		p.headroom.mu.Lock()
		out.Headroom[name] = projections.Headroom(a.facts.Allocatable, p.against(name))
		p.headroom.mu.Unlock()
	}
	p.Views.Read(func(v *projections.Views) { out.AsOf, out.Instances = v.Sequence(), v.Hosts() })
	return out, nil
}

// errPage ends a scan whose page is full.
var errPage = errors.New("the page is full")

func (p *Plane) events(ctx context.Context, _ *call, in commands.EventsInput) (commands.EventsResult, error) {
	from := max(in.From, 1)
	out := commands.EventsResult{Items: []commands.CloudEvent{}, Next: from}
	wait, err := in.WaitFor()
	if err != nil {
		return out, err
	}
	if wait > 0 {
		waiting, cancel := context.WithTimeout(ctx, wait)
		err := p.Views.WaitFor(waiting, from)
		cancel()
		if err != nil && fault.CodeOf(err) != fault.DeadlineExceeded {
			return out, err
		}
	}
	if out.Tip, err = p.Log.Tip(ctx); err != nil || from > out.Tip {
		return out, err
	}
	commits, size := 0, 0
	err = p.Log.Scan(ctx, from-1, func(r events.Record) error {
		items := commands.CloudEventsOf(p.Space, r)
		for _, i := range items {
			size += len(i.Data) + eventOverhead
		}
		// The first commit always fits: its body is at most 512 KiB.
		if commits > 0 && (commits == pageSize(in.Limit) || size > commands.MaxReply) {
			return errPage
		}
		commits++
		out.Items = append(out.Items, items...)
		out.Next = r.Sequence + 1
		return nil
	})
	if err != nil && !errors.Is(err, errPage) {
		return out, err
	}
	out.Tip = max(out.Tip, out.Next-1)
	return out, nil
}

// eventOverhead is how much longer a rendered event is than its data, at most.
const eventOverhead = 1200
