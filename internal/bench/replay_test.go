package bench_test

import (
	"context"
	"testing"
	"time"

	"berth/events/fault"
	"berth/internal/bench"
)

// The benchmark itself works, at a size that says nothing about speed.
func TestReplay(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rows, err := bench.Replay(ctx, bench.ReplayOptions{Dir: t.TempDir(), Events: 2000, Held: 10, Runs: 1})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bench.Row{}
	for _, r := range rows {
		names[r.Name] = r
	}
	if r := names["replay-fold"]; r.Value <= 0 || r.Raw == nil || r.Ratio == nil || r.Unit != "events/s" {
		t.Errorf("%+v", rows)
	}
	if _, err := bench.Replay(ctx, bench.ReplayOptions{Dir: t.TempDir(), Events: bench.MaxReplayEvents + 1}); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("a log that is too large: %v", err)
	}
}

// BenchmarkReplay prints the rows for a log of 200,000 events.
func BenchmarkReplay(b *testing.B) {
	for b.Loop() {
		rows, err := bench.Replay(b.Context(), bench.ReplayOptions{Dir: b.TempDir(), Events: 200_000, Held: 2000})
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range rows {
			b.ReportMetric(r.Value, r.Name+"-"+r.Unit)
			if r.Ratio != nil {
				b.ReportMetric(*r.Ratio, r.Name+"-ratio")
				b.ReportMetric(*r.Raw, r.Name+"-raw")
			}
		}
	}
}
