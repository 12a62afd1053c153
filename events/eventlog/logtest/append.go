package logtest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
)

func expectedSequences(t *testing.T, ctx context.Context, s Subject) {
	a := mustCommit(t, ctx, s.Log, Commit(1, seat(1), 0))
	b := mustCommit(t, ctx, s.Log, Commit(2, seat(2), 0))
	c := mustCommit(t, ctx, s.Log, Commit(3, seat(1), a.Sequence))
	if a.Sequence != 1 || b.Sequence != 2 || c.Sequence != 3 || c.Previous != 1 || b.Previous != 0 {
		t.Fatalf("sequences %d %d %d, previous %d", a.Sequence, b.Sequence, c.Sequence, c.Previous)
	}
	if got := texts(load(t, ctx, s.Log, seat(1), 0)); got != "1:1 3:3" {
		t.Fatal(got)
	}
	if got := texts(load(t, ctx, s.Log, seat(1), 1)); got != "3:3" {
		t.Fatal(got)
	}
	if got := texts(load(t, ctx, s.Log, seat(1), 3)) + texts(load(t, ctx, s.Log, seat(9), 0)); got != "" {
		t.Fatal(got)
	}
	if tip, err := s.Log.Tip(ctx); err != nil || tip != 3 {
		t.Fatal(tip, err)
	}
	r := load(t, ctx, s.Log, seat(2), 0)[0]
	if want := Commit(2, seat(2), 0).Meta; r.Meta != want || r.Boundary != seat(2) || r.Hash != b.Hash {
		t.Fatalf("%+v is not %+v", r.Meta, want)
	}
}

func conflictNames(t *testing.T, ctx context.Context, s Subject) {
	mustCommit(t, ctx, s.Log, Commit(1, seat(1), 0))
	mustCommit(t, ctx, s.Log, Commit(2, seat(1), 1))
	for _, expect := range []uint64{0, 1, 7} {
		_, err := s.Log.Commit(ctx, Commit(3, seat(1), expect))
		wantCode(t, err, fault.Conflict, fault.NotExecuted)
		f := fault.From(err)
		if len(f.Details) != 1 || f.Details[0].Kind != eventlog.DetailConflict || f.Details[0].Facts["boundary"] != string(seat(1)) ||
			f.Details[0].Facts["actual"] != "2" || f.Details[0].Facts["expected"] != string('0'+rune(expect)) {
			t.Fatalf("details %+v", f.Details)
		}
	}
	if got := texts(scan(t, ctx, s.Log, 0)); got != "1:1 2:2" {
		t.Fatal(got)
	}
}

func sameCommit(t *testing.T, ctx context.Context, s Subject) {
	first := mustCommit(t, ctx, s.Log, Commit(1, seat(1), 0))
	second := mustCommit(t, ctx, s.Log, Commit(2, seat(1), 1))
	again := mustCommit(t, ctx, s.Log, Commit(2, seat(1), 1))
	if again.Sequence != second.Sequence || again.Hash != second.Hash || first.Sequence != 1 {
		t.Fatalf("again at %d, was at %d", again.Sequence, second.Sequence)
	}
	fresh := s.Reopen() // knows nothing, and must find out by reading
	if again = mustCommit(t, ctx, fresh, Commit(2, seat(1), 1)); again.Hash != second.Hash {
		t.Fatalf("again at %d after reopening", again.Sequence)
	}
	if got := texts(scan(t, ctx, s.Log, 0)); got != "1:1 2:2" {
		t.Fatal(got)
	}
}

func atomicBatch(t *testing.T, ctx context.Context, s Subject) {
	mustCommit(t, ctx, s.Log, Commit(1, seat(1), 0))
	_, err := s.Log.CommitAll(ctx, []events.Commit{Commit(2, seat(2), 0), Commit(3, seat(1), 0), Commit(4, seat(3), 0)})
	wantCode(t, err, fault.Conflict, fault.NotExecuted)
	if got := texts(scan(t, ctx, s.Log, 0)); got != "1:1" {
		t.Fatalf("a refused batch left %s", got)
	}
	rs, err := s.Log.CommitAll(ctx, []events.Commit{Commit(2, seat(2), 0), Commit(3, seat(1), 1), Commit(4, seat(3), 0)})
	if err != nil || texts(rs) != "2:2 3:3 4:4" {
		t.Fatalf("%s %v", texts(rs), err)
	}
	for i, r := range scan(t, ctx, s.Log, 1) {
		if r.Batch == nil || r.Batch.Index != i || r.Batch.Count != 3 || r.Batch.ID != rs[0].Batch.ID || len(r.Batch.Boundaries) != 3 {
			t.Fatalf("batch %+v", r.Batch)
		}
	}
	if got := texts(load(t, ctx, s.Log, seat(1), 0)); got != "1:1 3:3" {
		t.Fatal(got)
	}
	mustCommit(t, ctx, s.Log, Commit(5, seat(3), 4))
}

func sameBatch(t *testing.T, ctx context.Context, s Subject) {
	cs := []events.Commit{Commit(1, seat(1), 0), Commit(2, seat(2), 0)}
	first, err := s.Log.CommitAll(ctx, cs)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []eventlog.Log{s.Log, s.Reopen()} {
		again, err := l.CommitAll(ctx, cs)
		if err != nil || texts(again) != texts(first) {
			t.Fatalf("%s %v", texts(again), err)
		}
	}
	one, err := s.Log.CommitAll(ctx, []events.Commit{Commit(3, seat(3), 0)})
	if err != nil || texts(one) != "3:3" || one[0].Batch != nil {
		t.Fatalf("a batch of one: %s %v", texts(one), err)
	}
}

func refusing(t *testing.T, ctx context.Context, s Subject) {
	if s.Refuse == nil {
		t.Skip("this log can't be made full")
	}
	mustCommit(t, ctx, s.Log, Commit(1, seat(1), 0))
	s.Refuse()
	big := Commit(2, seat(1), 1)
	for range eventlog.MaxEventsPerCommit - 1 {
		big.Events = append(big.Events, events.SlotTerminalizing{UID: uid, Reason: strings.Repeat("x", 1<<13)})
	}
	_, err := s.Log.Commit(ctx, big)
	wantCode(t, err, fault.ResourceExhausted, fault.NotExecuted)
	other := big
	other.Boundary, other.Expect, other.Meta.ID = seat(2), 0, start.At(3*eventlog.MaxEventsPerCommit)
	_, err = s.Log.CommitAll(ctx, []events.Commit{big, other})
	wantCode(t, err, fault.ResourceExhausted, fault.NotExecuted)
	if got := texts(scan(t, ctx, s.Log, 0)); got != "1:1" {
		t.Fatalf("a full log holds %s", got)
	}
	if r := mustCommit(t, ctx, s.Log, Commit(1, seat(1), 0)); r.Sequence != 1 {
		t.Fatal("a full log must still answer what it holds")
	}
}

func concurrent(t *testing.T, ctx context.Context, s Subject) {
	const writers, each = 6, 12
	var mu sync.Mutex
	stored := map[uint64]events.EventID{}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			b := seat(w % 2)
			for n := range each {
				for { // until ours is the one that fits
					rs, err := s.Log.Load(ctx, b, 0)
					if err != nil {
						t.Error(err)
						return
					}
					var expect uint64
					if len(rs) > 0 {
						expect = rs[len(rs)-1].Sequence
					}
					r, err := s.Log.Commit(ctx, Commit(1+w*each+n, b, expect))
					if fault.CodeOf(err) == fault.Conflict {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if _, twice := stored[r.Sequence]; twice {
						t.Errorf("sequence %d was given to two commits", r.Sequence)
					}
					stored[r.Sequence] = r.Meta.ID
					mu.Unlock()
					break
				}
			}
		})
	}
	wg.Wait()
	seen := map[events.EventID]bool{}
	for i, r := range scan(t, ctx, s.Log, 0) {
		if r.Sequence != uint64(i)+1 || stored[r.Sequence] != r.Meta.ID || seen[r.Meta.ID] {
			t.Fatalf("record %d has id %s, the writer of %d was answered %s", r.Sequence, r.Meta.ID, i+1, stored[r.Sequence])
		}
		seen[r.Meta.ID] = true
	}
	if len(seen) != writers*each {
		t.Fatalf("%d records, want %d", len(seen), writers*each)
	}
}

func limits(t *testing.T, ctx context.Context, s Subject) {
	sized := func(n, count, bytes int) events.Commit {
		c := Commit(n, seat(n), 0)
		c.Events = nil
		for range count {
			c.Events = append(c.Events, events.SlotTerminalizing{UID: uid, Reason: "x"})
		}
		if body, _, err := events.Encode(c, events.Hash{}, nil); err == nil && bytes > len(body) {
			c.Events[0] = events.SlotTerminalizing{UID: uid, Reason: strings.Repeat("x", bytes-len(body)+1)}
		}
		return c
	}
	mustCommit(t, ctx, s.Log, sized(1, eventlog.MaxEventsPerCommit, 0))
	mustCommit(t, ctx, s.Log, sized(2, 1, eventlog.MaxCommitBytes))
	for name, c := range map[string]events.Commit{
		"too many events": sized(3, eventlog.MaxEventsPerCommit+1, 0),
		"no events":       sized(3, 0, 0),
		"too many bytes":  sized(3, 1, eventlog.MaxCommitBytes+1),
	} {
		if _, err := s.Log.Commit(ctx, c); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad := Commit(3, "seat.local.a.b", 0)
	_, err := s.Log.Commit(ctx, bad)
	wantCode(t, err, fault.BadRequest, fault.NotExecuted)
	bad = Commit(3, seat(3), 0)
	bad.Meta.ID = "x"
	_, err = s.Log.Commit(ctx, bad)
	wantCode(t, err, fault.BadRequest, fault.NotExecuted)
	batch := func(from, count int) (cs []events.Commit) {
		for n := range count {
			cs = append(cs, Commit(from+n, seat(from+n), 0))
		}
		return cs
	}
	rs, err := s.Log.CommitAll(ctx, batch(100, eventlog.MaxBatch))
	if err != nil || len(rs) != eventlog.MaxBatch {
		t.Fatal(len(rs), err)
	}
	for name, cs := range map[string][]events.Commit{
		"too many commits": batch(200, eventlog.MaxBatch+1), "no commits": nil,
		"one boundary twice": {Commit(300, seat(300), 0), Commit(301, seat(300), 0)},
		"one id twice":       {Commit(300, seat(300), 0), Commit(300, seat(301), 0)},
	} {
		if _, err := s.Log.CommitAll(ctx, cs); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if tip, _ := s.Log.Tip(ctx); tip != 2+eventlog.MaxBatch {
		t.Fatalf("a refused commit was stored: tip %d", tip)
	}
}

func cancelled(t *testing.T, ctx context.Context, s Subject) {
	mustCommit(t, ctx, s.Log, Commit(1, seat(1), 0))
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err := s.Log.Commit(done, Commit(2, seat(1), 1))
	wantCode(t, err, fault.Cancelled, fault.NotExecuted)
	late, cancel := context.WithDeadline(ctx, time.Time{})
	defer cancel()
	_, err = s.Log.Commit(late, Commit(2, seat(1), 1))
	wantCode(t, err, fault.DeadlineExceeded, fault.NotExecuted)
	if _, err := s.Log.Load(done, seat(1), 0); err == nil {
		t.Fatal("load answers with a cancelled context")
	}
	err = s.Log.Follow(done, 0, func(events.Record) error { return nil }, nil)
	if err == nil {
		t.Fatal("follow goes on with a cancelled context")
	}
	if tip, _ := s.Log.Tip(ctx); tip != 1 {
		t.Fatal("a cancelled commit was stored")
	}
}
