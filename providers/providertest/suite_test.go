package providertest

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/drill"
)

// liar is a good driver with one method replaced.
type liar struct {
	providers.Driver
	do        func(context.Context, providers.Operation) providers.Outcome
	reconcile func(context.Context, providers.Operation) providers.Finding
	exclude   func(context.Context, providers.Operation) providers.Finding
	inspect   func(events.Facts, error) (events.Facts, error)
	list      func([]providers.Listed) []providers.Listed
	image     func(events.ImageDescription) events.ImageDescription
	preflight func(providers.Preflight) providers.Preflight
	offset    func(int64) int64
}

func (l *liar) Do(ctx context.Context, op providers.Operation) providers.Outcome {
	if l.do != nil {
		return l.do(ctx, op)
	}
	return l.Driver.Do(ctx, op)
}

func (l *liar) Reconcile(ctx context.Context, op providers.Operation) providers.Finding {
	if l.reconcile != nil {
		return l.reconcile(ctx, op)
	}
	return l.Driver.Reconcile(ctx, op)
}

func (l *liar) Exclude(ctx context.Context, op providers.Operation) providers.Finding {
	if l.exclude != nil {
		return l.exclude(ctx, op)
	}
	return l.Driver.Exclude(ctx, op)
}

func (l *liar) Inspect(ctx context.Context, id events.EnvironmentID, ref string) (events.Facts, error) {
	f, err := l.Driver.Inspect(ctx, id, ref)
	if l.inspect != nil {
		return l.inspect(f, err)
	}
	return f, err
}

func (l *liar) List(ctx context.Context) ([]providers.Listed, error) {
	ls, err := l.Driver.List(ctx)
	if l.list != nil {
		ls = l.list(ls)
	}
	return ls, err
}

func (l *liar) DescribeImage(ctx context.Context, i events.Image) (events.ImageDescription, error) {
	d, err := l.Driver.DescribeImage(ctx, i)
	if l.image != nil {
		d = l.image(d)
	}
	return d, err
}

func (l *liar) Preflight(ctx context.Context, p events.Plan) (providers.Preflight, error) {
	pre, err := l.Driver.Preflight(ctx, p)
	if l.preflight != nil {
		pre = l.preflight(pre)
	}
	return pre, err
}

func (l *liar) ReadFile(ctx context.Context, id events.EnvironmentID, ref, file string, offset int64) (io.ReadCloser, error) {
	if l.offset != nil {
		offset = l.offset(offset)
	}
	return l.Driver.ReadFile(ctx, id, ref, file, offset)
}

// options makes a liar of a fresh drill provider.
func options(t *testing.T, twist func(l *liar)) Options {
	return Options{
		Open: func(r T) providers.Driver {
			d, err := drill.Open(drill.Config{Dir: r.TempDir()})
			if err != nil {
				r.Fatalf("%v", err)
			}
			l := &liar{Driver: d}
			if twist != nil {
				twist(l)
			}
			return l
		},
		Plan: events.Plan{Provider: "drill", Image: events.Image{Kind: "template", Reference: "any"}, Command: []string{"sleep"}},
	}
}

// onDo replaces what Do answers to one verb.
func onDo(v events.Verb, f func(context.Context, providers.Driver, providers.Operation) providers.Outcome) func(*liar) {
	return func(l *liar) {
		l.do = func(ctx context.Context, op providers.Operation) providers.Outcome {
			if op.Verb == v || v == "" {
				return f(ctx, l.Driver, op)
			}
			return l.Driver.Do(ctx, op)
		}
	}
}

// TestSuiteFindsLiars: each check fails for a driver that breaks its rule, so
// that passing it means something.
func TestSuiteFindsLiars(t *testing.T) {
	fresh := 0
	for check, twist := range map[string]func(*liar){
		"image-unchanged": func(l *liar) {
			l.image = func(d events.ImageDescription) events.ImageDescription { d.Image.Reference = "other"; return d }
		},
		"capability-set": func(l *liar) {
			l.preflight = func(p providers.Preflight) providers.Preflight {
				fresh++
				p.Capabilities.GPU = fresh%2 == 0
				return p
			}
		},
		"whole-life": onDo(events.VerbStop, func(ctx context.Context, d providers.Driver, op providers.Operation) providers.Outcome {
			f, _ := d.Inspect(ctx, op.Environment, op.Ref)
			return providers.DoneWith(f) // says that it runs on
		}),
		"same-id-same-answer": onDo("", func(ctx context.Context, d providers.Driver, op providers.Operation) providers.Outcome {
			op.ID = events.OperationID(newUUID())
			return d.Do(ctx, op)
		}),
		"same-id-other-arguments": onDo(events.VerbStop, func(ctx context.Context, d providers.Driver, op providers.Operation) providers.Outcome {
			op.Arguments = events.Arguments{}
			return d.Do(ctx, op)
		}),
		"unknown-is-not-found": func(l *liar) {
			l.inspect = func(f events.Facts, err error) (events.Facts, error) {
				return events.Facts{State: events.StateStopped, ObservedAt: time.Unix(1, 0)}, nil
			}
		},
		"reconcile-unseen": func(l *liar) {
			l.reconcile = func(context.Context, providers.Operation) providers.Finding {
				return providers.Finding{Verdict: providers.Landed, Evidence: "surely", Facts: events.Facts{Ref: "x", State: events.StateRunning, ObservedAt: time.Unix(1, 0)}}
			}
		},
		"exclude-is-a-fence": func(l *liar) {
			l.exclude = func(context.Context, providers.Operation) providers.Finding {
				return providers.Finding{Verdict: providers.Excluded, Evidence: "not in the list"}
			}
		},
		"exclude-after-landing": func(l *liar) {
			l.exclude = func(context.Context, providers.Operation) providers.Finding {
				return providers.Finding{Verdict: providers.Excluded, Evidence: "not in the list"}
			}
		},
		"older-epoch-refused": onDo("", func(ctx context.Context, d providers.Driver, op providers.Operation) providers.Outcome {
			op.Writer.Epoch = 1
			return d.Do(ctx, op)
		}),
		"extend-bounded": onDo(events.VerbExtend, func(ctx context.Context, d providers.Driver, op providers.Operation) providers.Outcome {
			out := d.Do(ctx, op)
			out.Facts.ExpiresAt = op.Arguments.ExtendTo
			return out
		}),
		"pause-resume": onDo(events.VerbPause, func(ctx context.Context, d providers.Driver, op providers.Operation) providers.Outcome {
			f, _ := d.Inspect(ctx, op.Environment, op.Ref)
			return providers.DoneWith(f)
		}),
		"export-provider-file": func(l *liar) { l.offset = func(int64) int64 { return 0 } },
		"export-host-path": onDo(events.VerbExport, func(ctx context.Context, d providers.Driver, op providers.Operation) providers.Outcome {
			op.Arguments.HostPath = ""
			return d.Do(ctx, op)
		}),
		"export-too-large": onDo(events.VerbExport, func(ctx context.Context, d providers.Driver, op providers.Operation) providers.Outcome {
			op.Arguments.MaxBytes = ample
			return d.Do(ctx, op)
		}),
		"unsupported-verb": onDo("teleport", func(ctx context.Context, d providers.Driver, op providers.Operation) providers.Outcome {
			f, _ := d.Inspect(ctx, op.Environment, op.Ref)
			return providers.DoneWith(f)
		}),
		"destroyed-stays-destroyed": func(l *liar) {
			l.inspect = func(f events.Facts, err error) (events.Facts, error) {
				if f.State == events.StateAbsent {
					f.State = events.StateStopped
				}
				return f, err
			}
		},
		"list-is-consistent": func(l *liar) {
			l.list = func(ls []providers.Listed) []providers.Listed { return append(ls, ls...) }
		},
		"material-stays-inside": onDo("teleport", func(_ context.Context, _ providers.Driver, op providers.Operation) providers.Outcome {
			return providers.RefusedWith(fault.New(fault.Unimplemented, "no teleport of %s", op.Material["agent-credential"]))
		}),
	} {
		t.Run(check, func(t *testing.T) {
			if r := one(t, check, options(t, nil)); !r.OK {
				t.Errorf("an honest driver fails: %v", r.Log)
			}
			if r := one(t, check, options(t, twist)); r.OK {
				t.Errorf("a liar passes")
			}
		})
	}
}

// one runs one check as Conform does.
func one(t *testing.T, name string, o Options) Result {
	i := slices.IndexFunc(Checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no check %s", name)
	}
	all := Checks
	defer func() { Checks = all }()
	Checks = all[i : i+1]
	return Conform(o, t.TempDir)[0]
}

// TestConformWithoutGoTest: failures, panics and skips become results.
func TestConformWithoutGoTest(t *testing.T) {
	if r := one(t, "ends-by-itself", options(t, nil)); !r.OK || r.Skipped == "" {
		t.Errorf("nothing to wait for: %+v", r)
	}
	o := options(t, nil)
	o.Open = func(T) providers.Driver { panic("no driver") }
	if r := one(t, "host-facts", o); r.OK || len(r.Log) != 1 {
		t.Errorf("a panic: %+v", r)
	}
	o = options(t, func(l *liar) {
		l.inspect = func(events.Facts, error) (events.Facts, error) { return events.Facts{}, errors.New("gone") }
	})
	if r := one(t, "whole-life", o); r.OK || len(r.Log) == 0 || len(r.Sent) == 0 || len(r.Sent) > maxSent || !strings.Contains(r.Sent[len(r.Sent)-1], "inspect environment") {
		t.Errorf("a failure: %+v", r)
	}
}

// TestDeniedCapabilitiesMustBeRefused: a driver may lack what it says that it
// lacks, if it refuses it (R26, R89).
func TestDeniedCapabilitiesMustBeRefused(t *testing.T) {
	deny := func(l *liar) {
		l.preflight = func(p providers.Preflight) providers.Preflight {
			p.Capabilities = events.Capabilities{}
			return p
		}
	}
	refuse := func(l *liar) {
		deny(l)
		l.do = func(ctx context.Context, op providers.Operation) providers.Outcome {
			if slices.Contains([]events.Verb{events.VerbExtend, events.VerbPause, events.VerbCheckpoint, events.VerbExport}, op.Verb) {
				return providers.RefusedWith(fault.New(fault.Unimplemented, "there is no %s here", op.Verb))
			}
			return l.Driver.Do(ctx, op)
		}
	}
	for _, check := range []string{"extend-bounded", "checkpoint", "pause-resume", "export-provider-file"} {
		if r := one(t, check, options(t, refuse)); !r.OK || r.NotClaimed == "" || r.Skipped != "" || len(r.Sent) > 0 {
			t.Errorf("%s, denied and refused: %+v", check, r)
		}
	}
	for _, check := range []string{"extend-bounded", "checkpoint"} {
		if r := one(t, check, options(t, deny)); r.OK {
			t.Errorf("%s, denied and done all the same: %+v", check, r)
		}
	}
}

// TestUnboundedIsFound: a driver that goes on after its context is reported,
// not waited for.
func TestUnboundedIsFound(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	o := options(t, onDo(events.VerbProvision, func(context.Context, providers.Driver, providers.Operation) providers.Outcome {
		<-release
		return providers.Outcome{}
	}))
	o.Patience = 300 * time.Millisecond
	if r := one(t, "bounded-by-context", o); r.OK {
		t.Errorf("not found: %+v", r)
	}
}
