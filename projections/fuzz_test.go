package projections

import (
	"bytes"
	"crypto/sha256"
	"testing"
)

// A snapshot file from anywhere, also with the checksum that belongs to it:
// read, or refused so that everything is folded from the log. Never a panic,
// and never a view of another space or stream.
func FuzzDecodeSnapshot(f *testing.F) {
	good, err := encodeSnapshot("stream", NewViews("space"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte(snapshotMagic + "\xff\xff\xff\xff"))
	f.Add(bytes.Repeat([]byte{0}, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = decodeSnapshot(b, "stream", "space")
		if len(b) < sha256.Size {
			return
		}
		body := bytes.Clone(b[:len(b)-sha256.Size])
		sum := sha256.Sum256(body)
		v, err := decodeSnapshot(append(body, sum[:]...), "stream", "space")
		if (v == nil) == (err == nil) {
			t.Errorf("views %v, error %v", v != nil, err)
		}
		if v != nil && v.Space() != "space" {
			t.Errorf("of space %q", v.Space())
		}
	})
}
