package drill

import (
	"context"
	"io"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// observe runs a call that mutates nothing, and waits as its answer says.
func (d *Driver) observe(ctx context.Context, c Call) (Answer, error) {
	if ctx.Err() != nil {
		return Answer{}, gaveUp(ctx)
	}
	a, err := d.apply(c)
	if err != nil {
		return Answer{}, err
	}
	after := a.After
	if a.Delivery == Never {
		after = -1
	}
	if e := d.pause(ctx, after); e != nil {
		return Answer{}, e
	}
	if a.Err != nil {
		return a, a.Err
	}
	return a, nil
}

// Reconcile tells what the journal knows of the operation.
func (d *Driver) Reconcile(ctx context.Context, op providers.Operation) providers.Finding {
	return d.ask(ctx, op, ReconcileCall(op))
}

// Exclude fences the operation id unless it has landed.
func (d *Driver) Exclude(ctx context.Context, op providers.Operation) providers.Finding {
	return d.ask(ctx, op, ExcludeCall(op))
}

func (d *Driver) ask(ctx context.Context, op providers.Operation, c Call) providers.Finding {
	if why := checkOperation(op); why != nil {
		return open(fault.From(why))
	}
	a, err := d.observe(ctx, c)
	if err != nil {
		return open(fault.From(err))
	}
	return a.Finding
}

// DescribeImage accepts any reference and returns it unchanged.
func (d *Driver) DescribeImage(ctx context.Context, image events.Image) (events.ImageDescription, error) {
	a, err := d.observe(ctx, Call{Verb: DescribeImage, Image: &image})
	return a.Image, err
}

// Preflight offers what Machine can; a refuse or throttle rule shows as a
// failed check.
func (d *Driver) Preflight(ctx context.Context, plan events.Plan) (providers.Preflight, error) {
	a, err := d.observe(ctx, Call{Verb: Preflight, Plan: &plan})
	return a.Preflight, err
}

// Inspect observes one environment. Only a destroyed one is reported absent;
// one that the provider does not know is not-found.
func (d *Driver) Inspect(ctx context.Context, id events.EnvironmentID, ref string) (events.Facts, error) {
	a, err := d.observe(ctx, Call{Verb: Inspect, Environment: id, Ref: ref})
	return a.Facts, err
}

// List is what the provider holds, by id.
func (d *Driver) List(ctx context.Context) ([]providers.Listed, error) {
	a, err := d.observe(ctx, Call{Verb: List})
	return a.Listed, err
}

// ReadFile streams an exported file from an offset.
func (d *Driver) ReadFile(ctx context.Context, id events.EnvironmentID, ref, file string, offset int64) (io.ReadCloser, error) {
	a, err := d.observe(ctx, Call{Verb: ReadFile, Environment: id, Ref: ref, File: file, Offset: offset})
	if err != nil {
		return nil, err
	}
	return &stream{ctx: ctx, d: d, a: a}, nil
}

// chunk is how much a slow stream sends at a time, in bytes.
const chunk = 4096

// stream reads an answer's bytes, slowly if it says so.
type stream struct {
	ctx context.Context
	d   *Driver
	a   Answer
	due int // bytes of the current chunk that may be read without a pause
}

// Read ends with an error, not with EOF, when ctx ends first.
func (s *stream) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, gaveUp(s.ctx)
	}
	if len(s.a.Stream) == 0 {
		return 0, io.EOF
	}
	if s.due == 0 {
		if e := s.d.pause(s.ctx, s.a.Pause); e != nil {
			return 0, e
		}
		s.due = min(chunk, len(s.a.Stream))
	}
	n := copy(p, s.a.Stream[:s.due])
	s.a.Stream, s.due = s.a.Stream[n:], s.due-n
	return n, nil
}

// Close has nothing to free.
func (s *stream) Close() error { return nil }

// Logs writes the lines that the simulated seat has printed: one for each
// operation that landed. With follow it goes on until the seat has ended.
func (d *Driver) Logs(ctx context.Context, id events.EnvironmentID, ref string, from int64, follow bool, w io.Writer) (int64, error) {
	watch := d.watch(true)
	defer d.unwatch(watch)
	a, err := d.observe(ctx, Call{Verb: Logs, Environment: id, Ref: ref, Offset: from})
	if err != nil {
		return from, err
	}
	n, err := io.Copy(w, &stream{ctx: ctx, d: d, a: a})
	from += n
	for follow && err == nil && !ended(a.Facts.State) {
		if err = d.await(ctx, watch); err != nil {
			break
		}
		var more []byte
		if more, a.Facts.State = d.outputFrom(id, from); len(more) > 0 {
			var k int
			k, err = w.Write(more)
			from += int64(k)
		}
	}
	return from, err
}

func ended(s events.ProviderState) bool {
	return s == events.StateStopped || s == events.StateAbsent
}

func (d *Driver) outputFrom(id events.EnvironmentID, offset int64) ([]byte, events.ProviderState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.m.s.Envs[id]
	if e == nil || e.Vanished {
		return nil, events.StateAbsent
	}
	return from(e.output(), offset), e.State
}
