package sim

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"berth/internal/steady"
)

var one = flag.Int("seed", -1, "play only this seed, and tell its story")

// seeds is how many are played; BERTH_SEEDS says it for a long run.
func seeds(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("BERTH_SEEDS"))
	switch {
	case err == nil && os.Getenv("BERTH_PROVE") != "":
		return n
	case testing.Short():
		return 6
	}
	return 40
}

// Every seed converges (blueprint 10).
func TestSim(t *testing.T) {
	if *one >= 0 {
		r, err := RunWith(uint64(*one), Options{Tell: true})
		for _, l := range r.History {
			t.Log(l)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	n := seeds(t)
	var sum Result
	for seed := range n {
		r, err := Run(uint64(seed))
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(r)
	}
	t.Logf("%d seeds: %s", n, sum)
	if sum.Lifetimes < 5*n || sum.Crashes < n || n >= 40 && sum.Takeovers == 0 || sum.Exports == 0 || sum.HandOvers < n/4 || sum.Offers <= sum.HandOvers || sum.ClockSteps == 0 || n >= 40 && sum.StaleStarts == 0 {
		t.Errorf("the histories are too tame: %s", sum)
	}
}

// Seeds that once found something come again for ever.
func TestRegressions(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "seeds"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		number, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number == "" || strings.HasPrefix(number, "#") {
			continue
		}
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(seed); err != nil {
			t.Error(err)
		}
	}
}

// A seed replays byte for byte, also when its story is told, when the
// projections go by way of a snapshot file, and when nothing is read back.
func TestSeedsReplayExactly(t *testing.T) {
	n := uint64(4)
	if testing.Short() {
		n = 2
	}
	for seed := range n {
		a, _ := Run(seed)
		b, err := RunWith(seed, Options{Tell: true, Dir: t.TempDir()})
		if a.Digest != b.Digest || a.Steps != b.Steps || err != nil {
			t.Errorf("seed %d: %d and %d steps, %x and %x, %v", seed, a.Steps, b.Steps, a.Digest[:4], b.Digest[:4], err)
		}
		if _, bad := twice(seed); bad != nil {
			t.Error(bad.Laws)
		}
	}
}

func BenchmarkLifetimes(b *testing.B) {
	defer batch()() // as Sweep does
	lives, used := 0, steady.ProcessorTime()
	for seed := uint64(0); b.Loop(); seed++ {
		r, bad := twice(seed)
		if bad != nil {
			b.Fatal(bad.Laws)
		}
		lives += 2 * r.Lifetimes // both were simulated, each with all of its checks
	}
	b.ReportMetric(float64(lives)/b.Elapsed().Seconds(), "lifetimes/s")
	if used = steady.ProcessorTime() - used; used > 0 {
		b.ReportMetric(float64(lives)/used.Seconds(), "lifetimes/processor-s")
	}
}
