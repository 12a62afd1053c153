//go:build linux

package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A trial that was killed leaves a directory, which goes when it is old; one
// that is under way, or a seat's, is left alone.
func TestOldTrialsAreRemoved(t *testing.T) {
	d := newRig(t).d
	old := time.Now().Add(-2 * probeStale)
	for _, name := range []string{probeDir + "killed", probeDir + "now", "seat"} {
		if err := os.MkdirAll(filepath.Join(d.Dir, name, "root"), 0o700); err != nil {
			t.Fatal(err)
		}
		if name != probeDir+"now" {
			if err := os.Chtimes(filepath.Join(d.Dir, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.sweepProbes()
	for name, want := range map[string]bool{probeDir + "killed": false, probeDir + "now": true, "seat": true} {
		if _, err := os.Stat(filepath.Join(d.Dir, name)); (err == nil) != want {
			t.Errorf("%s: there %t, want %t", name, err == nil, want)
		}
	}
}
