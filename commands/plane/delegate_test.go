package plane

import (
	"slices"
	"strings"
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/internal/handoff"
	"berth/projections"
	"berth/providers"
	"berth/providers/drill"
)

// plainDriver is a driver that does not begin delegated seats.
type plainDriver struct{ providers.Driver }

// Name is another than that of the driver behind it.
func (plainDriver) Name() string { return "plain" }

// H5: a delegated seat is refused before anything is made for it where there is
// no profile, and where the provider does not begin one; H9: its plan is frozen
// with the bootstrap that checks whom it is for.
func TestDelegatedIsRefusedBeforeAnything(t *testing.T) {
	d, err := drill.Open(drill.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	registry, err := providers.NewRegistry(providers.BundleOf(d, nil), providers.BundleOf(plainDriver{d}, nil))
	if err != nil {
		t.Fatal(err)
	}
	profile := &handoff.Profile{Space: "test", Program: "berth"}
	for _, c := range []struct {
		provider string
		profile  *handoff.Profile
		want     fault.Code
	}{{"drill", nil, fault.FailedPrecondition}, {"plain", profile, fault.Unimplemented}, {"drill", profile, ""}} {
		p := New(Options{Space: "test", Views: projections.NewRunner(memory.New(), projections.NewViews("test")), Providers: registry, Now: time.Now, Delegation: c.profile})
		plan := events.Plan{Provider: c.provider, Delegated: true, Lifetime: time.Hour, Command: []string{"agent"}, Resources: events.Resources{CPUs: events.MustQuantity("1"), MemoryMiB: 1}}
		err := p.holdHere(t.Context(), "uid", plan, nil)
		if e := fault.From(err); (err == nil) != (c.want == "") || err != nil && (e.Code != c.want || e.Outcome != fault.NotExecuted) {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil && p.admitted("uid") {
			t.Errorf("%+v: a place is held for it", c)
		}
		if err == nil {
			got := p.launched(events.Allocation{Owner: "local", Actor: "web", UID: "u"}, plan).Command
			if !slices.Equal(got[len(got)-3:], []string{"u", "--", "agent"}) || got[1] != "seat" {
				t.Errorf("its command is %q", got)
			}
		}
		plan.Delegated = false
		if err := p.delegable(t.Context(), plan); err != nil || len(p.launched(events.Allocation{}, plan).Command) != 1 {
			t.Errorf("a seat that is not delegated: %v", err)
		}
		p.Close()
	}
}

// H18, H19: a seat that nobody but its manager would ever end is not delegated.
func TestADelegatedSeatHasALifetime(t *testing.T) {
	p := &Plane{Options: Options{Delegation: &handoff.Profile{Space: "test"}}}
	err := p.delegable(t.Context(), events.Plan{Provider: "drill", Delegated: true})
	if e := fault.From(err); e == nil || e.Code != fault.FailedPrecondition || e.Outcome != fault.NotExecuted || !strings.Contains(e.Message, "lifetime") {
		t.Errorf("without one: %v", err)
	}
}

// H20: what carries seats over to another manager refuses a delegated one, and
// no other.
func TestADelegatedSeatIsNotTakenOver(t *testing.T) {
	for _, delegated := range []bool{false, true} {
		s := aggregates.Seat{Alias: "web"}
		s.Slot.Phase, s.Slot.Holder = slot.Active, "gone"
		s.Environment.Plan.Delegated = delegated
		err := (&takeover{from: "gone"}).held(s)
		if e := fault.From(err); (err != nil) != delegated || delegated && (e.Code != fault.FailedPrecondition || e.Outcome != fault.NotExecuted) {
			t.Errorf("delegated %v: %v", delegated, err)
		}
	}
}
