package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"berth/events/eventlog/checkpoint"
	"berth/events/fault"
)

// A checkpoint file that can't be understood is an error, never "none"
// (decision 6).
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"format":1,"stream":"s","created":"2026-01-01T00:00:00Z","sequence":7}`))
	f.Add([]byte(`{"format":99}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(``))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, checkpoint.FileName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		c, ok, err := checkpoint.Read(dir)
		switch {
		case !ok && err == nil:
			t.Errorf("%q is none", b)
		case err == nil && c.Stream == "":
			t.Errorf("%q is the checkpoint of no stream", b)
		case err != nil && fault.CodeOf(err) != fault.FailedPrecondition && fault.CodeOf(err) != fault.UnsupportedVersion:
			t.Errorf("refused with %v", err)
		}
	})
}
