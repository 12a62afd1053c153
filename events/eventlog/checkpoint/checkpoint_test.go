package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth/events"
	"berth/events/eventlog/checkpoint"
	"berth/events/eventlog/logtest"
	"berth/events/eventlog/memory"
	"berth/events/fault"
)

var made = time.UnixMilli(1_700_000_000_000)

type named struct {
	*memory.Log
	name string
	at   time.Time
}

func (n named) Identity() (string, time.Time) { return n.name, n.at }

func filled(t *testing.T, from, n int) named {
	t.Helper()
	l := named{memory.New(), "BERTH_x", made}
	var last uint64
	for i := range n {
		r, err := l.Commit(t.Context(), logtest.Commit(from+i, events.SeatBoundary("local", "a"), last))
		if err != nil {
			t.Fatal(err)
		}
		last = r.Sequence
	}
	return l
}

func track(t *testing.T, l named) checkpoint.Checkpoint {
	t.Helper()
	var tr checkpoint.Tracker
	if err := l.Scan(t.Context(), 0, tr.Add); err != nil {
		t.Fatal(err)
	}
	return tr.Of(l)
}

func TestWriteRead(t *testing.T) {
	dir := t.TempDir()
	if _, ok, err := checkpoint.Read(dir); ok || err != nil {
		t.Fatal(ok, err)
	}
	for n := range 3 {
		want := track(t, filled(t, 1, n))
		if err := checkpoint.Write(dir, want); err != nil {
			t.Fatal(err)
		}
		got, ok, err := checkpoint.Read(dir)
		if err != nil || !ok || got != want {
			t.Fatalf("%+v is not %+v: %v", got, want, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Fatalf("left behind: %v", left)
	}
	if err := checkpoint.Write(filepath.Join(dir, "none"), checkpoint.Checkpoint{}); fault.CodeOf(err) != fault.Unavailable {
		t.Fatal(err)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, exit := range map[string]fault.Exit{
		"": fault.ExitLogLost, "x": fault.ExitLogLost, "{}": fault.ExitLogLost, `{"format":2}`: fault.ExitNewerFormat, `{"format":1}`: fault.ExitLogLost,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, checkpoint.FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := checkpoint.Read(dir); ok || fault.ExitOf(err) != exit {
			t.Errorf("%q: %v exits %d", text, err, fault.ExitOf(err))
		}
	}
}

// TestVerify is decision 6: missing, shorter or replaced is exit code 12.
func TestVerify(t *testing.T) {
	l := filled(t, 1, 5)
	c := track(t, l)
	if err := checkpoint.Verify(t.Context(), c, l); err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.Verify(t.Context(), c, filled(t, 1, 7)); err != nil {
		t.Fatalf("a longer log: %v", err)
	}
	if err := checkpoint.Verify(t.Context(), track(t, filled(t, 1, 0)), l); err != nil {
		t.Fatalf("remembered when it was empty: %v", err)
	}
	other, later := l, l
	other.name = "BERTH_y"
	later.at = made.Add(time.Second)
	for name, l := range map[string]named{
		"shorter": filled(t, 1, 4), "empty": filled(t, 1, 0), "other records": filled(t, 20, 6), "another stream": other, "made again": later,
	} {
		err := checkpoint.Verify(t.Context(), c, l)
		if fault.ExitOf(err) != fault.ExitLogLost || fault.From(err).Outcome != fault.NotExecuted {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTrackerSeesGaps(t *testing.T) {
	var tr checkpoint.Tracker
	if err := tr.Add(events.Record{Sequence: 2}); err == nil {
		t.Fatal("a gap passes")
	}
}
