//go:build linux

package qemu

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/machine"
	"berth/providers/seat"
)

func network(s string) *string { return &s }

// What a machine can't give is refused by name, at the edge of each limit.
func TestChoices(t *testing.T) {
	q := events.MustQuantity
	env := string(newID())
	for name, c := range map[string]struct {
		plan events.Plan
		says string // of the refusal; empty: accepted
	}{
		"nothing":       {events.Plan{}, ""},
		"least memory":  {events.Plan{Resources: events.Resources{MemoryMiB: MinMemory}}, ""},
		"too little":    {events.Plan{Resources: events.Resources{MemoryMiB: MinMemory - 1}}, "memory"},
		"most memory":   {events.Plan{Resources: events.Resources{MemoryMiB: MaxMemory}}, ""},
		"too much":      {events.Plan{Resources: events.Resources{MemoryMiB: MaxMemory + 1}}, "memory"},
		"most CPUs":     {events.Plan{Resources: events.Resources{CPUs: q("8")}}, ""},
		"one more":      {events.Plan{Resources: events.Resources{CPUs: q("9")}}, "CPUs"},
		"half a CPU":    {events.Plan{Resources: events.Resources{CPUs: q("0.5")}}, "whole"},
		"a disk":        {events.Plan{Resources: events.Resources{DiskGiB: 1}}, "disk"},
		"no network":    {events.Plan{Network: network("none")}, ""},
		"a network":     {events.Plan{Network: network("user")}, ""},
		"the host's":    {events.Plan{Network: network("host")}, "none and user"},
		"memory":        {events.Plan{Options: map[string]string{"checkpoint": "memory"}}, ""},
		"warm":          {events.Plan{Options: map[string]string{"checkpoint": "warm"}}, "checkpoint"},
		"golden":        {events.Plan{Options: map[string]string{"golden": "off"}}, ""},
		"restore":       {events.Plan{Options: map[string]string{"restore": "after"}}, ""},
		"restored":      {events.Plan{Options: map[string]string{"restore": "maybe"}}, "restore"},
		"gilded":        {events.Plan{Options: map[string]string{"golden": "maybe"}}, "golden"},
		"from":          {events.Plan{Options: map[string]string{"from": env + "/golden"}}, ""},
		"from nowhere":  {events.Plan{Options: map[string]string{"from": "golden"}}, "environment id"},
		"from outside":  {events.Plan{Options: map[string]string{"from": env + "/../x"}}, "checkpoint id"},
		"an odd option": {events.Plan{Options: map[string]string{"gpu": "yes"}}, "gpu"},
	} {
		_, err := choices(c.plan)
		if c.says == "" && err != nil || c.says != "" && (fault.CodeOf(err) != fault.BadRequest || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A host without QEMU or a kernel says so and what to install, and executes
// nothing (R8).
func TestAHostWithoutThePartsSaysSo(t *testing.T) {
	empty := t.TempDir()
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"QEMU":   {func(c *Config) { c.QEMU = "qemu-that-is-not-there" }, "qemu-that-is-not-there is not installed"},
		"kernel": {func(c *Config) { c.QEMU, c.Root = "/bin/sh", empty }, "no kernel"},
	} {
		r := newRig(t, c.change)
		p, err := r.d.Preflight(r.context(), plan("true"))
		if err != nil {
			t.Fatal(err)
		}
		if f, failed := p.Failed(); !failed || f.Name != "machine" || !strings.Contains(f.Detail, c.says) {
			t.Errorf("without %s: %+v", name, p.Checks)
		}
		if _, err := r.d.HostFacts(r.context()); fault.CodeOf(err) != fault.FailedPrecondition {
			t.Errorf("host facts without %s (R82): %v", name, err)
		}
		id := newID()
		r.must(r.op(id, events.VerbReserve))
		op := r.op(id, events.VerbProvision)
		op.Plan = plan("true")
		if out := r.do(op); out.Kind == providers.Done || out.Fault.Code != fault.FailedPrecondition {
			t.Errorf("provision without %s: %s %v", name, out.Kind, out.Fault)
		}
	}
}

// The journal's rules need no machine: an id is one operation, a fence holds,
// what is over stays over.
func TestJournalRules(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Root = t.TempDir() })
	id := newID()
	op := r.op(id, events.VerbReserve)
	op.Plan = plan("true")
	f := r.must(op)
	if f.State != events.StateReserved || !strings.HasPrefix(f.Ref, "qemu:") {
		t.Errorf("reserved: %+v", f)
	}
	if again := r.must(op); again.Ref != f.Ref {
		t.Errorf("the same id again (R27): %+v", again)
	}
	other := op
	other.Verb = events.VerbStop
	if out := r.do(other); out.Kind != providers.Refused || out.Fault.Code != fault.Conflict {
		t.Errorf("the same id for something else: %+v", out)
	}
	start := r.op(id, events.VerbStart)
	if out := r.do(start); out.Kind != providers.Refused {
		t.Errorf("a start of what is not provisioned: %+v", out)
	}
	fenced := r.op(id, events.VerbProvision)
	if f := r.d.Exclude(r.context(), fenced); f.Verdict != providers.Excluded {
		t.Errorf("exclude: %+v", f)
	}
	if out := r.do(fenced); out.Kind != providers.Refused {
		t.Errorf("an excluded operation: %+v", out)
	}
	old := r.op(id, events.VerbStop)
	old.Writer.Epoch = 0
	if out := r.do(old); out.Kind != providers.Refused || out.Fault.Code != fault.Expired {
		t.Errorf("a lower epoch (decision 1): %+v", out)
	}
	if f := r.must(r.op(id, events.VerbDestroy)); f.State != events.StateAbsent {
		t.Errorf("destroyed: %+v", f)
	}
	if out := r.do(r.op(id, events.VerbReserve)); out.Kind != providers.Refused {
		t.Errorf("a destroyed id is used again: %+v", out)
	}
}

// The image is the plan's one reference, no option names one (R13, R21), and
// the network that was reserved is not changed in place (R24).
func TestPlansSayWhatTheyMean(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"template", "image", "kernel"} {
		if _, err := choices(events.Plan{Options: map[string]string{name: Template}}); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("option %s: %v", name, err)
		}
	}
	for name, im := range map[string]events.Image{"none": {}, "no kind": {Reference: Template}, "no reference": {Kind: "template"}, "another": {Kind: "oci", Reference: "a"}} {
		if _, err := r.d.DescribeImage(t.Context(), im); err == nil {
			t.Errorf("image %s was described", name)
		}
	}
	id := newID()
	r.ids = append(r.ids, id)
	op := r.op(id, events.VerbReserve)
	op.Plan = plan("true")
	if f := r.must(op); f.Network != "none" {
		t.Errorf("the default is recorded as %q", f.Network)
	}
	change := r.op(id, events.VerbProvision)
	change.Plan = op.Plan
	change.Plan.Network = network("user")
	if out := r.do(change); out.Kind != providers.Refused || out.Fault.Code != fault.FailedPrecondition {
		t.Errorf("another network: %s %v", out.Kind, out.Fault)
	}
}

// A supervisor that is told to start what its journal does not have starts
// nothing.
func TestASupervisorAsksTheJournal(t *testing.T) {
	r := newRig(t)
	id := newID()
	r.must(r.op(id, events.VerbReserve))
	dir := r.d.Seat(id)
	if err := dir.WriteJSON("start.json", machine.Start{Operation: "operation-unheard-of", QEMU: "/bin/false"}); err != nil {
		t.Fatal(err)
	}
	rep, err := r.d.Spawn(r.context(), dir)
	if err != nil || rep.Fault == nil || rep.Fault.Code != fault.Conflict {
		t.Errorf("%+v %v", rep, err)
	}
}

func TestParseTSC(t *testing.T) {
	for in, want := range map[string]int64{
		"processor\t: 0\ncpu MHz\t\t: 2445.400\n": 2445400, "": 0, "cpu MHz: x\ncpu MHz : 1000\n": 1000000, "bogomips: 3\n": 0,
	} {
		if got := parseTSC([]byte(in)); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

// A plan that wants more than a day more gets a day (R28).
func TestExtendIsBounded(t *testing.T) {
	r := newRig(t)
	id := newID()
	r.ids = append(r.ids, id)
	end := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	op := r.op(id, events.VerbReserve)
	op.Expires = &end
	r.must(op)
	far := end.Add(2 * seat.ExtendStep)
	x := r.op(id, events.VerbExtend)
	x.Arguments.ExtendTo = &far
	if f := r.must(x); f.ExpiresAt == nil || !f.ExpiresAt.Equal(end.Add(seat.ExtendStep)) {
		t.Errorf("extended to %v", f.ExpiresAt)
	}
}

// What a spawn that does not say gets, the driver can make.
func TestDefaultsAreWithinTheLimits(t *testing.T) {
	d, err := providers.DefaultsOf(t.Context(), &Driver{})
	if err != nil {
		t.Fatal(err)
	}
	memory, err := strconv.ParseInt(strings.TrimSuffix(d.Memory, "MiB"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	plan := events.Plan{Image: *d.Image, Resources: events.Resources{CPUs: events.MustQuantity(d.CPUs), MemoryMiB: memory}}
	if _, err := choices(plan); err != nil || plan.Image.Kind != "template" || plan.Image.Reference != Template {
		t.Errorf("%+v: %v", d, err)
	}
}

// A restore that has two machines at a time needs room for both (law 5).
func TestMachinesAreAdmitted(t *testing.T) {
	r := newRig(t)
	me, err := identity.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var last events.EnvironmentID
	for range MaxMachines - 1 {
		last = newID()
		dir := r.d.Seat(last)
		j := &seatdir.Journal{Environment: last, Phase: seatdir.PhaseStarted}
		if err := errors.Join(dir.Make(), dir.WriteJSON(seatdir.FileIdent, seatdir.Ident{Custodian: me}), dir.SaveJournal(j)); err != nil {
			t.Fatal(err)
		}
	}
	self := newID()
	for more, want := range map[int]fault.Code{1: "", 2: fault.ResourceExhausted} {
		if err := r.d.admit(t.Context(), self, more); fault.CodeOf(err) != want {
			t.Errorf("%d more: %v, want %q", more, err, want)
		}
	}
	if err := r.d.admit(t.Context(), last, 2); err != nil { // it does not count itself
		t.Errorf("the last one beside itself: %v", err)
	}
}
