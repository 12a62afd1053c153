package logtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
)

// fill makes a log of n commits over three boundaries.
func fill(t *testing.T, ctx context.Context, l eventlog.Log, n int) {
	t.Helper()
	last := map[events.Boundary]uint64{}
	for i := 1; i <= n; i++ {
		b := seat(i % 3)
		last[b] = mustCommit(t, ctx, l, Commit(i, b, last[b])).Sequence
	}
}

func chain(t *testing.T, ctx context.Context, s Subject) {
	fill(t, ctx, s.Log, 9)
	last := map[events.Boundary]events.Record{}
	for _, r := range scan(t, ctx, s.Log, 0) {
		p := last[r.Boundary]
		if r.Prior != p.Hash || r.Previous != p.Sequence || r.Hash.IsZero() {
			t.Fatalf("record %d does not follow from %d", r.Sequence, p.Sequence)
		}
		last[r.Boundary] = r
	}
}

func reopening(t *testing.T, ctx context.Context, s Subject) {
	fill(t, ctx, s.Log, 5)
	before := texts(scan(t, ctx, s.Log, 0))
	l := s.Reopen()
	if got := texts(scan(t, ctx, l, 0)); got != before {
		t.Fatalf("%s became %s", before, got)
	}
	mustCommit(t, ctx, l, Commit(6, seat(2), 5))
}

func everyCut(t *testing.T, ctx context.Context, s Subject) {
	const n = 20
	fill(t, ctx, s.Log, n)
	if _, err := s.Log.CommitAll(ctx, []events.Commit{Commit(21, seat(4), 0), Commit(22, seat(5), 0)}); err != nil {
		t.Fatal(err)
	}
	whole := scan(t, ctx, s.Log, 0)
	for cut := range uint64(n + 3) {
		// A reader that stopped after `cut` goes on from there.
		var got []events.Record
		err := s.Log.Follow(ctx, cut, func(r events.Record) error {
			got = append(got, r)
			if r.Sequence == whole[len(whole)-1].Sequence {
				return errEnough
			}
			return nil
		}, func() {
			if int(cut) == len(whole) { // all is given: one more ends the last round
				whole = append(whole, mustCommit(t, ctx, s.Log, Commit(23, seat(6), 0)))
			}
		})
		if err != errEnough || texts(got) != texts(whole[cut:]) {
			t.Fatalf("after %d: %s %v", cut, texts(got), err)
		}
	}
}

func followLive(t *testing.T, ctx context.Context, s Subject) {
	fill(t, ctx, s.Log, 3)
	caught := 0
	var got []events.Record
	err := s.Log.Follow(ctx, 1, func(r events.Record) error {
		got = append(got, r)
		if r.Sequence == 3 && caught > 0 {
			t.Error("caught up before the tip was given")
		}
		if r.Sequence == 5 {
			return errEnough
		}
		return nil
	}, func() {
		caught++
		mustCommit(t, ctx, s.Log, Commit(4, seat(7), 0))
		mustCommit(t, ctx, s.Log, Commit(5, seat(7), 4))
	})
	if err != errEnough || caught != 1 || texts(got) != "2:2 3:3 4:4 5:5" {
		t.Fatalf("%s, caught up %d times, %v", texts(got), caught, err)
	}
	empty, cancel := context.WithCancel(ctx)
	if err := s.Log.Follow(empty, 5, func(events.Record) error { return nil }, cancel); err != context.Canceled {
		t.Fatalf("following from the tip: %v", err)
	}
}

func scanEnds(t *testing.T, ctx context.Context, s Subject) {
	if got := scan(t, ctx, s.Log, 0); len(got) != 0 {
		t.Fatal(texts(got))
	}
	fill(t, ctx, s.Log, 4)
	if got := texts(scan(t, ctx, s.Log, 2)) + "|" + texts(scan(t, ctx, s.Log, 4)) + texts(scan(t, ctx, s.Log, 9)); got != "3:3 4:4|" {
		t.Fatal(got)
	}
}

func readerError(t *testing.T, ctx context.Context, s Subject) {
	fill(t, ctx, s.Log, 4)
	calls := 0
	fn := func(events.Record) error { calls++; return errEnough }
	if err := s.Log.Follow(ctx, 0, fn, nil); err != errEnough || calls != 1 {
		t.Fatal(err, calls)
	}
	if err := s.Log.Scan(ctx, 0, fn); err != errEnough || calls != 2 {
		t.Fatal(err, calls)
	}
}

func broken(t *testing.T, ctx context.Context, s Subject) {
	good := Commit(1, seat(1), 0)
	mustCommit(t, ctx, s.Log, good)
	body, _, err := events.Encode(Commit(2, seat(2), 0), events.Hash{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		body string
		code fault.Code
		says string
	}{
		{"not json", fault.Internal, "not a commit"},
		{"{}", fault.Internal, "not a commit"},
		{strings.Replace(string(body), "number 2", "number 3", 1), fault.Internal, "damaged"},
		{strings.Replace(string(body), `{"v":1`, `{"v":2`, 1), fault.UnsupportedVersion, "newer"},
		{Seal(seat(2), strings.Replace(string(body), "slot.terminalizing.v1", "slot.terminalizing.v9", 1)), fault.UnsupportedVersion, "slot.terminalizing.v9"},
		{Seal(seat(2), strings.Replace(string(body), "slot.terminalizing.v1", "slot.dreamt.v1", 1)), fault.UnsupportedVersion, "slot.dreamt.v1"},
		{Seal(seat(2), strings.Replace(string(body), `"reason":"number 2"`, `"reason":7`, 1)), fault.Internal, "slot.terminalizing.v1"},
	} {
		if err := s.AppendRaw(seat(2), []byte(c.body)); err != nil {
			t.Fatal(err)
		}
		rs := scan(t, ctx, s.Log, uint64(i)+1)
		r := rs[len(rs)-1]
		f := fault.From(r.Broken)
		if f == nil || f.Code != c.code || !strings.Contains(f.Message, fmt.Sprintf("record %d of %s", i+2, seat(2))) || !strings.Contains(f.Message, c.says) {
			t.Fatalf("case %d: %v", i, r.Broken)
		}
		if got := load(t, ctx, s.Log, seat(2), uint64(i)+1); len(got) != 1 || !events.IsBroken(got[0].Broken) {
			t.Fatalf("case %d: load tells %s", i, texts(got))
		}
	}
	// Nothing else is stopped by it: not other boundaries, not even this one.
	mustCommit(t, ctx, s.Log, Commit(3, seat(1), 1))
	mustCommit(t, ctx, s.Log, Commit(4, seat(2), 8))
}

// Seal gives a changed body of Encode the hash of its new bytes, as a program
// that knows how would.
func Seal(b events.Boundary, body string) string {
	content, _, _ := strings.Cut(body, `,"hash":"`)
	h, _ := events.HashOf(b, []byte(content))
	return content + `,"hash":"` + h.String() + `"}`
}

func torn(t *testing.T, ctx context.Context, s Subject) {
	mustCommit(t, ctx, s.Log, Commit(1, seat(9), 0))
	cs := []events.Commit{Commit(2, seat(1), 0), Commit(3, seat(2), 0), Commit(4, seat(3), 0)}
	for i, c := range cs[:2] { // a crash of the server left two of three
		body, _, err := eventlog.Prepare(c, events.Hash{}, eventlog.BatchOf(cs, i))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.AppendRaw(c.Boundary, body); err != nil {
			t.Fatal(err)
		}
	}
	if got := texts(scan(t, ctx, s.Log, 0)); got != "1:1 2:torn 3:torn" {
		t.Fatalf("at the end of the log: %s", got)
	}
	if got := texts(load(t, ctx, s.Log, seat(1), 0)); got != "2:torn" {
		t.Fatal(got)
	}
	_, err := s.Reopen().CommitAll(ctx, cs)
	wantCode(t, err, fault.Conflict, fault.NotExecuted)
	mustCommit(t, ctx, s.Log, Commit(5, seat(1), 2))
	if got := texts(scan(t, ctx, s.Log, 0)); got != "1:1 2:torn 3:torn 4:5" {
		t.Fatalf("in the middle of the log: %s", got)
	}
	if got := texts(scan(t, ctx, s.Log, 2)); got != "3:torn 4:5" {
		t.Fatalf("from the middle of the batch: %s", got)
	}
}
