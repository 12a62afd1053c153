package providertest

import (
	"time"

	"berth/events"
	"berth/providers"
)

// restored holds a driver that keeps snapshots to what it then owes: a
// checkpoint is put back in place, under the same reference and with the same
// deadline, and what runs afterwards is another incarnation. One that is not
// there is refused, and the seat goes on as it was.
func restored(b *bench) {
	if !b.capabilities().Snapshot {
		s := b.seat().until(events.VerbStart)
		s.refused(s.op(events.VerbRestore, events.Arguments{CheckpointID: newUUID()}))
		b.notClaimed("the driver says that it can't restore, and refuses")
	}
	s := b.running(time.Hour)
	cp := s.checkpoint()
	before := s.inspect()
	s.refused(s.op(events.VerbRestore, events.Arguments{CheckpointID: newUUID()}))
	s.refused(s.op(events.VerbRestore, events.Arguments{}))
	if f := s.inspect(); f.State != events.StateRunning || f.Incarnation != before.Incarnation {
		b.Errorf("a refused restore left %s in incarnation %q, it was %q", f.State, f.Incarnation, before.Incarnation)
	}
	op := s.op(events.VerbRestore, events.Arguments{CheckpointID: cp.ID})
	first := s.mustOp(op)
	if again := s.mustOp(op); again.Incarnation != first.Incarnation {
		b.Errorf("one restore, two incarnations: %q, then %q", first.Incarnation, again.Incarnation)
	}
	if found := b.d.Reconcile(b.ctx, op); found.Verdict != providers.Landed || found.Facts.Incarnation != first.Incarnation {
		b.Errorf("reconcile of a restore: %+v, want the same incarnation %q", found, first.Incarnation)
	}
	if found := b.d.Exclude(b.ctx, op); found.Verdict != providers.Landed {
		b.Errorf("a restore that has landed is excluded: %+v", found)
	}
	seen := []string{before.Incarnation, s.putBack(before).Incarnation}
	for what, verb := range map[string]events.Verb{"paused": events.VerbPause, "ended": events.VerbStop} {
		if verb == events.VerbPause && !b.capabilities().PauseKeepsMemory {
			continue
		}
		s.must(verb, events.Arguments{})
		s.must(events.VerbRestore, events.Arguments{CheckpointID: cp.ID})
		f := s.putBack(before)
		for _, i := range seen {
			if f.Incarnation == i {
				b.Errorf("what was %s and is put back runs as incarnation %q, which was there before", what, i)
			}
		}
		seen = append(seen, f.Incarnation)
	}
}

// putBack is what is observed after a restore: running, and otherwise the same
// environment.
func (s *seat) putBack(before events.Facts) events.Facts {
	s.b.Helper()
	f := s.inspect()
	if f.State != events.StateRunning || f.Ref != before.Ref || f.StoppedAt != nil || f.ExitCode != nil {
		s.b.Errorf("after a restore: %+v, want %s to run", f, before.Ref)
	}
	if f.ExpiresAt == nil || before.ExpiresAt == nil || !f.ExpiresAt.Equal(*before.ExpiresAt) {
		s.b.Errorf("a restore moved the end from %v to %v", before.ExpiresAt, f.ExpiresAt)
	}
	if f.Incarnation == "" || f.Incarnation == before.Incarnation {
		s.b.Errorf("after a restore it is still incarnation %q", f.Incarnation)
	}
	return f
}
