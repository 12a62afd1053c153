package server

import (
	"testing"
	"time"

	"berth/events"
)

// What is appended while an environment is looked at is looked at again: the
// look may have seen it before that, and would forget its deadline for good
// (R31).
func TestAnEndThatMovesDuringALookIsKept(t *testing.T) {
	const id = events.EnvironmentID("e")
	at := time.Unix(1_000, 0)
	s := &Server{clock: func() time.Time { return at.Add(-lookAgain) }}
	until := func(t time.Time) standing { return standing{ref: "r", expires: &t} }
	for name, c := range map[string]struct {
		noted []standing
		next  *time.Time
		want  *time.Time
	}{
		"nothing":                      {},
		"a start":                      {noted: []standing{until(at)}, want: &at},
		"a start, then its end":        {noted: []standing{until(at), {ref: "r", over: true}}},
		"a start, and a later attempt": {noted: []standing{until(at.Add(time.Hour))}, next: &at, want: &at},
	} {
		e := newEnds(s)
		e.note(id, until(at))
		e.at[id] = look{next: at, pause: lookAgain, busy: true}
		for _, s := range c.noted {
			e.note(id, s)
		}
		if !e.at[id].busy {
			t.Errorf("%s: a second look would begin beside the first", name)
		}
		e.looked(id, c.next)
		got, kept := e.at[id]
		if kept != (c.want != nil) || kept && (got.busy || !got.next.Equal(*c.want)) {
			t.Errorf("%s: %+v, %v", name, got, kept)
		}
	}
}
