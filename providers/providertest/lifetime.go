package providertest

import (
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// running starts a seat that ends after a lifetime.
func (b *bench) running(lifetime time.Duration) *seat {
	b.Helper()
	s := b.seat()
	at := events.MillisUTC(b.now().Add(lifetime))
	s.expires = &at
	return s.until(events.VerbStart)
}

// extendable skips what a driver without extend can't show, after it was
// refused (R26).
func (b *bench) extendable() time.Duration {
	b.Helper()
	c := b.capabilities()
	if c.Extend.StepMs == 0 {
		s := b.running(time.Hour)
		to := s.expires.Add(time.Minute)
		s.refused(s.op(events.VerbExtend, events.Arguments{ExtendTo: &to}))
		b.notClaimed("the driver says that it can't extend, and refuses")
	}
	return time.Duration(c.Extend.StepMs) * time.Millisecond
}

func extendBounded(b *bench) {
	step := b.extendable()
	s := b.running(time.Hour)
	before := s.inspect().ExpiresAt
	if before == nil || before.Sub(*s.expires).Abs() > time.Second {
		b.Fatalf("asked to end at %s, the provider observes %v (R30)", s.expires, before)
	}
	// Three steps are asked for: one call gives at most one, and repeated
	// calls get there (R29).
	to := before.Add(2*step + step/2)
	op := s.op(events.VerbExtend, events.Arguments{ExtendTo: &to})
	f := s.mustOp(op)
	if err := providers.CheckExtend(before, f.ExpiresAt, events.ExtendLimit{StepMs: step.Milliseconds()}); err != nil {
		b.Errorf("%v", err)
	}
	if again := s.mustOp(op); again.ExpiresAt == nil || !again.ExpiresAt.Equal(*f.ExpiresAt) {
		b.Errorf("the same extend twice: %v, then %v", f.ExpiresAt, again.ExpiresAt)
	}
	if found := b.d.Reconcile(b.ctx, op); found.Verdict != providers.Landed {
		b.Errorf("reconcile of an extend: %+v", found)
	}
	for range 3 {
		f = s.must(events.VerbExtend, events.Arguments{ExtendTo: &to})
	}
	if f.ExpiresAt == nil || f.ExpiresAt.Sub(to).Abs() > time.Second {
		b.Errorf("repeated extends ended at %v, want %s", f.ExpiresAt, to)
	}
	if got := s.inspect(); got.ExpiresAt == nil || !got.ExpiresAt.Equal(*f.ExpiresAt) {
		b.Errorf("inspect shows %v, extend answered %v", got.ExpiresAt, f.ExpiresAt)
	}
}

func extendMonotone(b *bench) {
	b.extendable()
	s := b.running(time.Hour)
	before := s.inspect().ExpiresAt
	earlier := before.Add(-30 * time.Minute)
	// Refusing and doing nothing are both right; shortening is not.
	s.do(s.op(events.VerbExtend, events.Arguments{ExtendTo: &earlier}))
	if after := s.inspect().ExpiresAt; after == nil || after.Before(*before) {
		b.Errorf("an extend to an earlier time moved the end from %v to %v", before, after)
	}
}

// endsByItself waits for an environment's own end: nobody stops it.
func endsByItself(b *bench) {
	if b.o.Expiry == 0 {
		b.Skipf("no expiry short enough to wait for was given")
	}
	s := b.shortLived()
	ended := func() bool {
		f := s.inspect()
		return f.State == events.StateStopped || f.State == events.StateAbsent
	}
	b.eventually("the environment ends by itself", ended)
	if b.now().Before(*s.expires) {
		b.Errorf("it ended before %s", s.expires)
	}
	if b.capabilities().Extend.StepMs > 0 {
		to := b.now().Add(time.Minute)
		if out := s.do(s.op(events.VerbExtend, events.Arguments{ExtendTo: &to})); out.Kind == providers.Done {
			b.Errorf("an extend of what is over was done: %+v (scenario 30)", out.Facts)
		}
	}
	if out := s.do(s.op(events.VerbStart, events.Arguments{})); out.Kind == providers.Done {
		b.Errorf("what is over was started again: %+v", out.Facts)
	}
}

// shortLived starts a seat that is over soon. On a slow machine a lifetime may
// be over before the start; then a longer one is tried.
func (b *bench) shortLived() *seat {
	b.Helper()
	for lifetime := b.o.Expiry; ; lifetime *= 4 {
		s := b.seat()
		at := events.MillisUTC(b.now().Add(lifetime))
		s.expires = &at
		started := true
		for _, v := range []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart} {
			started = started && s.do(s.op(v, events.Arguments{})).Kind == providers.Done
		}
		if started {
			return s
		}
		if lifetime > b.o.patience() {
			b.Fatalf("no start within a lifetime of %s", lifetime)
		}
	}
}

func pauseResume(b *bench) {
	c := b.capabilities()
	s := b.seat().until(events.VerbStart)
	pause := s.op(events.VerbPause, events.Arguments{})
	if !c.PauseKeepsMemory {
		if out := s.do(pause); out.Kind == providers.Refused && out.Fault.Code == fault.Unimplemented {
			b.notClaimed("the driver says that it can't pause, and refuses")
		}
		b.notClaimed("the driver's pause does not keep memory")
	}
	if f := s.mustOp(pause); f.State != events.StatePaused {
		b.Errorf("pause: %+v", f)
	}
	if f := s.inspect(); f.State != events.StatePaused {
		b.Errorf("inspect of a paused one: %+v", f)
	}
	before := s.last.Incarnation
	if f := s.must(events.VerbResume, events.Arguments{}); f.State != events.StateRunning || f.Incarnation != before {
		b.Errorf("resume: %+v, want running in incarnation %q", f, before)
	}
	if f := s.inspect(); f.State != events.StateRunning {
		b.Errorf("inspect of a resumed one: %+v", f)
	}
}
