package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"berth/events"
	"berth/providers"
)

// maxSent is how many of a failed check's last calls its result keeps.
const maxSent = 12

// traced writes down what a check sends and what it hears, for the author of
// a provider that failed it. Material is never written down (R55).
type traced struct {
	providers.Driver
	note func(line string)
}

func (t traced) call(what string, ended any) { t.note(fmt.Sprintf("%s -> %v", what, ended)) }

func sent(op providers.Operation) string {
	args, err := json.Marshal(op.Arguments)
	if err != nil {
		args = []byte("{}")
	}
	return fmt.Sprintf("%s id %s environment %s ref %q epoch %d arguments %s", op.Verb, op.ID, op.Environment, op.Ref, op.Writer.Epoch, args)
}

func said(state events.ProviderState, err error) string {
	if err != nil {
		return events.Scrub(err.Error())
	}
	return string(state)
}

// Do implements providers.Driver.
func (t traced) Do(ctx context.Context, op providers.Operation) providers.Outcome {
	out := t.Driver.Do(ctx, op)
	answer := fmt.Sprintf("%s, state %q", out.Kind, out.Facts.State)
	if out.Fault != nil {
		answer = fmt.Sprintf("%s: %s", out.Kind, events.Scrub(out.Fault.Error()))
	}
	t.call(sent(op), answer)
	return out
}

// Reconcile implements providers.Driver.
func (t traced) Reconcile(ctx context.Context, op providers.Operation) providers.Finding {
	f := t.Driver.Reconcile(ctx, op)
	t.call("reconcile of "+sent(op), found(f))
	return f
}

// Exclude implements providers.Driver.
func (t traced) Exclude(ctx context.Context, op providers.Operation) providers.Finding {
	f := t.Driver.Exclude(ctx, op)
	t.call("exclude of "+sent(op), found(f))
	return f
}

func found(f providers.Finding) string {
	if f.Fault != nil {
		return fmt.Sprintf("%s: %s", f.Verdict, events.Scrub(f.Fault.Error()))
	}
	return fmt.Sprintf("%s, evidence %q", f.Verdict, events.Scrub(f.Evidence))
}

// Inspect implements providers.Driver.
func (t traced) Inspect(ctx context.Context, id events.EnvironmentID, ref string) (events.Facts, error) {
	f, err := t.Driver.Inspect(ctx, id, ref)
	t.call(fmt.Sprintf("inspect environment %s ref %q", id, ref), said(f.State, err))
	return f, err
}

// Preflight implements providers.Driver.
func (t traced) Preflight(ctx context.Context, plan events.Plan) (providers.Preflight, error) {
	p, err := t.Driver.Preflight(ctx, plan)
	t.call("preflight", said(events.ProviderState(fmt.Sprintf("%d checks", len(p.Checks))), err))
	return p, err
}

// DescribeImage implements providers.Driver.
func (t traced) DescribeImage(ctx context.Context, image events.Image) (events.ImageDescription, error) {
	d, err := t.Driver.DescribeImage(ctx, image)
	t.call(fmt.Sprintf("describe image %s %q", image.Kind, image.Reference), said(events.ProviderState(d.Image.Reference), err))
	return d, err
}

// ReadFile implements providers.Driver.
func (t traced) ReadFile(ctx context.Context, id events.EnvironmentID, ref, file string, offset int64) (io.ReadCloser, error) {
	r, err := t.Driver.ReadFile(ctx, id, ref, file, offset)
	t.call(fmt.Sprintf("read file %s of environment %s from byte %d", file, id, offset), said("a stream", err))
	return r, err
}

// List implements providers.Driver.
func (t traced) List(ctx context.Context) ([]providers.Listed, error) {
	l, err := t.Driver.List(ctx)
	t.call("list", said(events.ProviderState(fmt.Sprintf("%d environments", len(l))), err))
	return l, err
}
