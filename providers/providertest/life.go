package providertest

import (
	"encoding/json"
	"reflect"
	"sync"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

func hostFacts(b *bench) {
	f, err := b.d.HostFacts(b.ctx)
	if err != nil {
		b.Fatalf("host facts: %v", err)
	}
	again, err := b.d.HostFacts(b.ctx)
	if err != nil || again.Host != f.Host {
		b.Errorf("the host's label is not stable: %q, then %q (%v)", f.Host, again.Host, err)
	}
	if f.Allocatable.CPUs.IsZero() || f.Allocatable.MemoryMiB <= 0 || f.Allocatable.Slots <= 0 {
		b.Errorf("allocatable is empty: %+v", f.Allocatable)
	}
}

func imageUnchanged(b *bench) {
	d, err := b.d.DescribeImage(b.ctx, b.o.Plan.Image) // the guard refuses another image
	if err != nil {
		b.Fatalf("describe image: %v", err)
	}
	if d.Architecture == "" {
		b.Errorf("the description has no architecture (R18)")
	}
	again, err := b.d.DescribeImage(b.ctx, b.o.Plan.Image)
	if err != nil || !reflect.DeepEqual(again, d) {
		b.Errorf("describing twice gave %+v, then %+v (%v)", d, again, err)
	}
}

func capabilitySet(b *bench) {
	c := b.capabilities()
	raw, err := json.Marshal(c)
	if err != nil {
		b.Fatalf("%v", err)
	}
	if _, err := providers.CheckCapabilities(raw); err != nil {
		b.Errorf("%v", err)
	}
	if again := b.capabilities(); again != c {
		b.Errorf("two probes of one plan gave %+v, then %+v", c, again)
	}
	ls, err := b.d.List(b.ctx)
	if err != nil {
		b.Fatalf("list: %v", err)
	}
	if len(ls) != 0 {
		b.Errorf("preflight left environments behind: %v", ls)
	}
}

func wholeLife(b *bench) {
	s := b.seat()
	f := s.must(events.VerbReserve, events.Arguments{})
	if f.Ref == "" || f.State == events.StateRunning || f.State == events.StateAbsent {
		b.Errorf("reserve: %+v", f)
	}
	s.must(events.VerbProvision, events.Arguments{})
	if f = s.must(events.VerbStart, events.Arguments{}); f.State != events.StateRunning || f.StoppedAt != nil {
		b.Errorf("start: %+v, want running", f)
	}
	if f = s.inspect(); f.State != events.StateRunning || f.Ref != s.ref {
		b.Errorf("inspect of a running one: %+v", f)
	}
	if f = s.must(events.VerbStop, events.Arguments{Grace: "1s"}); f.State != events.StateStopped || f.StoppedAt == nil {
		b.Errorf("stop: %+v, want stopped with its time (R67)", f)
	}
	if f = s.inspect(); f.State != events.StateStopped || f.StoppedAt == nil {
		b.Errorf("inspect of a stopped one: %+v", f)
	}
	if f = s.must(events.VerbDestroy, events.Arguments{}); f.State != events.StateAbsent {
		b.Errorf("destroy: %+v, want absent", f)
	}
}

func sameID(b *bench) {
	s := b.seat()
	for _, v := range []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart} {
		op := s.op(v, events.Arguments{})
		first := s.mustOp(op)
		second := s.mustOp(op)
		if first.Ref != second.Ref || first.Incarnation != second.Incarnation || first.State != second.State {
			b.Errorf("%s twice under one id: %+v, then %+v", v, first, second)
		}
	}
}

func otherArguments(b *bench) {
	s := b.seat()
	op := s.op(events.VerbReserve, events.Arguments{})
	s.mustOp(op)
	other := op
	other.Verb, other.Ref = events.VerbProvision, s.ref
	s.refused(other, fault.Conflict)
	stop := s.op(events.VerbStop, events.Arguments{Grace: "1s"})
	s.must(events.VerbProvision, events.Arguments{})
	s.must(events.VerbStart, events.Arguments{})
	s.mustOp(stop)
	stop.Arguments.Grace = "2s"
	s.refused(stop, fault.Conflict)
}

func oneEnvironment(b *bench) {
	s := b.seat()
	s.must(events.VerbReserve, events.Arguments{})
	again := s.op(events.VerbReserve, events.Arguments{})
	again.Ref = ""
	out := b.d.Do(b.ctx, again)
	if out.Kind != providers.Refused {
		b.Errorf("a second reserve of one environment: %s %v, want refused", out.Kind, out.Fault)
	}
}

func manyAtOnce(b *bench) {
	const many = 4
	seats := make([]*seat, many)
	outs := make([]providers.Outcome, many)
	var wg sync.WaitGroup
	for i := range seats {
		seats[i] = b.seat()
		op := seats[i].op(events.VerbReserve, events.Arguments{})
		wg.Go(func() { outs[i] = b.d.Do(b.ctx, op) })
	}
	wg.Wait()
	refs := map[string]bool{}
	for i, out := range outs {
		if out.Kind != providers.Refused {
			b.made = append(b.made, seats[i])
		}
		if out.Kind != providers.Done || refs[out.Facts.Ref] {
			b.Errorf("reserve %d of %d at once: %s %q %v", i, many, out.Kind, out.Facts.Ref, out.Fault)
		}
		refs[out.Facts.Ref] = true
		seats[i].ref = out.Facts.Ref
	}
}

func unknownEnvironment(b *bench) {
	s := b.seat()
	f, err := b.d.Inspect(b.ctx, s.id, "")
	if err == nil && f.State != events.StateAbsent {
		b.Errorf("inspect of what was never made: %+v", f)
	}
	s.refused(s.op(events.VerbStart, events.Arguments{}))
}

func foreignReference(b *bench) {
	one, two := b.seat().until(events.VerbReserve), b.seat().until(events.VerbReserve)
	if f, err := b.d.Inspect(b.ctx, one.id, two.ref); err == nil {
		b.Errorf("inspect of one environment with the reference of another: %+v", f)
	}
	// The end too: what would be destroyed is not what is meant.
	for _, v := range []events.Verb{events.VerbProvision, events.VerbStop, events.VerbDestroy} {
		op := one.op(v, events.Arguments{})
		op.Ref = two.ref
		one.refused(op)
	}
	for _, s := range []*seat{one, two} {
		if f := s.inspect(); f.State == events.StateAbsent || f.State == events.StateStopped || f.Ref != s.ref {
			b.Errorf("after refused calls with another reference: %+v", f)
		}
	}
}

func destroyed(b *bench) {
	s := b.seat().until(events.VerbStart)
	s.must(events.VerbStop, events.Arguments{Grace: "0s"})
	op := s.op(events.VerbDestroy, events.Arguments{})
	s.mustOp(op)
	if f := s.mustOp(op); f.State != events.StateAbsent {
		b.Errorf("destroy again under its id: %+v", f)
	}
	if f := s.inspect(); f.State != events.StateAbsent {
		b.Errorf("inspect after destroy: %+v, want absent", f)
	}
	if f := b.d.Reconcile(b.ctx, op); f.Verdict != providers.Landed {
		b.Errorf("reconcile of the destroy: %+v, want landed", f)
	}
	for _, v := range []events.Verb{events.VerbReserve, events.VerbStart} {
		again := s.op(v, events.Arguments{})
		if v == events.VerbReserve {
			again.Ref = ""
		}
		if out := b.d.Do(b.ctx, again); out.Kind != providers.Refused {
			b.Errorf("%s of a destroyed environment: %s %v, want refused", v, out.Kind, out.Fault)
		}
	}
}

func listed(b *bench) {
	s := b.seat().until(events.VerbReserve)
	find := func() int {
		ls, err := b.d.List(b.ctx)
		if err != nil {
			b.Fatalf("list: %v", err)
		}
		n := 0
		for _, l := range ls {
			if l.Environment == s.id {
				n++
				if l.Ref != s.ref {
					b.Errorf("listed with reference %q, reserved with %q", l.Ref, s.ref)
				}
			}
		}
		return n
	}
	if n := find(); n != 1 {
		b.Errorf("a reserved environment is listed %d times", n)
	}
	s.must(events.VerbDestroy, events.Arguments{})
	if n := find(); n != 0 {
		b.Errorf("a destroyed environment is listed %d times", n)
	}
}
