package providers

import (
	"context"
	"io"
	"slices"

	"berth/events"
	"berth/events/fault"
)

// Guard wraps a driver so that nothing that it answers reaches a record
// unchecked: panics become errors, text is checked (R71) or scrubbed (E13),
// the image comes back unchanged (R17). The registry guards what is
// registered; guarding twice is the same as once.
func Guard(d Driver) Driver {
	if _, ok := d.(guard); ok {
		return d
	}
	return guard{d}
}

// Raw is the driver inside a guarded one, for the optional interfaces
// Watcher and Adopter.
func Raw(d Driver) Driver {
	if g, ok := d.(guard); ok {
		return g.raw
	}
	return d
}

type guard struct{ raw Driver }

func (g guard) Name() string { return g.raw.Name() }

// read runs one reading call, with its panic and its error made fit to show.
func read[T any](g guard, verb string, f func() (T, error), check func(T) error) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(g.raw, verb, p, nil)
		}
	}()
	if v, err = f(); err != nil {
		var zero T
		return zero, ScrubFault(fault.From(err), nil)
	}
	if err = check(v); err != nil {
		var zero T
		return zero, violation(g.Name(), "%s: %s", verb, fault.From(err).Message)
	}
	return v, nil
}

func (g guard) HostFacts(ctx context.Context) (events.HostFacts, error) {
	return read(g, "host facts", func() (events.HostFacts, error) { return g.raw.HostFacts(ctx) }, func(f events.HostFacts) error {
		fs := []field{{"host", f.Host}, {"architecture", f.Architecture}, {"os", f.OS}}
		for _, e := range f.Engines {
			fs = append(fs, field{"engine name", e.Name}, field{"engine version", e.Version})
		}
		if f.Host == "" || len(f.Engines) == 0 || f.ObservedAt.IsZero() {
			return fault.New(fault.Internal, "host, engines and observedAt must be set; a failed probe is an error, never zeros (R82)")
		}
		return texts(fs, nil)
	})
}

func (g guard) DescribeImage(ctx context.Context, image events.Image) (events.ImageDescription, error) {
	return read(g, "describe image", func() (events.ImageDescription, error) { return g.raw.DescribeImage(ctx, image) },
		func(d events.ImageDescription) error { return CheckImage(image, d) })
}

// Preflight has a line about the plan's connector, if it has one: what this
// provider can't run of it refuses the life before anything is reserved.
func (g guard) Preflight(ctx context.Context, plan events.Plan) (Preflight, error) {
	return read(g, "preflight", func() (Preflight, error) {
		p, err := g.raw.Preflight(ctx, plan)
		if err != nil || plan.Connector == nil {
			return p, err
		}
		c := events.Check{Name: "connector", OK: true, Detail: plan.Connector.Name}
		if err := connectable(g.raw, plan); err != nil {
			c.OK, c.Detail = false, fault.From(err).Message
		}
		p.Checks = append(slices.Clip(p.Checks), c)
		return p, nil
	}, CheckPreflight)
}

// Do is Call without a place for late answers.
func (g guard) Do(ctx context.Context, op Operation) Outcome { return Call(ctx, g.raw, op, nil) }

func (g guard) Reconcile(ctx context.Context, op Operation) Finding {
	return g.find(op, "reconcile", func() Finding { return g.raw.Reconcile(ctx, op) })
}

func (g guard) Exclude(ctx context.Context, op Operation) Finding {
	return g.find(op, "exclude", func() Finding { return g.raw.Exclude(ctx, op) })
}

func (g guard) find(op Operation, verb string, f func() Finding) (out Finding) {
	defer func() {
		if p := recover(); p != nil {
			out = checkFinding(g.raw, op, Finding{Verdict: Open, Fault: panicked(g.raw, verb, p, op.Material)})
		}
	}()
	return checkFinding(g.raw, op, f())
}

func (g guard) Inspect(ctx context.Context, id events.EnvironmentID, ref string) (events.Facts, error) {
	return read(g, "inspect", func() (events.Facts, error) { return g.raw.Inspect(ctx, id, ref) },
		func(f events.Facts) error { return CheckFacts(Operation{Environment: id}, f) })
}

// Logs keeps the next offset also when the stream broke, so that a reader can
// go on from there.
func (g guard) Logs(ctx context.Context, id events.EnvironmentID, ref string, from int64, follow bool, w io.Writer) (next int64, err error) {
	next = from
	_, err = read(g, "logs", func() (_ struct{}, err error) {
		next, err = g.raw.Logs(ctx, id, ref, from, follow, w)
		return struct{}{}, err
	}, func(struct{}) error {
		if next < from {
			return fault.New(fault.Internal, "the next offset %d is before %d", next, from)
		}
		return nil
	})
	return max(next, from), err
}

func (g guard) ReadFile(ctx context.Context, id events.EnvironmentID, ref, file string, offset int64) (io.ReadCloser, error) {
	return read(g, "read file", func() (io.ReadCloser, error) { return g.raw.ReadFile(ctx, id, ref, file, offset) }, func(r io.ReadCloser) error {
		if r == nil {
			return fault.New(fault.Internal, "no stream")
		}
		return nil
	})
}

func (g guard) List(ctx context.Context) ([]Listed, error) {
	return read(g, "list", func() ([]Listed, error) { return g.raw.List(ctx) }, func(ls []Listed) error {
		for _, l := range ls {
			if _, err := events.ParseEnvironmentID(string(l.Environment)); err != nil {
				return err
			}
			if err := texts([]field{{"ref", l.Ref}}, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

func (g guard) Close() error { return g.raw.Close() }
