package berth

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/slot"
	"berth/events/fault"
)

func TestSweepRemovesOldExportsOnly(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{"old": keepExports + time.Minute, "young": time.Minute} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	k := &keeper{m: &Manager{logger: slog.New(slog.DiscardHandler)}}
	k.sweep(dir, now.Add(-keepExports))
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "young" {
		t.Fatalf("left %v, %v", left, err)
	}
}

func TestStagedCredentialsOutliveTheirSeatsOnlyInDoubt(t *testing.T) {
	held := aggregates.Seat{Slot: slot.State{UID: "held"}}
	unreadable := aggregates.Seat{Quarantine: fault.New(fault.FailedPrecondition, "it can't be read")}
	for name, test := range map[string]struct {
		seats []aggregates.Seat
		left  int
	}{
		"of a held seat": {[]aggregates.Seat{held}, 1},
		"in doubt":       {[]aggregates.Seat{held, unreadable}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Manager{logger: slog.New(slog.DiscardHandler), dir: &DataDir{Path: t.TempDir()}}
			for _, uid := range []string{"held", "gone"} {
				if err := os.MkdirAll(filepath.Join(m.dir.File(materialDir), uid, "credential"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			m.sweepMaterial(test.seats)
			left, err := os.ReadDir(m.dir.File(materialDir))
			if err != nil || len(left) != test.left {
				t.Fatalf("left %v, %v; want %d", left, err, test.left)
			}
		})
	}
}
