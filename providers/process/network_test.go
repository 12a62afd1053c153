//go:build linux

package process

import (
	"strings"
	"testing"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// A network is chosen with the plan, null being the provider's default (R22),
// recorded (R23), and never changed in place: a plan with another one is
// refused, and nothing was executed (R24).
func TestTheNetworkIsChosenOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := newID()
	r.ids = append(r.ids, id)
	op := r.op(id, events.VerbReserve)
	op.Plan = r.plan("sleep 600")
	if f := r.must(op); f.Network != "host" {
		t.Errorf("the default is recorded as %q", f.Network)
	}
	for _, other := range []string{"none", "other"} {
		change := r.op(id, events.VerbProvision)
		change.Plan = op.Plan
		change.Plan.Network = &other
		if out := r.do(change); out.Kind != providers.Refused || out.Fault.Code != fault.FailedPrecondition || !strings.Contains(out.Fault.Message, "R24") {
			t.Errorf("provisioned with network %s: %s %v", other, out.Kind, out.Fault)
		}
	}
	same, named := r.op(id, events.VerbProvision), "host"
	same.Plan = op.Plan
	same.Plan.Network = &named // what null was resolved to
	r.must(same)
	if f := r.must(r.op(id, events.VerbStart)); f.Network != "host" || r.inspect(id).Network != "host" {
		t.Errorf("a running seat: %+v", f)
	}
}

// What a seat runs on is looked at, not remembered: a network that is not the
// recorded one is told, and the record stays (R25).
func TestNetworkDriftIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, _ := r.running(r.plan("sleep 600"))
	dir := r.d.Seat(id)
	j, err := dir.LoadJournal()
	if err != nil || j.Network != "host" {
		t.Fatalf("the journal has network %q, %v", j.Network, err)
	}
	j.Network = "none"
	if err := dir.SaveJournal(j); err != nil {
		t.Fatal(err)
	}
	if f := r.inspect(id); f.Network != "host" {
		t.Errorf("a seat on the host's network shows %q", f.Network)
	}
	if f := r.d.Reconcile(r.context(), r.op(id, events.VerbPause)); f.Verdict == providers.Landed {
		t.Errorf("reconciling changed something: %+v", f)
	}
	if j, err = dir.LoadJournal(); err != nil || j.Network != "none" {
		t.Errorf("the record took over %q, %v", j.Network, err)
	}
}

// An image is a reference of the plan and nothing else: options that would
// name one are refused before anything is reserved, and describing it reads
// only (R13, R16, R21).
func TestNoImageHidesInTheOptions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range []string{"template", "image", "ref"} {
		p := r.plan("true")
		p.Options[name] = "host"
		pre, err := r.d.Preflight(r.context(), p)
		if c, failed := pre.Failed(); err != nil || !failed || c.Name != "options" {
			t.Errorf("option %s: %+v %v", name, pre.Checks, err)
		}
	}
	for name, im := range map[string]events.Image{
		"none": {}, "no kind": {Reference: "host"}, "no reference": {Kind: "template"}, "another kind": {Kind: "volume", Reference: "host"},
		"both": {Kind: "template,oci", Reference: "host"},
	} {
		p := r.plan("true")
		p.Image = im
		pre, err := r.d.Preflight(r.context(), p)
		if c, failed := pre.Failed(); err != nil || !failed || c.Name != "image" {
			t.Errorf("%s (R13): %+v %v", name, pre.Checks, err)
		}
	}
	if ls, err := r.d.List(r.context()); err != nil || len(ls) > 0 {
		t.Errorf("describing left %v, %v", ls, err)
	}
}
