package stream_test

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/eventlog/logtest"
	"berth/events/eventlog/stream"
	"berth/internal/embedded"
)

func TestConformance(t *testing.T) { conformance(t, func(*stream.Log) {}) }

// TestConformanceLeaderReads is decision 8: with more replicas, reads ask the leader.
func TestConformanceLeaderReads(t *testing.T) { conformance(t, (*stream.Log).ReadFromLeader) }

func conformance(t *testing.T, change func(*stream.Log)) {
	_, nc := embedded.ForTest(t, nil)
	n := 0
	logtest.Run(t, func(t *testing.T) logtest.Subject {
		n++
		space := events.Space("s" + string(rune('a'+n)))
		l := open(t, nc, stream.Config{Space: space, Create: true})
		change(l)
		return logtest.Subject{
			Log: l,
			AppendRaw: func(b events.Boundary, body []byte) error {
				js, err := jetstream.New(nc)
				if err == nil {
					_, err = js.Publish(context.Background(), b.Subject(space), body)
				}
				return err
			},
			Refuse: func() { limit(t, nc, space, 8<<10) },
			Reopen: func() eventlog.Log {
				l := open(t, nc, stream.Config{Space: space})
				change(l)
				return l
			},
		}
	})
}

func open(t *testing.T, nc *nats.Conn, cfg stream.Config) *stream.Log {
	t.Helper()
	l, err := stream.Open(t.Context(), nc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// limit changes how large a stream may get.
func limit(t *testing.T, nc *nats.Conn, space events.Space, bytes int64) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), events.StreamName(space))
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.MaxBytes = bytes
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}
