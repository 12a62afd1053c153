package stream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"berth/events"
	"berth/events/eventlog/logtest"
	"berth/events/eventlog/stream"
	"berth/events/fault"
	"berth/internal/embedded"
)

var web = events.SeatBoundary("local", "web")

// TestLostAnswers: the acknowledgement of a publish is lost and the connection
// with it; the commit is answered and stored once.
func TestLostAnswers(t *testing.T) {
	s := listening(t, t.TempDir())
	p := newProxy(t, s.Addr().String())
	l := open(t, p.connect(), stream.Config{Space: "lost", Create: true, Timeout: time.Second})
	var last uint64
	for n := range 4 {
		p.arm(n % 2)
		r, err := l.Commit(t.Context(), logtest.Commit(n, web, last))
		if err != nil {
			t.Fatal(err)
		}
		last = r.Sequence
	}
	p.arm(1)
	if _, err := l.CommitAll(t.Context(), []events.Commit{logtest.Commit(10, web, last), logtest.Commit(11, "uid.a", 0)}); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	lost := p.lost
	p.mu.Unlock()
	if lost != 3 {
		t.Fatalf("%d answers were lost, want 3: the test shows nothing", lost)
	}
	if n := count(t, l); n != 6 {
		t.Fatalf("%d records, want 6", n)
	}
}

func count(t *testing.T, l *stream.Log) (n int) {
	t.Helper()
	seen := map[events.EventID]bool{}
	err := l.Scan(t.Context(), 0, func(r events.Record) error {
		if seen[r.Meta.ID] || r.Broken != nil || r.Torn {
			t.Errorf("record %d: %s again, or %v", r.Sequence, r.Meta.ID, r.Broken)
		}
		seen[r.Meta.ID] = true
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestServerAway: while nobody answers the outcome is unknown; the same commit
// given again, to the server that came back, is stored once.
func TestServerAway(t *testing.T) {
	store := t.TempDir()
	first := listening(t, store)
	p := newProxy(t, first.Addr().String())
	l := open(t, p.connect(), stream.Config{Space: "away", Create: true, Timeout: 5 * time.Second})
	r, err := l.Commit(t.Context(), logtest.Commit(1, web, 0))
	if err != nil {
		t.Fatal(err)
	}
	p.turn("127.0.0.1:1") // nobody is there
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = l.Commit(ctx, logtest.Commit(2, web, r.Sequence))
	if f := fault.From(err); f == nil || f.Code != fault.Unavailable || f.Outcome != fault.Unknown {
		t.Fatalf("while the server is away: %v", err)
	}
	first.Stop()
	second := listening(t, store)
	p.turn(second.Addr().String())
	again, err := l.Commit(t.Context(), logtest.Commit(2, web, r.Sequence))
	if err != nil || again.Sequence != 2 {
		t.Fatalf("%d %v", again.Sequence, err)
	}
	if n := count(t, l); n != 2 {
		t.Fatalf("%d records, want 2", n)
	}
}

// TestFollowAcrossCuts: a reader whose connection is cut again and again sees
// every record once, in order.
func TestFollowAcrossCuts(t *testing.T) {
	s := listening(t, t.TempDir())
	p := newProxy(t, s.Addr().String())
	reader := open(t, p.connect(), stream.Config{Space: "cuts", Create: true, Timeout: 5 * time.Second})
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	writer := open(t, nc, stream.Config{Space: "cuts"})
	const total, every = 60, 20
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	next := uint64(0)
	write := func() error { // one more, once the one before it was seen
		_, err := writer.Commit(ctx, logtest.Commit(int(next), web, next))
		return err
	}
	enough := errors.New("enough")
	err = reader.Follow(ctx, 0, func(r events.Record) error {
		if next++; r.Sequence != next {
			t.Errorf("record %d came in place of %d", r.Sequence, next)
		}
		if next == total {
			return enough
		}
		if next%every == 0 {
			p.cut()
		}
		return write()
	}, func() {
		if err := write(); err != nil {
			t.Error(err)
		}
	})
	if err != enough {
		t.Fatalf("after %d records: %v", next, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	_, nc := embedded.ForTest(t, nil)
	_, err := stream.Open(t.Context(), nc, stream.Config{Space: "none"})
	if fault.CodeOf(err) != fault.NotFound || fault.ExitOf(err) != fault.ExitLogLost {
		t.Fatalf("a missing stream: %v", err)
	}
	if _, err := stream.Open(t.Context(), nc, stream.Config{Space: "a.b", Create: true}); fault.CodeOf(err) != fault.BadRequest {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	// A space of its own for each: the files of a deleted stream go later.
	good := func(space events.Space) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: events.StreamName(space), Subjects: []string{events.SubjectPrefix(space) + ">"}, Discard: jetstream.DiscardNew, DenyDelete: true, DenyPurge: true,
			AllowAtomicPublish: true, AllowDirect: true, Metadata: map[string]string{"berth.format": "1"},
		}
	}
	n := 0
	for name, c := range map[string]struct {
		change func(*jetstream.StreamConfig)
		exit   fault.Exit
	}{
		"good":      {func(*jetstream.StreamConfig) {}, fault.ExitOK},
		"newer":     {func(c *jetstream.StreamConfig) { c.Metadata["berth.format"] = "2" }, fault.ExitNewerFormat},
		"not ours":  {func(c *jetstream.StreamConfig) { c.Metadata = nil }, fault.ExitBadConfig},
		"subjects":  {func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "other") }, fault.ExitBadConfig},
		"deletes":   {func(c *jetstream.StreamConfig) { c.DenyDelete = false }, fault.ExitBadConfig},
		"purges":    {func(c *jetstream.StreamConfig) { c.DenyPurge = false }, fault.ExitBadConfig},
		"discards":  {func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }, fault.ExitBadConfig},
		"ages":      {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, fault.ExitBadConfig},
		"memory":    {func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, fault.ExitBadConfig},
		"no atomic": {func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false }, fault.ExitBadConfig},
	} {
		n++
		space := events.Space(fmt.Sprintf("x%d", n))
		cfg := good(space)
		c.change(&cfg)
		if _, err := js.CreateStream(t.Context(), cfg); err != nil {
			t.Fatal(name, err)
		}
		l, err := stream.Open(t.Context(), nc, stream.Config{Space: space})
		if fault.ExitOf(err) != c.exit {
			t.Errorf("%s: %v exits %d, want %d", name, err, fault.ExitOf(err), c.exit)
		}
		if l != nil {
			l.Close()
		}
	}
}

func TestCreatedStreamIsStrict(t *testing.T) {
	_, nc := embedded.ForTest(t, nil)
	l := open(t, nc, stream.Config{Space: "x", Create: true})
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	name, created := l.Identity()
	s, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if !s.CachedInfo().Created.Equal(created) {
		t.Error("the identity is not the stream's")
	}
	if err := s.Purge(t.Context()); err == nil {
		t.Error("the log can be purged")
	}
	if _, err := l.Commit(t.Context(), logtest.Commit(1, web, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteMsg(t.Context(), 1); err == nil {
		t.Error("a record can be deleted")
	}
}

// TestLongBoundary takes more than one direct batch get.
func TestLongBoundary(t *testing.T) {
	_, nc := embedded.ForTest(t, nil)
	l := open(t, nc, stream.Config{Space: "x", Create: true})
	const n = 1100
	var last uint64
	for i := range n {
		r, err := l.Commit(t.Context(), logtest.Commit(i, web, last))
		if err != nil {
			t.Fatal(err)
		}
		last = r.Sequence
	}
	for _, after := range []uint64{0, 99, 100, n - 1, n} {
		rs, err := l.Load(t.Context(), web, after)
		if err != nil || uint64(len(rs)) != n-after {
			t.Fatalf("%d records after %d: %v", len(rs), after, err)
		}
		for i, r := range rs {
			if r.Sequence != after+uint64(i)+1 || r.Broken != nil {
				t.Fatal(r.Sequence, r.Broken)
			}
		}
	}
}
