package projections_test

import (
	"path/filepath"
	"testing"

	"berth/events"
	"berth/projections"
	"berth/projections/sample"
)

// BenchmarkApply is the fold alone: records of calm lives, decoded before.
func BenchmarkApply(b *testing.B) {
	rs := records(b, sample.Options{Seed: 1, Names: 2000, Owners: 50, Calm: true, Fresh: true}, 50_000)
	n := 0
	for _, r := range rs {
		n += len(r.Events)
	}
	b.ReportAllocs()
	for b.Loop() {
		folded(rs)
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkDecodeAndApply is what a replay does, without the log's transport.
func BenchmarkDecodeAndApply(b *testing.B) {
	g := sample.New(sample.Options{Seed: 1, Names: 2000, Owners: 50, Calm: true, Fresh: true})
	type body struct {
		at   events.Boundary
		data []byte
	}
	var bodies []body
	n, size := 0, 0
	for range 50_000 {
		c, _ := g.Next()
		data, _, err := events.Encode(c, events.Hash{}, nil)
		if err != nil {
			b.Fatal(err)
		}
		bodies = append(bodies, body{c.Boundary, data})
		n, size = n+len(c.Events), size+len(data)
	}
	b.ReportMetric(float64(size)/float64(len(bodies)), "B/record")
	for b.Loop() {
		v := projections.NewViews("test")
		for i, x := range bodies {
			v.Apply(events.ParseRecord(x.at, uint64(i)+1, x.data))
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// large is 10,000 held and many ended lifecycles.
func large(b *testing.B, ended int) *projections.Views {
	v := projections.NewViews("test")
	feedAll := func(g *sample.Generator, stop func() bool) {
		for !stop() {
			c, ok := g.Next()
			if !ok {
				return
			}
			r, err := sample.Record(c, v.Sequence()+1, events.Hash{})
			if err != nil {
				b.Fatal(err)
			}
			v.Apply(r)
		}
	}
	feedAll(sample.New(sample.Options{Seed: 2, Names: 10, Owners: 50, Calm: true, Fresh: true}), func() bool { return v.Ended() >= ended })
	feedAll(sample.New(sample.Options{Seed: 3, Names: 10_000, Owners: 60, Calm: true, Stay: true}), func() bool { return false })
	return v
}

func BenchmarkSnapshot(b *testing.B) {
	v := large(b, 100_000)
	path := filepath.Join(b.TempDir(), "snapshot")
	if err := projections.Save(path, "s", v); err != nil {
		b.Fatal(err)
	}
	b.Run("Clone", func(b *testing.B) {
		for b.Loop() {
			v.Clone()
		}
	})
	b.Run("Save", func(b *testing.B) {
		for b.Loop() {
			if err := projections.Save(path, "s", v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Load", func(b *testing.B) {
		for b.Loop() {
			if _, err := projections.Load(path, "s", "test"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Fleet", func(b *testing.B) {
		for b.Loop() {
			v.Fleet(projections.Query{})
		}
	})
}
