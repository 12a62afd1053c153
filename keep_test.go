package berth

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
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
