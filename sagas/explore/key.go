package explore

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/events"
	"berth/sagas"
)

// Key tells states apart by everything that the core and the laws look at.
type Key [16]byte

// writer builds the bytes of a key: every field ends, so that no two states
// have the same bytes.
type writer []byte

func (b *writer) text(ss ...string) {
	for _, s := range ss {
		*b = append(append(*b, s...), 0)
	}
}

func (b *writer) flags(fs ...bool) {
	for _, f := range fs {
		c := byte('-')
		if f {
			c = '+'
		}
		*b = append(*b, c)
	}
}

func (b *writer) numbers(ns ...int) {
	for _, n := range ns {
		*b = binary.AppendVarint(*b, int64(n))
	}
}

// moment is a time, from the beginning of the newest life.
func (b *writer) moment(w *world, t *time.Time) {
	if t == nil || t.IsZero() {
		b.flags(false)
		return
	}
	b.flags(true)
	b.numbers(int(t.Sub(moments[w.base]) / time.Second))
}

func (w *world) key() Key {
	b := make(writer, 0, 1024)
	b.seat(w, w.seat)
	b.try(w.try)
	b.flags(w.mint.ID != "")
	b.numbers(w.clock-w.base, w.left.Faults, w.left.Crashes, w.left.Commands, w.left.Changes, w.left.Lives)
	for _, l := range w.lives {
		b.flags(l != nil)
		if l != nil {
			b.life(w, l)
		}
	}
	if b.flags(w.sleep != nil); w.sleep != nil {
		if old := w.stale(); old {
			b.flags(true) // all old views are one: the log takes nothing of them
		} else {
			b.flags(false, w.sleep.self.Instance == w.self.Instance, w.sleep.mint.ID != "")
			b.numbers(w.sleep.clock - w.base)
			b.try(w.sleep.try)
			if op := w.seat.Environment.Operation; op != nil {
				b.flags(op.Writer == w.sleep.self)
			}
			b.flags(w.seat.Slot.Epoch == w.sleep.self.Epoch)
		}
	}
	sum := sha256.Sum256(b)
	return Key(sum[:16])
}

func (b *writer) try(t sagas.Try) {
	b.flags(t.InFlight, t.Observe, t.Next.After(start))
	b.numbers(t.Count)
}

// seat is a boundary; epochs and instances only as "who acts" or not.
func (b *writer) seat(w *world, s *aggregates.Seat) {
	b.text(string(s.Slot.Phase), s.Slot.Reason, string(s.Head.Phase), string(s.Head.Gate.Phase), s.Head.Gate.Kind)
	b.flags(s.Slot.Cleaned, s.Slot.Activated, s.Slot.Holder == w.self.Instance, s.Slot.Epoch == w.self.Epoch, s.Head.Current != "")
	b.numbers(len(s.Head.Ledger), len(s.Head.Revoke()))
	e := &s.Environment
	b.text(string(e.Record), string(e.Target), e.Incarnation)
	b.flags(e.Ref != "", e.Provisioned, e.Started, e.Paused, e.Gone, e.WrittenOff, e.Refusal != nil, !e.ProbedAt.IsZero(), e.ExitCode != nil, e.StoppedAt != nil)
	b.numbers(e.Excluded, e.Throttled, len(e.Checkpoints), len(e.Queue))
	b.moment(w, e.Deadline)
	b.moment(w, e.ExpiresAt)
	if b.flags(e.Operation != nil); e.Operation != nil {
		b.operation(w, e.Operation)
	}
	for i := range e.Queue {
		b.operation(w, &e.Queue[i])
	}
	stops, files := 0, 0
	for _, o := range e.Done {
		switch {
		case o.Verb == events.VerbStop:
			stops++
		case o.Verb == events.VerbExport && o.Succeeded() && o.File == nil && o.Fault == nil:
			files++
		}
	}
	b.numbers(min(stops, sagas.MaxStops), files)
	b.intents(w, s)
}

func (b *writer) operation(w *world, o *environment.Operation) {
	b.text(string(o.Verb), string(o.Phase))
	overdue := w.now().Sub(o.Begun) >= sagas.PatienceOf(o.Verb).Alarm
	if b.flags(o.Stuck, o.Writer == w.self, overdue); !overdue {
		b.moment(w, &o.Begun)
	}
	b.moment(w, o.Arguments.ExtendTo)
	b.moment(w, o.Arguments.Wanted)
}

func (b *writer) goal(w *world, g goal.State) {
	b.text(string(g.State), g.CancelMode)
	if b.flags(g.Settled != nil); !g.State.Terminal() {
		b.moment(w, &g.Ready)
	}
}

// life is a life of the name. One that is over altogether is only that.
func (b *writer) life(w *world, l *life) {
	b.goal(w, l.goal)
	b.goal(w, l.file)
	if b.flags(l.turn.State != ""); l.turn.State != "" {
		b.turn(w, l)
	}
	if w.left.Prompt { // what is pending comes first; else progress is only a word
		s := w.seatOf(l)
		b.flags(len(w.r.NextGoal(l.goal, s, l.boundary, w.now())) > 0, len(w.r.NextGoal(l.file, s, l.export, w.now())) > 0)
	}
	if l.file.State != "" && !l.file.State.Terminal() {
		s := w.seatOf(l)
		op, ok := s.Environment.Find(l.file.Allocated.Operation)
		b.flags(ok, op.File != nil, op.Fault != nil)
		b.text(string(op.Phase))
	}
	b.flags(l.claimed, l.ran, l.broken, l.seat != nil, l.heir != nil)
	b.text(string(l.truth))
	if l.exists() {
		b.numbers(l.machine)
		b.moment(w, &l.expires)
	}
	if l.heir != nil {
		b.seat(w, l.heir)
		b.try(l.heirTry)
	}
	if l.seat != nil && !(finished(l.goal) && (l.file.State == "" || finished(l.file)) && (l.turn.State == "" || finished(l.turn))) {
		b.seat(w, l.seat)
	}
	if b.flags(l.call != nil); l.call != nil {
		b.text(string(l.call.verb))
		b.flags(l.call.landed, l.call.fenced)
		b.numbers(int(l.call.asker))
		b.moment(w, l.call.args.ExtendTo)
	}
}

// turn is the goal of a life's turn, and the turn as its seat has it.
func (b *writer) turn(w *world, l *life) {
	b.goal(w, l.turn)
	s := w.seatOf(l)
	t, _ := s.Turns.Find(l.turn.Allocated.Operation)
	b.text(string(t.Phase), string(t.Outcome), t.Reason)
	b.flags(t.DownAt != nil, s.Turns.UID == l.uid)
	b.moment(w, &t.Deadline)
	if w.left.Prompt {
		b.flags(len(w.r.NextGoal(l.turn, s, l.asked, w.now())) > 0)
	}
}

// finished says that a goal takes nothing more.
func finished(g goal.State) bool {
	return g.State.Terminal() && (g.State != events.GoalUncertain || g.Settled != nil)
}
