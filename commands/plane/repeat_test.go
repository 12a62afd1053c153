package plane_test

import (
	"slices"
	"testing"
	"time"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/commandstest"
	"berth/commands/plane"
	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/projections"
)

// A spawn that is asked again while it is being made is answered with its
// acceptance, also where its own environment took the last place of the host:
// what is claimed is not admitted a second time (R80, decision 2).
func TestRepeatedSpawnOnAFullHost(t *testing.T) {
	t.Parallel()
	w := commandstest.New(t, commandstest.Config{Idle: true, Capacity: &events.HostCapacity{CPUs: events.MustQuantity("1"), MemoryMiB: 1024, DiskGiB: 10, Slots: 1}})
	first := must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g", commandstest.Drill("demo")))
	w.Until("the claim is folded", func(v *projections.Views) bool {
		s, ok := v.Seat("local", "demo")
		return ok && s.Slot.UID == first.UID
	})
	_, err := commandstest.Ask(w, commands.Spawn, "other", commandstest.Drill("other"))
	refused(t, err, fault.ResourceExhausted, fault.NotExecuted) // it is full, and the fold has it
	again := must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g", commandstest.Drill("demo")))
	if again.State != events.GoalStateAccepted || again.UID != first.UID {
		t.Errorf("the repeat is answered %+v", again)
	}
}

// What was held for a spawn that is cancelled before its claim is given back.
func TestCancelledSpawnFreesItsPlace(t *testing.T) {
	t.Parallel()
	w := commandstest.New(t, commandstest.Config{Idle: true, Capacity: &events.HostCapacity{CPUs: events.MustQuantity("1"), MemoryMiB: 1024, DiskGiB: 10, Slots: 1}})
	w.Memory.SetHooks(memory.Hooks{Before: noClaims})
	must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g", commandstest.Drill("demo")))
	g := must[commands.GoalResult](t)(commandstest.Ask(w, commands.GoalCancel, "c", commands.GoalCancelInput{GoalRef: commands.GoalRef{Goal: "g"}}))
	if g.State != events.GoalCancelled {
		t.Fatalf("the goal is %+v", g)
	}
	w.Memory.SetHooks(memory.Hooks{})
	must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g2", commandstest.Drill("other")))
}

// While nobody knows whether a claim is stored, its place is held: another
// spawn must not get it (R80).
func TestUnknownClaimHoldsItsPlace(t *testing.T) {
	t.Parallel()
	w := commandstest.New(t, commandstest.Config{Idle: true, Capacity: &events.HostCapacity{CPUs: events.MustQuantity("1"), MemoryMiB: 1024, DiskGiB: 10, Slots: 1}})
	w.Memory.SetHooks(memory.Hooks{Before: noClaims})
	must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g", commandstest.Drill("demo")))
	_, err := commandstest.Ask(w, commands.Spawn, "g2", commandstest.Drill("other"))
	refused(t, err, fault.ResourceExhausted, fault.NotExecuted)
}

func noClaims(cs []events.Commit) error {
	if slices.ContainsFunc(cs[0].Events, func(e events.Event) bool { _, claim := e.(events.SlotClaimed); return claim }) {
		return fault.New(fault.Unavailable, "not now")
	}
	return nil
}

// A spawn that could not be claimed before its readiness deadline is expired,
// not executed, and fenced: a claim that is still on its way changes nothing.
// One that was claimed in time is left to the engine.
func TestUnclaimedSpawnIsExpiredAndFenced(t *testing.T) {
	t.Parallel()
	w := commandstest.New(t, commandstest.Config{Idle: true})
	claimed := must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g1", commandstest.Drill("claimed")))
	w.Memory.SetHooks(memory.Hooks{Before: noClaims})
	lost := must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g2", commandstest.Drill("lost")))
	w.Plane.Close() // its own tries
	w.Memory.SetHooks(memory.Hooks{})

	o := w.Plane.Options
	o.Now = func() time.Time { return time.Now().Add(24 * time.Hour) }
	late := plane.New(o)
	defer late.Close()
	for _, c := range []struct {
		goal events.GoalID
		want events.GoalState
	}{{"g1", events.GoalStateAccepted}, {"g2", events.GoalExpired}} {
		b := events.GoalBoundary(commandstest.Caller, c.goal)
		before, _, err := w.Shelf.Goal(t.Context(), b)
		if err == nil {
			err = late.Continue(t.Context(), b, before)
		}
		if err == nil {
			err = w.Plane.Continue(t.Context(), b, before) // a claim that knows nothing of the end
		}
		after, _, err2 := w.Shelf.Goal(t.Context(), b)
		if err != nil || err2 != nil || after.State != c.want {
			t.Fatalf("%s is %s, want %s: %v %v", c.goal, after.State, c.want, err, err2)
		}
		if c.want == events.GoalExpired && after.Fault.Outcome != fault.NotExecuted {
			t.Errorf("%s: %+v", c.goal, after.Fault)
		}
	}
	for name, held := range map[events.Alias]bool{"claimed": true, "lost": false} {
		if s := must[aggregates.Seat](t)(w.Shelf.Seat(t.Context(), "local", name)); s.Slot.Held() != held {
			t.Errorf("%s is %s (claimed as %s, lost as %s)", name, s.Status(), claimed.UID, lost.UID)
		}
	}
}
