package plane

import (
	"testing"
	"time"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/projections"
	"berth/providers"
	"berth/providers/drill"
)

// R80: what was admitted and is not folded yet counts as held, and is given
// back by a release. Nothing is ever folded here.
func TestAdmittedCountsBeforeItIsFolded(t *testing.T) {
	d, err := drill.Open(drill.Config{Dir: t.TempDir(), Capacity: &events.HostCapacity{CPUs: events.MustQuantity("8"), MemoryMiB: 8192, DiskGiB: 100, Slots: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	registry, err := providers.NewRegistry(providers.BundleOf(d, nil))
	if err != nil {
		t.Fatal(err)
	}
	views := projections.NewRunner(memory.New(), projections.NewViews("test"))
	p := New(Options{Space: "test", Views: views, Providers: registry, Now: time.Now})
	defer p.Close()
	plan := events.Plan{Provider: "drill", Resources: events.Resources{CPUs: events.MustQuantity("1"), MemoryMiB: 1}}
	if err := p.admit(t.Context(), "first", plan, events.HostCapacity{}); err != nil {
		t.Fatal(err)
	}
	if err := p.admit(t.Context(), "second", plan, events.HostCapacity{}); fault.CodeOf(err) != fault.ResourceExhausted {
		t.Errorf("a second one in the only slot: %v", err)
	}
	p.release("first")
	if err := p.admit(t.Context(), "second", plan, events.HostCapacity{}); err != nil {
		t.Errorf("after the release: %v", err)
	}
	p.release("second")
	// What must be free before is judged as such, at its edge.
	for slots, want := range map[int64]fault.Code{1: "", 2: fault.ResourceExhausted} {
		if err := p.admit(t.Context(), "third", plan, events.HostCapacity{Slots: slots}); (err == nil) != (want == "") || err != nil && fault.CodeOf(err) != want {
			t.Errorf("%d slots free before: %v", slots, err)
		}
		p.release("third")
	}
}
