package providers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth/events"
	"berth/events/fault"
)

type watching struct{ stub }

func (*watching) Watch(context.Context, func(events.EnvironmentID)) error { return nil }

func TestBundlesAreCheckedWhole(t *testing.T) {
	whole := func() Bundle { return BundleOf(&watching{stub{name: "one"}}, nil) }
	if _, err := NewRegistry(whole()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Bundle)
		says   string
	}{
		"no driver":            {func(b *Bundle) { b.Driver = nil }, "without a driver"},
		"bad name":             {func(b *Bundle) { b.Driver = &stub{name: "a b"} }, "not valid"},
		"a surface is missing": {func(b *Bundle) { delete(b.Surfaces, SurfaceExport) }, "export"},
		"an unknown surface":   {func(b *Bundle) { b.Surfaces["warp"] = Support{Supported: true} }, "warp"},
		"no reason":            {func(b *Bundle) { b.Surfaces[SurfacePause] = Support{} }, "reason"},
		"a secret reason":      {func(b *Bundle) { b.Surfaces[SurfacePause] = Support{Reason: "password: x"} }, "reason"},
		"reason against it":    {func(b *Bundle) { b.Surfaces[SurfacePause] = Support{true, "yet"} }, "against"},
		"a required one":       {func(b *Bundle) { b.Surfaces[SurfaceLife] = Support{Reason: "no"} }, "no provider can be without"},
		"not implemented":      {func(b *Bundle) { b.Surfaces[SurfaceAdopt] = Support{Supported: true} }, "does not implement"},
	} {
		b := whole()
		c.change(&b)
		if _, err := NewRegistry(b); fault.CodeOf(err) != fault.BadRequest || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRegistryIsFrozen(t *testing.T) {
	b := BundleOf(&watching{stub{name: "one"}}, map[Surface]string{SurfacePause: "it can't"})
	r, err := NewRegistry(b, BundleOf(&stub{name: "two"}, nil))
	if err != nil {
		t.Fatal(err)
	}
	b.Surfaces[SurfacePause] = Support{Supported: true}
	one, err := r.Get("one")
	if err != nil || one.Supports(SurfacePause) != (Support{Reason: "it can't"}) {
		t.Errorf("%+v %v", one.Supports(SurfacePause), err)
	}
	two, err := r.Get("two")
	if err != nil || one.Watcher == nil || two.Watcher != nil || one.Adopter != nil || two.Supports(SurfaceWatch).Reason == "" {
		t.Errorf("optional interfaces: %+v %+v %v", one, two, err)
	}
	if Guard(one.Driver) != one.Driver {
		t.Errorf("guarded twice")
	}
	if _, err := r.Get("three"); fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), "one, two") {
		t.Errorf("%v", err)
	}
	if !slices.Equal(r.Names(), []string{"one", "two"}) || r.Close() != nil {
		t.Errorf("%v", r.Names())
	}
}

func TestRegistryLimits(t *testing.T) {
	var bs []Bundle
	for i := range MaxProviders {
		bs = append(bs, BundleOf(&stub{name: fmt.Sprintf("p%d", i)}, nil))
	}
	if _, err := NewRegistry(bs...); err != nil {
		t.Error(err)
	}
	if _, err := NewRegistry(append(bs, bs[0])...); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("one too many: %v", err)
	}
	if _, err := NewRegistry(bs[0], bs[0]); fault.CodeOf(err) != fault.AlreadyExists {
		t.Errorf("twice: %v", err)
	}
}
