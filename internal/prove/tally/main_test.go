package main

import (
	"maps"
	"strings"
	"testing"
)

// shards are two outputs, with the lines as the tests log them.
var shards = []string{`=== RUN   TestExplore
    explore_test.go:39: ready and stopping: 1200 states, 3400 moves, 12 ends, complete=true
    explore_test.go:39: two managers: 34 states, 40 moves, 0 ends, complete=true
--- PASS: TestExplore (1.00s)
    sim_test.go:47: 40 seeds: 320 lifetimes, 41 crashes
--- PASS: TestSim (2.00s)
--- SKIP: TestBoot (0.00s)
    boot_test.go:12: SKIPPED, no kernel
ok  	berth/sagas	3.000s
`, `    drill_test.go:123: 168 kill points without a fault
        drill_test.go:143: lost start: 178 kill points
    --- PASS: TestKilledAtEveryPoint/append:goal:before:1 (0.50s)
--- PASS: TestKilledAtEveryPoint (100.00s)
        cut_linux_test.go:60: 80 power cuts, after each of which everything acknowledged was there
    history_test.go:136: 1 history checked: 8302 operations, 3322 stored, 2 given up: Ok
    mutate_test.go:81: 57 of 58 mutants killed
--- FAIL: TestMutantsAreKilled (100.00s)
FAIL	berth/internal/prove/mutate	100.000s
`}

// Figures add up over shards, and a failure is told and not a proof.
func TestTally(t *testing.T) {
	sum, out := &tally{figures: map[string]int{}}, strings.Builder{}
	for i, s := range shards {
		if err := sum.read(strings.NewReader(s)); err != nil {
			t.Fatal(err)
		}
		if sum.report(&out) != (i == 0) {
			t.Errorf("after shard %d the verdict is %v", i, i != 0)
		}
	}
	if want := map[string]int{"states explored": 1234, "seeds run": 40, "kill points covered": 346, "power cuts survived": 80, "histories checked": 1, "mutants killed": 57}; !maps.Equal(sum.figures, want) {
		t.Errorf("%v, want %v", sum.figures, want)
	}
	if sum.passed != 3 || sum.skipped != 1 || sum.failed != 2 {
		t.Errorf("%+v", sum)
	}
	for _, line := range []string{"no kernel", "--- FAIL: TestMutantsAreKilled", "     1234 states explored"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not told:\n%s", line, out.String())
		}
	}
	if (&tally{}).report(&out) {
		t.Error("nothing at all is taken for a proof")
	}
}
