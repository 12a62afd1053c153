package barrier_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"berth/events"
	"berth/events/eventlog/barrier"
	"berth/events/eventlog/logtest"
	"berth/events/eventlog/stream"
	"berth/internal/embedded"
)

const space = events.Space("group")

// openGroup is a log in the group profile on a running server.
func openGroup(ctx context.Context, store string, s *embedded.Server, create bool) (*stream.Log, *barrier.Barrier, error) {
	nc, err := s.Connect()
	if err != nil {
		return nil, nil, err
	}
	if err := barrier.SelfTest(ctx, nc, func(name string) string { return s.StreamDir("$G", name) }); err != nil {
		return nil, nil, err
	}
	first, err := stream.Open(ctx, nc, stream.Config{Space: space, Create: create})
	if err != nil {
		return nil, nil, err
	}
	first.Close()
	bar, err := barrier.Open(store, s.StreamDir("$G", events.StreamName(space)))
	if err != nil {
		return nil, nil, err
	}
	l, err := stream.Open(ctx, nc, stream.Config{Space: space, Barrier: bar})
	return l, bar, err
}

func TestGroupProfile(t *testing.T) {
	store := t.TempDir()
	s, err := embedded.Start(t.Context(), embedded.Options{StoreDir: store})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	l, bar, err := openGroup(t.Context(), store, s, true)
	if err != nil {
		t.Fatal(err)
	}
	defer bar.Close()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			b, last := events.SeatBoundary("local", events.Alias("w"+string(rune('0'+w)))), uint64(0)
			for n := range 20 {
				r, err := l.Commit(t.Context(), logtest.Commit(w*20+n, b, last))
				if err != nil {
					t.Error(err)
					return
				}
				if bar.Durable() < r.Sequence {
					t.Errorf("answered at %d, but durable is %d", r.Sequence, bar.Durable())
				}
				last = r.Sequence
			}
		})
	}
	wg.Wait()
	seen := 0
	err = l.Scan(t.Context(), 0, func(r events.Record) error {
		if seen++; r.Sequence > bar.Durable() {
			t.Errorf("record %d is given before it is durable", r.Sequence)
		}
		return nil
	})
	if err != nil || seen != 160 {
		t.Fatal(seen, err)
	}
	if err := bar.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = l.Commit(t.Context(), logtest.Commit(999, events.SeatBoundary("local", "z"), 0))
	if err == nil {
		t.Fatal("a commit is acknowledged although nothing syncs it any more")
	}
}

// TestRollOver writes as the server does, over several blocks.
func TestRollOver(t *testing.T) {
	store := t.TempDir()
	msgs := filepath.Join(store, "jetstream", "$G", "streams", "S", "msgs")
	if err := os.MkdirAll(msgs, 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := barrier.Open(store, msgs)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i, name := range []string{"9.blk", "10.blk", "11.blk", "11.blk", "12.blk"} {
		f, err := os.OpenFile(filepath.Join(msgs, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("record"); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := b.Wait(t.Context(), uint64(i+1)); err != nil {
			t.Fatal(err)
		}
		if b.Durable() != uint64(i+1) {
			t.Fatal(b.Durable())
		}
	}
}

// TestDeadForEver: after one failure nothing is known any more.
func TestDeadForEver(t *testing.T) {
	store := t.TempDir()
	msgs := filepath.Join(store, "S", "msgs")
	if err := os.MkdirAll(msgs, 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := barrier.Open(store, msgs)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Wait(t.Context(), 1); err == nil {
		t.Fatal("durable without any block")
	}
	if err := os.WriteFile(filepath.Join(msgs, "1.blk"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(t.Context(), 1); err == nil || b.Durable() != 0 {
		t.Fatal("a barrier that failed answers again")
	}
}

func TestClosedAndCancelled(t *testing.T) {
	store := t.TempDir()
	msgs := filepath.Join(store, "S", "msgs")
	if err := os.MkdirAll(msgs, 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := barrier.Open(store, msgs)
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	b.Close()
	if err := b.Wait(t.Context(), 1); err == nil {
		t.Fatal("a closed barrier answers")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Wait(ctx, 1); err == nil {
		t.Fatal("a cancelled wait answers")
	}
	if _, err := barrier.Open(store, filepath.Join(store, "none")); err == nil {
		t.Fatal("a barrier over nothing opens")
	}
}

// TestSelfTestRefuses shows the guard: a server that acknowledges before it
// writes is found out.
func TestSelfTestRefuses(t *testing.T) {
	s, nc := embedded.ForTest(t, nil)
	where := func(name string) string { return s.StreamDir("$G", name) }
	if err := barrier.SelfTest(t.Context(), nc, where); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	err := barrier.SelfTest(t.Context(), nc, func(string) string { return empty })
	if err == nil || !strings.Contains(err.Error(), "acknowledged") {
		t.Fatalf("blocks that do not grow pass: %v", err)
	}
	if err := barrier.Sweep(t.Context(), nc); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for name := range js.StreamNames(t.Context()).Name() {
		t.Fatalf("the trial's stream %s is left behind", name)
	}
}

// within bounds what a test waits for, however slow the machine.
const within = 60 * time.Second
