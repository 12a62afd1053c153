package server

import (
	"os"
	"path/filepath"
	"testing"

	"berth/events"
)

// A journal file from anywhere: what a crash tore off the end is no part of
// it, and the rest is read or an error.
func FuzzBookLoad(f *testing.F) {
	f.Add([]byte("{\"id\":\"operation-00000001\",\"phase\":\"accepted\"}\n{\"id\":\"oper"))
	f.Add([]byte("null\n\n"))
	f.Add([]byte("{}\n"))
	path := filepath.Join(f.TempDir(), "book")
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		b := &book{id: "0198c5a0-0000-7000-8000-000000000001", path: path, ops: map[events.OperationID]*operation{}}
		if err := b.load(); err == nil && (b.whole > int64(len(raw)) || b.whole > 0 && raw[b.whole-1] != '\n' || len(b.order) != len(b.ops)) {
			t.Errorf("%q: %d bytes are whole, %d operations in order, %d by id", raw, b.whole, len(b.order), len(b.ops))
		}
	})
}
