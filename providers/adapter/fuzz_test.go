package adapter

import (
	"os"
	"testing"

	"berth/events"
	"berth/events/fault"
)

// A record from anywhere is read, or decides nothing.
func FuzzLoad(f *testing.F) {
	const id = events.EnvironmentID("0198c5a0-0000-7000-8000-000000000001")
	f.Add([]byte(`{"format":1,"environment":"0198c5a0-0000-7000-8000-000000000001"}`))
	f.Add([]byte(`null`))
	f.Add([]byte(``))
	s := &store{dir: f.TempDir()}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(s.file(id), b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := s.load(id)
		switch {
		case err != nil && fault.CodeOf(err) != fault.Unavailable:
			t.Errorf("refused with %v", err)
		case err == nil && (r.Environment != id || r.Keep == nil):
			t.Errorf("%q is read as %+v", b, r)
		}
	})
}
