package aggregates_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
)

// v7 is a time-ordered id of a moment, as a client makes it.
func v7(when time.Time, n int) events.CommandID {
	ms := uint64(when.UnixMilli())
	var u uuid.UUID
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6], u[8], u[14], u[15] = 0x70, 0x80, byte(n>>8), byte(n)
	return events.CommandID(u.String())
}

// commands folds n commands, one every step, whose ids were made `ahead` of
// the writer's clock.
func commands(n int, step, ahead time.Duration) (aggregates.Seat, func(int) events.CommandID) {
	s := aggregates.NewSeat(boundary)
	id := func(i int) events.CommandID { return v7(at(time.Duration(i)*step+ahead), i) }
	for i := range n {
		m := events.Meta{Time: at(time.Duration(i) * step), Command: id(i), Fingerprint: fmt.Sprint("f", i), Operation: op1}
		s = s.Apply(events.Record{Sequence: uint64(i + 1), Boundary: boundary, Meta: m, Events: []events.Event{events.CommandAnswered{}}})
	}
	return s, id
}

func seenAs(t *testing.T, s aggregates.Seat, id events.CommandID, fingerprint string) string {
	t.Helper()
	e, found, err := s.Commands.Seen(id, fingerprint)
	switch {
	case err != nil:
		if f := fault.From(err); f.Outcome != fault.NotExecuted {
			t.Errorf("outcome %s", f.Outcome)
		}
		return string(fault.CodeOf(err))
	case found:
		return fmt.Sprint("same at ", e.Sequence)
	}
	return "new"
}

// Decision 5: the last 64 and at least 24 h; older is expired; a repeat gets
// the same answer, another request under the same id is a conflict.
func TestCommandsAreRemembered(t *testing.T) {
	hour := time.Hour
	for _, c := range []struct {
		name  string
		n     int
		step  time.Duration
		ahead time.Duration
		i     int
		want  string
	}{
		{"the last of few", 10, hour, 0, 9, "same at 10"},
		{"few are kept whatever their age", 64, hour, 0, 0, "same at 1"},
		{"the 65th drops the oldest", 65, hour, 0, 0, "expired"},
		{"and not the next", 65, hour, 0, 1, "same at 2"},
		{"young ones are kept beyond 64", 200, time.Minute, 0, 0, "same at 1"},
		{"exactly 24 h is kept", 97, 15 * time.Minute, 0, 0, "same at 1"},
		{"a step over 24 h is not", 98, 15 * time.Minute, 0, 0, "expired"},
		{"never more than the cap", aggregates.MaxCommandsKept + 1, time.Second, 0, 0, "expired"},
		{"the cap itself is kept", aggregates.MaxCommandsKept, time.Second, 0, 0, "same at 1"},
		{"a caller whose clock is ahead", 65, hour, 30 * time.Minute, 0, "expired"},
		{"never seen, made later than all", 65, hour, 0, 70, "new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, id := commands(c.n, c.step, c.ahead)
			if got := seenAs(t, s, id(c.i), fmt.Sprint("f", c.i)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if n := len(s.Commands.Kept); n > aggregates.MaxCommandsKept {
				t.Errorf("%d are kept", n)
			}
		})
	}
	s, id := commands(3, hour, 0)
	if got := seenAs(t, s, id(1), "other"); got != string(fault.Conflict) {
		t.Errorf("the same id with another request: %s", got)
	}
	if got := seenAs(t, s, "my-own-id", "f"); got != "new" {
		t.Errorf("an id without a time: %s", got)
	}
}

// A clock that was set back does not make forgotten ids look new (scenario 38).
func TestForgottenNeverGoesBack(t *testing.T) {
	s, id := commands(66, time.Hour, 0)
	before := s.Commands.Forgotten
	for i := range aggregates.MaxCommandsKept + 70 {
		m := events.Meta{Time: at(-time.Hour), Command: events.CommandID(fmt.Sprint("late-", i)), Fingerprint: "f"}
		s = s.Apply(events.Record{Sequence: uint64(100 + i), Boundary: boundary, Meta: m, Events: []events.Event{events.CommandAnswered{}}})
	}
	if s.Commands.Forgotten.Before(before) {
		t.Errorf("forgotten went from %s back to %s", before, s.Commands.Forgotten)
	}
	if got := seenAs(t, s, id(0), "f0"); got != string(fault.Expired) {
		t.Errorf("a forgotten id: %s", got)
	}
}

// Two of a command's events in one or two records are one command.
func TestOneCommandIsKeptOnce(t *testing.T) {
	s, _ := commands(1, time.Hour, 0)
	m := events.Meta{Time: t0, Command: s.Commands.Kept[0].ID, Fingerprint: "f0"}
	s = s.Apply(events.Record{Sequence: 2, Boundary: boundary, Meta: m, Events: []events.Event{events.CommandAnswered{}}})
	if len(s.Commands.Kept) != 1 || s.Commands.Kept[0].Sequence != 1 {
		t.Errorf("%+v", s.Commands.Kept)
	}
}

// Decision 3: an incomplete atomic publish decided nothing, its command too.
func TestATornRecordOnlyMovesTheSequence(t *testing.T) {
	b := events.SeatBoundary("local", "demo")
	torn := events.Record{Sequence: 7, Boundary: b, Torn: true, Meta: events.Meta{Command: "c-1", Fingerprint: "f"}}
	s := aggregates.NewSeat(b).Apply(torn)
	if _, seen, err := s.Commands.Seen("c-1", "f"); seen || err != nil || s.Sequence != 7 {
		t.Fatalf("seen %v, %v, sequence %d", seen, err, s.Sequence)
	}
}
