package server

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/wire"
)

const testID = events.EnvironmentID("01890a5d-ac96-774b-bcce-b302099a8057")

func open(t *testing.T, dir string) *journal {
	t.Helper()
	j, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.close() })
	return j
}

func use(t *testing.T, j *journal) (*book, func()) {
	t.Helper()
	b, done, err := j.book(testID)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	return b, func() { b.mu.Unlock(); done() }
}

func line(n int, p phase, a *answer) record {
	return record{ID: events.OperationID(fmt.Sprintf("operation-%08d", n)), Verb: events.VerbStart, Digest: "d", Phase: p, Answer: a}
}

// TestTornLineIsDropped (law 1): what a crash tore was never acted on; what was
// whole stays, and writing goes on after it.
func TestTornLineIsDropped(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	b, done := use(t, j)
	for n, p := range []phase{accepted, fenced} {
		if _, err := b.append(line(n, p, nil)); err != nil {
			t.Fatal(err)
		}
	}
	path := b.path
	done()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < 20; cut++ {
		if err := os.WriteFile(path, raw[:len(raw)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		b, done := use(t, j)
		if len(b.ops) != 1 || !b.ops["operation-00000000"].accepted {
			t.Fatalf("cut by %d: %d operations", cut, len(b.ops))
		}
		if _, err := b.append(line(2, answered, &answer{Verdict: providers.Excluded, Evidence: "x"})); err != nil {
			t.Fatal(err)
		}
		done()
		b, done = use(t, j)
		if len(b.ops) != 2 || b.ops["operation-00000002"].answer == nil {
			t.Errorf("cut by %d: after another record %d operations", cut, len(b.ops))
		}
		done()
	}
}

// TestBrokenBookIsNotGuessed: a line that can't be read stops that environment
// and no other.
func TestBrokenBookIsNotGuessed(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	b, done := use(t, j)
	if _, err := b.append(line(1, accepted, nil)); err != nil {
		t.Fatal(err)
	}
	path := b.path
	done()
	if err := os.WriteFile(path, []byte("{broken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.book(testID); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
	if _, done, err := j.book("01890a5d-ac96-774b-bcce-b302099a8058"); err != nil {
		t.Error(err)
	} else {
		done()
	}
}

// TestFirstAnswerWins: an answer never changes.
func TestFirstAnswerWins(t *testing.T) {
	b, done := use(t, open(t, t.TempDir()))
	defer done()
	for _, v := range []providers.Verdict{providers.Landed, providers.Excluded} {
		if _, err := b.append(line(1, answered, &answer{Verdict: v, Evidence: "x"})); err != nil {
			t.Fatal(err)
		}
	}
	if v := b.ops["operation-00000001"].answer.Verdict; v != providers.Landed {
		t.Errorf("%s", v)
	}
}

// TestOperationsAreBounded: at the limit a new id is refused, a known one goes on.
func TestOperationsAreBounded(t *testing.T) {
	b, done := use(t, open(t, t.TempDir()))
	defer done()
	for n := range wire.MaxOperations - 1 {
		b.fold(line(n, accepted, nil))
	}
	if _, err := b.append(line(wire.MaxOperations-1, accepted, nil)); err != nil {
		t.Errorf("the last one: %v", err)
	}
	if _, err := b.append(line(wire.MaxOperations, accepted, nil)); fault.CodeOf(err) != fault.ResourceExhausted {
		t.Errorf("one too many: %v", err)
	}
	if _, err := b.append(line(0, answered, &answer{Verdict: providers.Excluded, Evidence: "x"})); err != nil {
		t.Errorf("the answer of a known one: %v", err)
	}
}

// TestFailedWriteIsRemembered: after a write whose end nobody knows nothing is
// acted on, whatever the file shows.
func TestFailedWriteIsRemembered(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	// A file stands where the directory should be.
	s := string(testID)
	block := filepath.Join(dir, s[len(s)-2:])
	if err := os.WriteFile(block, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := &book{id: testID, path: filepath.Join(block, "x"+bookSuffix), ops: map[events.OperationID]*operation{}, loaded: true}
	j.open[testID] = b
	for range 2 {
		b, done := use(t, j)
		if _, err := b.append(line(1, accepted, nil)); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%v", err)
		}
		done()
		_ = os.Remove(block)
	}
	if len(b.ops) != 0 || j.open[testID] != b {
		t.Errorf("%d operations; kept: %v", len(b.ops), j.open[testID] == b)
	}
}

// TestOneProcessHasTheJournal: a second one is refused.
func TestOneProcessHasTheJournal(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if _, err := openJournal(dir); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Errorf("%v", err)
	}
}

// TestFarBehindIsReset (scenario 33): a client that is further behind than the
// changes that are kept is told to look at everything; one at the edge is not.
func TestFarBehindIsReset(t *testing.T) {
	h := newHub()
	first := h.after(t.Context(), "").Cursor
	for range maxChanges {
		h.changed(testID)
	}
	if c := h.after(t.Context(), first); c.Reset || len(c.Environments) != 1 {
		t.Errorf("at the edge: %+v", c)
	}
	h.changed(testID)
	if c := h.after(t.Context(), first); !c.Reset {
		t.Errorf("beyond: %+v", c)
	}
	now := h.after(t.Context(), "").Cursor
	h.changed("01890a5d-ac96-774b-bcce-b302099a8058")
	if c := h.after(t.Context(), now); c.Reset || len(c.Environments) != 1 {
		t.Errorf("the newest: %+v", c)
	}
	for _, bad := range []string{"x", "x-1", h.boot + "-99999999", h.boot + "--1", h.boot} {
		if c := h.after(t.Context(), bad); !c.Reset {
			t.Errorf("cursor %q: %+v", bad, c)
		}
	}
}
