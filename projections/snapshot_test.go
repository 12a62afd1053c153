package projections_test

import (
	"os"
	"path/filepath"
	"testing"

	"berth/events"
	"berth/events/fault"
	"berth/projections"
	"berth/projections/sample"
)

// A snapshot that is missing, damaged anywhere, cut, of another stream or
// another space is refused with its reason, and nothing is made of it.
func TestSnapshotThatIsWrongIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "snapshot")
	if _, err := projections.Load(path, "s", "test"); fault.CodeOf(err) != fault.NotFound {
		t.Fatalf("without a file: %v", err)
	}
	v := folded(records(t, sample.Options{Seed: 9, Names: 5, Owners: 2}, 400))
	if err := projections.Save(path, "s", v); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what, stream string, space string) {
		t.Helper()
		if got, err := projections.Load(path, stream, events.Space(space)); got != nil || fault.CodeOf(err) != fault.FailedPrecondition {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("another stream", "other", "test")
	refused("another space", "s", "other")
	write := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for at := 0; at < len(good); at += 1 + len(good)/61 {
		bad := append([]byte(nil), good...)
		bad[at] ^= 0x10
		write(bad)
		refused("a changed byte", "s", "test")
		write(good[:at])
		refused("cut", "s", "test")
	}
	write(good)
	loaded, err := projections.Load(path, "s", "test")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the good one", loaded, v)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("left behind: %v %v", files, err)
	}
	if err := projections.Save(filepath.Join(dir, "none", "snapshot"), "s", v); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a folder that is not there: %v", err)
	}
}
