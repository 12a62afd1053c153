package bench_test

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"berth/events/fault"
	"berth/internal/bench"
	"berth/providers/process"
	"berth/providers/qemu"
)

// The test's binary is what the benchmark runs again for processes of its own.
func TestMain(m *testing.M) {
	for _, role := range []func([]string) (bool, int){process.Main, qemu.Main, bench.Main} {
		if handled, code := role(os.Args[1:]); handled {
			os.Exit(code)
		}
	}
	os.Exit(m.Run())
}

// Every row is measured, at a size that says nothing about speed: whether a
// bar was reached is not looked at.
func TestRows(t *testing.T) {
	for part, want := range map[string][]string{
		bench.PartLog:      {"commit-single-p50", "commit-256-rate", "disk-per-event"},
		bench.PartCommands: {"inspect-p50", "spawn-overhead", "spawn-whole"},
		bench.PartGoals:    {"spawns-accepted-100", "spawns-names-100"},
		bench.PartAttach:   {"attach-echo-p50-over-pty", "attach-echo-p99", "attach-output", "attach-output-same-program", "attach-output-of-pty", "attach-output-share", "attach-memory"},
		bench.PartReplay:   {"replay-fold", "replay-snapshot-save", "replay-snapshot-load", "replay-snapshot-size"},
		bench.PartHosted:   {"hosted-call-p50", "hosted-call-overhead", "hosted-uncertain-at-once", "hosted-uncertain-questions", "hosted-uncertain-settled"},
		bench.PartExport:   {"export-rate", "export-memory-manager", "export-memory-provider"},
		bench.PartMicroVM:  {"microvm-cold", "microvm-golden", "microvm-pause", "microvm-resume"},
		bench.PartFleet:    {"heap-per-retired", "heap-per-live", "start-after-kill", "idle-cpu"},
	} {
		t.Run(part, func(t *testing.T) {
			if (part == bench.PartCommands || part == bench.PartAttach) && runtime.GOOS != "linux" {
				t.Skip("seats are processes of Linux")
			}
			if part == bench.PartMicroVM && (os.Getenv("BERTH_PROVE") == "" || qemu.Available() != nil) {
				t.Skip("NO MICROVM IS MEASURED: BERTH_PROVE=1 does it, where QEMU and a kernel are installed")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			dir := t.TempDir()
			r, err := bench.Run(ctx, []string{part}, bench.Options{Dir: dir, Events: 4000, Live: 5, Samples: 8, Rounds: 1, Idle: 10 * time.Millisecond, Uncertain: 20, Export: 3<<20 + 1})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Rows) != len(want) {
				t.Fatalf("%d rows instead of %d: %+v", len(r.Rows), len(want), r.Rows)
			}
			for i, row := range r.Rows {
				if row.Name != want[i] || row.Unit == "" || (row.Bar == "") != (row.OK == nil) {
					t.Errorf("row %d is not %s: %+v", i, want[i], row)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("something was left behind: %v, %v", left, err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for name, run := range map[string]struct {
		parts []string
		o     bench.Options
	}{
		"an unknown part":     {[]string{"nothing"}, bench.Options{}},
		"too many events":     {nil, bench.Options{Events: bench.MaxEvents + 1}},
		"too many live":       {nil, bench.Options{Live: bench.MaxLive + 1}},
		"a negative number":   {nil, bench.Options{Samples: -1}},
		"too many rounds":     {nil, bench.Options{Rounds: bench.MaxRounds + 1}},
		"too many uncertain":  {nil, bench.Options{Uncertain: bench.MaxUncertain + 1}},
		"too long an export":  {nil, bench.Options{Export: bench.MaxExport + 1}},
		"a negative duration": {nil, bench.Options{Idle: -1}},
		"no such directory":   {nil, bench.Options{Dir: "/nowhere/at/all"}},
	} {
		if _, err := bench.Run(t.Context(), run.parts, run.o); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}
