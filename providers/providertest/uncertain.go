package providertest

import (
	"context"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

func reconcileLanded(b *bench) {
	s := b.seat()
	for _, v := range []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart} {
		op := s.op(v, events.Arguments{})
		done := s.mustOp(op)
		f := b.d.Reconcile(b.ctx, op)
		if f.Verdict != providers.Landed || f.Facts.Ref != done.Ref || f.Evidence == "" {
			b.Errorf("reconcile of %s that was done: %+v", v, f)
		}
	}
}

func reconcileUnseen(b *bench) {
	s := b.seat()
	if f := b.d.Reconcile(b.ctx, s.op(events.VerbReserve, events.Arguments{})); f.Verdict == providers.Landed {
		b.Errorf("a reserve that was never sent has landed: %+v", f)
	}
	s.until(events.VerbProvision)
	if f := b.d.Reconcile(b.ctx, s.op(events.VerbStart, events.Arguments{})); f.Verdict == providers.Landed {
		b.Errorf("a start that was never sent has landed: %+v", f)
	}
}

func excludeFence(b *bench) {
	s := b.seat().until(events.VerbProvision)
	op := s.op(events.VerbStart, events.Arguments{})
	f := b.d.Exclude(b.ctx, op)
	if b.o.NoFence != "" {
		if f.Verdict != providers.Open || fault.CodeOf(f.Fault) != fault.Unimplemented {
			b.Errorf("exclude without a fence: %+v, want open with unimplemented", f)
		}
		return
	}
	if f.Verdict != providers.Excluded {
		b.Fatalf("exclude of what was never sent: %+v", f)
	}
	if f = b.d.Exclude(b.ctx, op); f.Verdict != providers.Excluded {
		b.Errorf("exclude again: %+v", f)
	}
	s.refused(op) // the call that was on its way arrives after the fence
	if f = b.d.Reconcile(b.ctx, op); f.Verdict != providers.Excluded {
		b.Errorf("reconcile after the fence: %+v", f)
	}
	if got := s.inspect(); got.State == events.StateRunning {
		b.Errorf("an excluded start runs: %+v", got)
	}
	// The fence is for that id only.
	if got := s.must(events.VerbStart, events.Arguments{}); got.State != events.StateRunning {
		b.Errorf("start under another id: %+v", got)
	}
	excludeCreate(b)
}

// excludeCreate fences the first operation of an environment that the driver
// has never heard of.
func excludeCreate(b *bench) {
	s := b.seat()
	op := s.op(events.VerbReserve, events.Arguments{})
	if f := b.d.Exclude(b.ctx, op); f.Verdict != providers.Excluded {
		b.Errorf("exclude of a reserve that was never sent: %+v", f)
	}
	s.refused(op)
	if f, err := b.d.Inspect(b.ctx, s.id, ""); err == nil && f.State != events.StateAbsent {
		b.Errorf("an excluded reserve left %+v", f)
	}
}

func excludeLanded(b *bench) {
	s := b.seat()
	op := s.op(events.VerbReserve, events.Arguments{})
	s.mustOp(op)
	f := b.d.Exclude(b.ctx, op)
	if b.o.NoFence == "" && f.Verdict != providers.Landed || f.Verdict == providers.Excluded {
		b.Errorf("exclude of what had landed: %+v, want landed", f)
	}
}

// lostAnswer gives up at several moments of a call. Whatever is heard, proof
// must be found, and what is observed must agree with it.
func lostAnswer(b *bench) {
	for _, after := range []time.Duration{0, 100 * time.Microsecond, 2 * time.Millisecond} {
		s := b.seat().until(events.VerbProvision)
		op := s.op(events.VerbStart, events.Arguments{})
		ctx, cancel := context.WithCancel(b.ctx)
		t := time.AfterFunc(after, cancel)
		out := b.d.Do(ctx, op)
		t.Stop()
		cancel()
		f := s.settle(op)
		running := s.inspect().State == events.StateRunning
		if running != (f.Verdict == providers.Landed) {
			b.Errorf("given up after %s: heard %s, proved %s, but running is %v", after, out.Kind, f.Verdict, running)
		}
		if out.Kind == providers.Done && !running || out.Kind == providers.Refused && running {
			b.Errorf("given up after %s: heard %s, but running is %v", after, out.Kind, running)
		}
	}
}

// bounded calls with a context that has already ended: every method returns,
// and none claims success by guessing.
func bounded(b *bench) {
	s := b.seat().until(events.VerbReserve)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	returned := make(chan struct{})
	op := s.op(events.VerbProvision, events.Arguments{})
	go func() {
		defer close(returned)
		providers.Raw(b.d).Do(ctx, op)
		b.d.Reconcile(ctx, op)
		_, _ = b.d.Inspect(ctx, s.id, s.ref)
		_, _ = b.d.List(ctx)
		_, _ = b.d.Preflight(ctx, b.o.Plan)
	}()
	select {
	case <-returned:
	case <-time.After(b.o.patience()):
		b.Fatalf("a call goes on after its context has ended")
	}
	f := s.settle(op)
	if f.Verdict == providers.Excluded {
		s.refused(op)
	}
}

func olderEpoch(b *bench) {
	s := b.seat().until(events.VerbProvision)
	op := s.op(events.VerbStart, events.Arguments{})
	op.Writer.Epoch--
	if b.o.NoEpochs != "" {
		b.notClaimed("%s", b.o.NoEpochs)
	}
	s.refused(op)
	if f := s.inspect(); f.State == events.StateRunning {
		b.Errorf("an older epoch started it: %+v", f)
	}
	b.writer.Epoch++
	s.must(events.VerbStart, events.Arguments{})
}

func unsupportedVerb(b *bench) {
	s := b.seat().until(events.VerbReserve)
	s.refused(s.op("teleport", events.Arguments{}), fault.Unimplemented, fault.BadRequest)
	if f := s.inspect(); f.State == events.StateRunning || f.State == events.StateAbsent {
		b.Errorf("an unknown verb changed it: %+v", f)
	}
}
