//go:build linux

package seat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/events"
	"berth/events/fault"
)

// A checkpoint that was changed on disk is not handed out (R37).
func TestADamagedCheckpointIsNotExported(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := events.Checkpoint{ID: "x", ByteLength: 5, SHA256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}
	for name, change := range map[string]func(*events.Checkpoint){
		"longer": func(c *events.Checkpoint) { c.ByteLength = 6 }, "shorter": func(c *events.Checkpoint) { c.ByteLength = 4 },
		"other": func(c *events.Checkpoint) { c.SHA256 = strings.Repeat("0", 64) },
	} {
		bad := good
		change(&bad)
		if _, _, err := copyCapture(t.Context(), to, from, bad); fault.CodeOf(err) != fault.FailedPrecondition {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%s: a file was left", name)
		}
	}
	if _, _, err := copyCapture(t.Context(), to, from, good); err != nil {
		t.Error(err)
	}
}
