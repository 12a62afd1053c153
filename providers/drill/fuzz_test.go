package drill

import (
	"bytes"
	"testing"
)

// A journal from anywhere: replayed up to its last whole line, or refused.
func FuzzReplayLines(f *testing.F) {
	f.Add([]byte("{\"at\":\"2026-01-01T00:00:00Z\",\"script\":{\"rules\":[]}}\n{\"at\":"))
	f.Add([]byte("{\"call\":{\"verb\":\"reserve\",\"environment\":\"e\",\"operation\":\"o\"}}\n"))
	f.Add([]byte("{\"call\":{\"verb\":\"destroy\"}}\n{\"call\":{\"verb\":\"nothing\"}}\n"))
	f.Add([]byte("null\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, whole, err := replayLines(NewMachine(Script{}), bytes.NewReader(b))
		if whole > int64(len(b)) || whole > 0 && b[whole-1] != '\n' {
			t.Errorf("%q: %d bytes are whole, %v", b, whole, err)
		}
	})
}
