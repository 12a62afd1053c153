package sim

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

var one = flag.Int("seed", -1, "play only this seed")

// Every seed converges (blueprint 10). BERTH_SEEDS says how many are played.
func TestSim(t *testing.T) {
	if *one >= 0 {
		r, err := Run(uint64(*one))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range r.History {
			t.Log(l)
		}
		return
	}
	seeds := 300
	if n, err := strconv.Atoi(os.Getenv("BERTH_SEEDS")); err == nil && os.Getenv("BERTH_PROVE") != "" {
		seeds = n
	}
	var steps, spawns, crashes int
	for seed := range seeds {
		r, err := Run(uint64(seed))
		if err != nil {
			t.Fatalf("%v\nagain: go test ./sagas/sim -run TestSim -seed=%d", err, seed)
		}
		steps, spawns, crashes = steps+r.Steps, spawns+r.Spawns, crashes+r.Crashes
	}
	t.Logf("%d seeds, %d steps, %d spawns, %d crashes", seeds, steps, spawns, crashes)
	if spawns < seeds || crashes < seeds {
		t.Errorf("the histories are too tame: %d spawns, %d crashes", spawns, crashes)
	}
}

// A seed replays byte for byte.
func TestSeedsReplayExactly(t *testing.T) {
	for seed := range uint64(10) {
		a, _ := Run(seed)
		b, _ := Run(seed)
		if a.Digest != b.Digest || a.Steps != b.Steps {
			t.Errorf("seed %d: %d and %d steps, %x and %x", seed, a.Steps, b.Steps, a.Digest[:4], b.Digest[:4])
		}
	}
}
