package projections_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/projections"
	"berth/projections/sample"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Every event type has a phrase of its own.
func TestEveryTypeHasAPhrase(t *testing.T) {
	for _, typ := range events.Types() {
		e, err := events.Decode(typ, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if got := projections.Phrase(e); got == e.EventType() || (got == "" && e.EventType() != events.TypeGoalProgressed && e.EventType() != events.TypeGoalEnded) {
			t.Errorf("%s has no phrase", typ)
		}
	}
}

func filled(t testing.TB, o sample.Options, n int) (*memory.Log, *sample.Generator) {
	t.Helper()
	log, g := memory.New(), sample.New(o)
	more(t, log, g, n)
	return log, g
}

func more(t testing.TB, log *memory.Log, g *sample.Generator, n int) {
	t.Helper()
	for range n {
		c, ok := g.Next()
		if !ok {
			return
		}
		if _, err := log.Commit(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// A boundary's story is read from the log, in order, in words, with causes; a
// record that can't be read is a line too.
func TestHistory(t *testing.T) {
	ctx := context.Background()
	log, _ := filled(t, sample.Options{Seed: 2, Names: 1, Owners: 1, Calm: true}, 40)
	v := folded(nil)
	if err := log.Scan(ctx, 0, func(r events.Record) error { v.Apply(r); return nil }); err != nil {
		t.Fatal(err)
	}
	retired := v.RetiredOf("owner-0", "seat-000001", 0)
	if len(retired) == 0 {
		t.Fatal("nothing was retired")
	}
	at := events.SeatBoundary("owner-0", "seat-000001")
	log.AppendRaw(at, []byte("{}"))
	lines, err := projections.History(ctx, log, at)
	if err != nil {
		t.Fatal(err)
	}
	first, last := lines[0], lines[len(lines)-1]
	if !strings.HasPrefix(first.What, "name claimed for template host on process") || !strings.HasPrefix(first.Cause, "goal.local.operator.") || first.Who != "local.operator" {
		t.Errorf("the story begins %+v", first)
	}
	if last.Fault == nil || !strings.Contains(last.What, "can't be read") {
		t.Errorf("the story ends %+v", last)
	}
	ids := map[events.EventID]bool{}
	for i, l := range lines[:len(lines)-1] {
		if ids[l.ID] || i > 0 && l.Sequence < lines[i-1].Sequence {
			t.Errorf("line %d: %+v", i, l)
		}
		ids[l.ID] = true
	}
	none, err := projections.History(ctx, log, events.SeatBoundary("local", "nothing"))
	if err != nil || len(none) != 0 {
		t.Errorf("the story of nothing: %v %v", none, err)
	}
}
