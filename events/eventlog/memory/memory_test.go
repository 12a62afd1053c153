package memory_test

import (
	"bytes"
	"context"
	"reflect"
	"testing"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/eventlog/logtest"
	"berth/events/eventlog/memory"
	"berth/events/fault"
)

const id = events.EventID("01890a5d-ac96-774b-bcce-b302099a8057")

func commit(i int, b events.Boundary, expect uint64) events.Commit {
	return events.Commit{Boundary: b, Expect: expect, Meta: events.Meta{ID: id.At(i * 32)},
		Events: []events.Event{events.SlotActivated{UID: "abcdefghijklmnopqrstuvwxyz"}}}
}

func TestHooks(t *testing.T) {
	ctx := context.Background()
	l := memory.New()
	b := events.SeatBoundary("local", "web")
	lost := fault.New(fault.Unavailable, "lost")
	l.SetHooks(memory.Hooks{Before: func([]events.Commit) error { return lost }})
	if _, err := l.Commit(ctx, commit(1, b, 0)); err != lost {
		t.Fatal(err)
	}
	if tip, _ := l.Tip(ctx); tip != 0 {
		t.Fatalf("a failed Before stored %d", tip)
	}
	l.SetHooks(memory.Hooks{After: func([]events.Record) error { return lost }})
	if _, err := l.Commit(ctx, commit(1, b, 0)); err != lost {
		t.Fatal(err)
	}
	l = l.Crash()
	r, err := l.Commit(ctx, commit(1, b, 0))
	if err != nil || r.Sequence != 1 {
		t.Fatalf("the same commit after a lost answer: %d %v", r.Sequence, err)
	}
	l.SetFull(true)
	if _, err := l.Commit(ctx, commit(2, b, 1)); fault.CodeOf(err) != fault.ResourceExhausted {
		t.Fatal(err)
	}
	if r, err := l.Commit(ctx, commit(1, b, 0)); err != nil || r.Sequence != 1 {
		t.Fatalf("a full log must still answer what it holds: %v", err)
	}
}

// An echoing log gives what was committed, and stores the same bytes.
func TestEcho(t *testing.T) {
	ctx := context.Background()
	b := events.SeatBoundary("local", "web")
	reads, echoes := memory.New(), memory.New()
	echoes.SetEcho(true)
	for i := range 3 {
		want, err := reads.Commit(ctx, commit(i+1, b, uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := echoes.Commit(ctx, commit(i+1, b, uint64(i)))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, and read back it is %+v, %v", got, want, err)
		}
		if s := want.Sequence; !bytes.Equal(echoes.Body(s), reads.Body(s)) {
			t.Errorf("record %d has other bytes", s)
		}
	}
	logtest.Run(t, func(*testing.T) logtest.Subject {
		l := memory.New()
		l.SetEcho(true)
		return logtest.Subject{Log: l, AppendRaw: func(b events.Boundary, body []byte) error { l.AppendRaw(b, body); return nil },
			Refuse: func() { l.SetFull(true) }, Reopen: func() eventlog.Log { return l }}
	})
}

func BenchmarkCommit(b *testing.B) {
	ctx := context.Background()
	l := memory.New()
	at := events.SeatBoundary("local", "web")
	for i := 0; b.Loop(); i++ {
		if _, err := l.Commit(ctx, commit(i+1, at, uint64(i))); err != nil {
			b.Fatal(err)
		}
	}
}
