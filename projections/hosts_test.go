package projections_test

import (
	"testing"

	"berth/events"
	"berth/projections"
)

// R80: providers of the manager's own host share its CPUs, memory and disk, and
// each has its own slots; one of another host counts against nobody else's.
func TestHeadroomIsOfOneHost(t *testing.T) {
	one := projections.Held{CPUs: events.MustQuantity("0.1"), MemoryMiB: 10, DiskGiB: 1, Environments: 1}
	held := map[string]projections.Held{"process": one, "qemu": one, "fly": one}
	shared := func(p string) bool { return p == "process" || p == "qemu" }
	both := projections.Held{CPUs: events.MustQuantity("0.2"), MemoryMiB: 20, DiskGiB: 2, Environments: 1}
	for provider, want := range map[string]projections.Held{"process": both, "qemu": both, "fly": one, "docker": {}} {
		if got := projections.Against(held, provider, shared); got != want {
			t.Errorf("%+v counts against %s, want %+v", got, provider, want)
		}
	}
}

// R80: what is behind a provider of another host is reserved by the instance and
// does not count against its own host.
func TestPublishedFactsAndHeadroom(t *testing.T) {
	const id = events.InstanceID("hhhhhhhhhhhhhhhhhhhhhhhhhh")
	capacity := events.HostCapacity{CPUs: events.MustQuantity("4"), MemoryMiB: 4096, DiskGiB: 100, Slots: 8}
	facts := events.HostFacts{Host: "mill", Architecture: "arm64", Allocatable: capacity}
	v := projections.NewViews("test")
	v.Apply(events.Record{Sequence: 1, Boundary: events.InstanceBoundary(id), Events: []events.Event{
		events.InstanceRegistered{Instance: id, Epoch: 1, Host: facts},
		events.InstanceObserved{Instance: id, Epoch: 1, Labels: map[string]string{"rack": "7"}, Providers: []events.ProviderFacts{
			{Provider: "process", Shared: true, Facts: facts}, {Provider: "fly", Facts: facts},
		}},
	}})
	for i, provider := range []string{"process", "fly"} {
		v.Apply(events.Record{Sequence: uint64(i) + 2, Boundary: events.SeatBoundary("local", events.Alias(provider)), Events: []events.Event{
			events.SlotClaimed{UID: "aaaaaaaaaaaaaaaaaaaaaaaaaa", Environment: events.EnvironmentID("e-" + provider), Holder: id,
				Plan: events.Plan{Provider: provider, Resources: events.Resources{CPUs: events.MustQuantity("1.5"), MemoryMiB: 1024}}, Target: events.TargetRunning},
		}})
	}
	h, ok := v.Host(id)
	if !ok || h.Labels["rack"] != "7" || len(h.Providers) != 2 {
		t.Fatalf("%+v", h)
	}
	free := events.HostCapacity{CPUs: events.MustQuantity("2.5"), MemoryMiB: 3072, DiskGiB: 100, Slots: 7}
	if h.Reserved.Environments != 2 || h.Headroom != free {
		t.Errorf("reserved %+v, free on the host %+v", h.Reserved, h.Headroom)
	}
	for _, p := range h.Providers {
		if p.Headroom != free || p.Reserved.Environments != 1 {
			t.Errorf("%s: reserved %+v, free %+v", p.Provider, p.Reserved, p.Headroom)
		}
	}
}
