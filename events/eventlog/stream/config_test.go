package stream

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// A log with replicas is not compressed, neither a new one nor one that
// somebody compressed; one without is, unless its operator said otherwise
// (scenario 67).
func TestReplicasAreNotCompressed(t *testing.T) {
	const s2, none = jetstream.S2Compression, jetstream.NoCompression
	for replicas, want := range map[int]jetstream.StoreCompression{1: s2, 3: none, 5: none} {
		l := &Log{cfg: Config{Space: "here", Replicas: replicas}}
		if got := l.want().Compression; got != want {
			t.Errorf("a new log with %d replicas is kept as %s", replicas, got)
		}
	}
	for _, c := range []struct {
		replicas    int
		is, becomes jetstream.StoreCompression
		limit       int64
		what        string
	}{
		{1, s2, s2, 0, ""},
		{1, none, none, 0, ""},
		{3, none, none, 0, ""},
		{3, s2, none, 0, "compression"},
		{3, s2, none, 5, "compression and size limit"},
		{1, s2, s2, 5, "size limit"},
		{1, s2, s2, 7, ""},
	} {
		l := &Log{cfg: Config{Space: "here", MaxBytes: c.limit}}
		got, what := l.adjust(jetstream.StreamConfig{Replicas: c.replicas, Compression: c.is, MaxBytes: 7})
		if got.Compression != c.becomes || what != c.what || c.limit > 0 && got.MaxBytes != c.limit {
			t.Errorf("%d replicas, %s, limit %d: changed %q to %s and %d", c.replicas, c.is, c.limit, what, got.Compression, got.MaxBytes)
		}
	}
}
