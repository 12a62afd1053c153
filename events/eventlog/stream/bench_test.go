package stream_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/eventlog/logtest"
	"berth/events/eventlog/stream"
	"berth/internal/embedded"
)

// BenchmarkReplay reads one log raw, by an ordered consumer that only counts,
// and through Scan, which decodes and verifies every record.
func BenchmarkReplay(b *testing.B) {
	const total = 100_000
	s, err := embedded.Start(b.Context(), embedded.Options{StoreDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Stop()
	nc, err := s.Connect()
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	l, err := stream.Open(b.Context(), nc, stream.Config{Space: "bench", Create: true})
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	var next atomic.Int64
	for w := range 32 {
		wg.Go(func() {
			at, last := events.SeatBoundary("local", events.Alias(fmt.Sprintf("w%d", w))), uint64(0)
			for n := next.Add(1); n <= total; n = next.Add(1) {
				r, err := l.Commit(b.Context(), logtest.Commit(int(n), at, last))
				if err != nil {
					b.Error(err)
					return
				}
				last = r.Sequence
			}
		})
	}
	wg.Wait()
	b.Run("raw", func(b *testing.B) {
		defer metrics(b, total, cpu())
		for b.Loop() {
			js, err := jetstream.New(nc)
			if err != nil {
				b.Fatal(err)
			}
			c, err := js.OrderedConsumer(b.Context(), events.StreamName("bench"), jetstream.OrderedConsumerConfig{})
			if err != nil {
				b.Fatal(err)
			}
			n, done := 0, make(chan struct{})
			cc, err := c.Consume(func(jetstream.Msg) {
				if n++; n == total {
					close(done)
				}
			}, jetstream.PullMaxMessages(5000))
			if err != nil {
				b.Fatal(err)
			}
			<-done
			cc.Stop()
		}
	})
	b.Run("scan", func(b *testing.B) {
		defer metrics(b, total, cpu())
		for b.Loop() {
			n := 0
			if err := l.Scan(b.Context(), 0, func(events.Record) error { n++; return nil }); err != nil || n != total {
				b.Fatal(n, err)
			}
		}
	})
}

// metrics reports rate and processor time, of server and client together: on
// a busy machine only the second can be compared.
func metrics(b *testing.B, total int, before time.Duration) {
	n := float64(total * b.N)
	b.ReportMetric(n/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(cpu()-before)/n, "cpu-ns/record")
}

func cpu() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
