package ids_test

import (
	"sync"
	"testing"
	"time"

	"berth/events"
	"berth/internal/ids"
)

func TestIDsParseAndRise(t *testing.T) {
	back := time.UnixMilli(1_700_000_000_000)
	s := ids.Seeded(1, func() time.Time { back = back.Add(-time.Millisecond); return back })
	for _, src := range []*ids.Source{ids.New(), s} {
		last := ""
		for range 10_000 {
			u := src.UUID()
			if _, err := events.ParseEventID(u); err != nil {
				t.Fatal(err)
			}
			if u <= last {
				t.Fatalf("%s does not rise above %s", u, last)
			}
			if string(events.EventID(u).At(31)) <= u || events.EventID(u).At(31)[:30] != events.EventID(u)[:30] {
				t.Fatalf("the events of %s leave its range: %s", u, events.EventID(u).At(31))
			}
			last = u
			if _, err := events.ParseInstanceID(src.Token()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestSeededRepeats(t *testing.T) {
	at := func() time.Time { return time.UnixMilli(5) }
	a, b, c := ids.Seeded(7, at), ids.Seeded(7, at), ids.Seeded(8, at)
	for range 100 {
		x, y, z := a.UUID()+a.Token(), b.UUID()+b.Token(), c.UUID()+c.Token()
		if x != y || x == z {
			t.Fatal(x, y, z)
		}
	}
}

func TestConcurrentIDsAreUnique(t *testing.T) {
	s := ids.New()
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen := map[string]bool{}
	for range 8 {
		wg.Go(func() {
			for range 500 {
				u := s.UUID()
				mu.Lock()
				if seen[u] {
					t.Errorf("%s twice", u)
				}
				seen[u] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
