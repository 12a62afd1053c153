package plane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/commands"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/internal/ids"
	"berth/projections"
)

const (
	left  events.InstanceID = "llllllllllllllllllllllllll"
	right events.InstanceID = "rrrrrrrrrrrrrrrrrrrrrrrrrr"
	ghost events.InstanceID = "gggggggggggggggggggggggggg"
)

// publish registers an instance with the drill provider and one label.
func publish(t *testing.T, log *memory.Log, id events.InstanceID, label string) {
	t.Helper()
	facts := events.HostFacts{Host: "host-of-" + label, Architecture: "amd64", Engines: []events.Engine{{Name: "drill"}},
		Allocatable: events.HostCapacity{CPUs: events.MustQuantity("64"), MemoryMiB: 1 << 20, DiskGiB: 1 << 10, Slots: 10}}
	_, err := log.Commit(context.Background(), events.Commit{
		Boundary: events.InstanceBoundary(id), Meta: events.Meta{ID: events.EventID(ids.New().UUID()), Caller: commandstest.Caller, Writer: events.Writer{Instance: id, Epoch: 1}},
		Events: []events.Event{
			events.InstanceRegistered{Instance: id, Epoch: 1, Host: facts},
			events.InstanceObserved{Instance: id, Epoch: 1, Labels: map[string]string{"rack": label}, Providers: []events.ProviderFacts{{Provider: "drill", Facts: facts}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fleet is two instances over one log, and a third that is registered and dead.
func fleet(t *testing.T) (log *memory.Log, a, b *commandstest.World) {
	log = memory.New()
	publish(t, log, left, "left")
	publish(t, log, right, "right")
	publish(t, log, ghost, "ghost")
	a = commandstest.New(t, commandstest.Config{Log: log, Instance: left})
	b = commandstest.New(t, commandstest.Config{Log: log, Instance: right})
	for _, w := range []*commandstest.World{a, b} {
		w.Until("the facts of all are folded", func(v *projections.Views) bool { return v.Sequence() >= 3 })
	}
	return log, a, b
}

func needing(name, label string) commands.SpawnInput {
	in := commandstest.Drill(name)
	in.Needs = &commands.NeedsInput{Arch: "amd64", Engine: "drill", Labels: map[string]string{"rack": label}}
	return in
}

// Decision 11: a goal that the instance which received it can't run is offered,
// and the one that fits claims and runs it.
func TestAGoalGoesToTheInstanceThatFits(t *testing.T) {
	_, a, b := fleet(t)
	here := must[commands.SpawnResult](t)(commandstest.Ask(a, commands.Spawn, "stays", needing("stays", "left")))
	if here.InstanceID != left {
		t.Errorf("what fits here is held by %q", here.InstanceID)
	}
	r := must[commands.SpawnResult](t)(commandstest.Ask(a, commands.Spawn, "goes", needing("goes", "right")))
	if r.State != events.GoalStateOffered || r.InstanceID != "" {
		t.Errorf("accepted as %+v", r)
	}
	g := a.Ended("goes")
	if g.State != events.GoalSucceeded || g.InstanceID != right || len(g.Declined) != 1 || g.Declined[0].Instance != left {
		t.Errorf("the goal ended %+v, fault %v", g, g.Fault)
	}
	b.Until("it runs there", func(v *projections.Views) bool {
		s, ok := v.Seat("local", "goes")
		return ok && s.Slot.Holder == right && s.Live()
	})
	// A repeat is answered by any instance, with the same identity.
	for _, w := range []*commandstest.World{a, b} {
		if again := must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "goes", needing("goes", "right"))); again.UID != r.UID || again.Environment != r.Environment {
			t.Errorf("the repeat is answered %+v", again)
		}
	}
}

// R83: nobody fits: a refusal before any effect that says why for each
// instance; what only lacks room is resource-exhausted.
func TestNobodyFits(t *testing.T) {
	_, a, _ := fleet(t)
	tip := a.Tip()
	huge := needing("huge", "right")
	huge.CPUs = "65"
	free := needing("free", "right")
	free.Needs.Headroom = &commands.FreeInput{Slots: 11}
	kvm, gpu, arch, engine := commandstest.Drill("kvm"), commandstest.Drill("gpu"), commandstest.Drill("arch"), commandstest.Drill("engine")
	kvm.Needs, gpu.Needs, arch.Needs, engine.Needs = &commands.NeedsInput{KVM: true}, &commands.NeedsInput{GPU: true}, &commands.NeedsInput{Arch: "s390x"}, &commands.NeedsInput{Engine: "warp"}
	other := commandstest.Drill("other")
	other.Provider = "warp"
	for _, c := range []struct {
		in   commands.SpawnInput
		code fault.Code
		why  string
	}{
		{needing("none", "nowhere"), fault.FailedPrecondition, "no label rack=nowhere"},
		{huge, fault.ResourceExhausted, "64 CPUs are free, 65 are asked for"},
		{free, fault.ResourceExhausted, "headroom"},
		{kvm, fault.FailedPrecondition, "KVM"},
		{gpu, fault.FailedPrecondition, "label gpu"},
		{arch, fault.FailedPrecondition, "architecture is amd64"},
		{engine, fault.FailedPrecondition, "engine warp"},
		{other, fault.FailedPrecondition, "provider warp"},
	} {
		_, err := commandstest.Ask(a, commands.Spawn, "goal-"+c.in.Name, c.in)
		refused(t, err, c.code, fault.NotExecuted)
		told := ""
		for _, d := range fault.From(err).Details {
			told += d.Facts["instance"] + " " + d.Facts["reason"] + "\n"
		}
		if !strings.Contains(told, c.why) || !strings.Contains(told, string(left)) || !strings.Contains(told, string(right)) || !strings.Contains(told, string(ghost)) {
			t.Errorf("%s: %v tells %s", c.in.Name, err, told)
		}
	}
	if got := a.Tip(); got != tip {
		t.Errorf("refusals appended: from %d to %d", tip, got)
	}
}

// An offer that nobody claims, because the one that fits is dead, is expired at
// its deadline by any instance, and tells who declined; nothing was made.
func TestAnOfferLapses(t *testing.T) {
	_, a, _ := fleet(t)
	in := needing("lost", "ghost")
	in.Ready = "1s"
	must[commands.SpawnResult](t)(commandstest.Ask(a, commands.Spawn, "lost", in))
	g := a.Ended("lost")
	if g.State != events.GoalExpired || g.Fault.Outcome != fault.NotExecuted || len(g.Declined) == 0 {
		t.Errorf("the goal ended %+v, fault %v", g, g.Fault)
	}
	a.Views.Read(func(v *projections.Views) {
		if s, ok := v.Seat("local", "lost"); ok {
			t.Errorf("a seat was made: %+v", s.Slot)
		}
	})
	// The name is free, and asked for again elsewhere it is made.
	must[commands.SpawnResult](t)(commandstest.Ask(a, commands.Spawn, "again", needing("lost", "left")))
	if g := a.Ended("again"); g.State != events.GoalSucceeded {
		t.Errorf("the second one ended %+v", g)
	}
}

// A claimer that dies after its claim and before it takes the name: the goal
// expires at its readiness deadline, behind a fence that keeps a late claim of
// the name out.
func TestAClaimerDies(t *testing.T) {
	log, a, _ := fleet(t)
	uid, ready := events.UID(ids.New().Token()), events.MillisUTC(time.Now())
	accepted := events.GoalAccepted{Command: "spawn", Fingerprint: "f", Request: json.RawMessage(`{}`), Holder: left, Ready: ready,
		Allocated: events.Allocation{Name: "lost", Owner: "local", Actor: "lost", UID: uid, Environment: events.EnvironmentID(ids.New().UUID())}}
	_, err := log.Commit(context.Background(), events.Commit{
		Boundary: events.GoalBoundary(commandstest.Caller, "lost"), Meta: events.Meta{ID: events.EventID(ids.New().UUID()), Caller: commandstest.Caller, Writer: events.Writer{Instance: ghost, Epoch: 1}, Time: ready},
		Events: []events.Event{accepted, events.GoalOffered{By: left, Reason: "no", Until: ready}, events.GoalClaimed{Instance: ghost}},
	})
	if err != nil {
		t.Fatal(err)
	}
	g := a.Ended("lost")
	if g.State != events.GoalExpired || g.InstanceID != ghost || g.Fault.Outcome != fault.NotExecuted {
		t.Errorf("the goal ended %+v, fault %v", g, g.Fault)
	}
	seat, err := a.Shelf.Seat(context.Background(), "local", "lost")
	if err != nil {
		t.Fatal(err)
	}
	if _, done, err := seat.Commands.Seen(events.CommandID("claim-"+string(uid)), "f"); !done || err != nil {
		t.Errorf("a late claim of the name would be taken: %v %v", done, err)
	}
}

// Decision 11: a spawn whose instance died before it took the name is expired
// by another after its deadline, with the same fence; one whose instance may
// still do so itself is left alone.
func TestAnAccepterDies(t *testing.T) {
	log, a, _ := fleet(t)
	uid, now := events.UID(ids.New().Token()), events.MillisUTC(time.Now())
	for id, ready := range map[events.GoalID]time.Time{"early": now, "lost": now.Add(-time.Hour)} {
		accepted := events.GoalAccepted{Command: "spawn", Fingerprint: "f", Request: json.RawMessage(`{}`), Holder: ghost, Ready: ready,
			Allocated: events.Allocation{Name: events.Alias(id), Owner: "local", Actor: events.Actor(id), UID: uid, Environment: events.EnvironmentID(ids.New().UUID())}}
		r, err := log.Commit(context.Background(), events.Commit{
			Boundary: events.GoalBoundary(commandstest.Caller, id), Events: []events.Event{accepted},
			Meta: events.Meta{ID: events.EventID(ids.New().UUID()), Caller: commandstest.Caller, Writer: events.Writer{Instance: ghost, Epoch: 1}, Time: ready},
		})
		if err != nil {
			t.Fatal(err)
		}
		a.Until("it is folded", func(v *projections.Views) bool { return v.Sequence() >= r.Sequence })
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Plane.Orphans(ctx) }()
	g := a.Ended("lost")
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if g.State != events.GoalExpired || g.InstanceID != ghost || g.Fault.Outcome != fault.NotExecuted {
		t.Errorf("the goal ended %+v, fault %v", g, g.Fault)
	}
	seat, err := a.Shelf.Seat(context.Background(), "local", "lost")
	if err != nil {
		t.Fatal(err)
	}
	if _, done, err := seat.Commands.Seen(events.CommandID("claim-"+string(uid)), "f"); !done || err != nil {
		t.Errorf("a late claim of the name would be taken: %v %v", done, err)
	}
	early, _, err := a.Shelf.Goal(context.Background(), events.GoalBoundary(commandstest.Caller, "early"))
	if err != nil || early.State != events.GoalStateAccepted {
		t.Errorf("a goal at its deadline is %s, %v", early.State, err)
	}
}

// Of several instances that fit one claims; whoever lost gives its place back.
func TestTwoClaimAtOnce(t *testing.T) {
	log := memory.New()
	publish(t, log, ghost, "none")
	publish(t, log, left, "both")
	publish(t, log, right, "both")
	in := commandstest.New(t, commandstest.Config{Log: log, Instance: ghost})
	a := commandstest.New(t, commandstest.Config{Log: log, Instance: left})
	b := commandstest.New(t, commandstest.Config{Log: log, Instance: right})
	for _, w := range []*commandstest.World{in, a, b} {
		w.Until("the facts of all are folded", func(v *projections.Views) bool { return v.Sequence() >= 3 })
	}
	for i := range 8 {
		id := fmt.Sprintf("n%d", i)
		must[commands.SpawnResult](t)(commandstest.Ask(in, commands.Spawn, id, needing(id, "both")))
	}
	for i := range 8 {
		g := in.Ended(fmt.Sprintf("n%d", i))
		if g.State != events.GoalSucceeded || g.InstanceID != left && g.InstanceID != right {
			t.Errorf("goal %d ended %+v, fault %v", i, g, g.Fault)
		}
	}
	one, two := must[[]string](t)(held(a)), must[[]string](t)(held(b))
	if len(one)+len(two) != 8 {
		t.Errorf("%d and %d environments were made of 8", len(one), len(two))
	}
	for _, w := range []*commandstest.World{a, b} {
		hosts := must[commands.HostsResult](t)(commandstest.Ask(w, commands.Hosts, "", commands.Empty{}))
		var reserved int64
		for _, h := range hosts.Instances {
			reserved += h.Reserved.Environments
		}
		if reserved != 8 {
			t.Errorf("%d environments are reserved in all", reserved)
		}
	}
}

// A goal that waits for an instance can be cancelled: nothing was begun.
func TestAnOfferIsCancelled(t *testing.T) {
	_, a, _ := fleet(t)
	must[commands.SpawnResult](t)(commandstest.Ask(a, commands.Spawn, "lost", needing("lost", "ghost")))
	g := must[commands.GoalResult](t)(commandstest.Ask(a, commands.GoalCancel, "c", commands.GoalCancelInput{GoalRef: commands.GoalRef{Goal: "lost"}}))
	if g.State != events.GoalCancelled || g.Fault.Outcome != fault.NotExecuted {
		t.Errorf("cancelled: %+v, fault %v", g, g.Fault)
	}
}
