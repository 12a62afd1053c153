package berth

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/events"
	"berth/events/eventlog/checkpoint"
	"berth/events/eventlog/verify"
	"berth/events/fault"
)

const servedEnvironment = events.EnvironmentID("01890a5d-ac96-774b-bcce-b302099a8057")

func openServed(t *testing.T, dir string) *Served {
	t.Helper()
	s, err := OpenServed(t.Context(), ServedOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func accept(t *testing.T, s *Served, n uint64, op events.OperationID) events.Record {
	t.Helper()
	r, err := s.Log.Commit(t.Context(), events.Commit{Boundary: events.ProviderBoundary(servedEnvironment), Expect: n, Meta: s.meta(),
		Events: []events.Event{events.ProviderAccepted{Operation: op, Verb: events.VerbStart, Digest: "d"}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func closed(t *testing.T, s *Served) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestServedLogAcrossStarts (laws 3 and 4): epochs rise, the directory is one
// process's, what was appended is there, and the signed chain verifies.
func TestServedLogAcrossStarts(t *testing.T) {
	dir := t.TempDir()
	s := openServed(t, dir)
	r := accept(t, s, 0, "operation-00000001")
	if _, err := OpenServed(t.Context(), ServedOptions{Dir: dir}); fault.CodeOf(err) != fault.Conflict || fault.ExitOf(fault.From(err)) != 13 {
		t.Errorf("a second process: %v", err)
	}
	if _, err := OpenDataDir(filepath.Join(dir), "default"); err == nil {
		t.Error("a manager took the directory of a provider that runs")
	}
	closed(t, s)
	if _, err := OpenDataDir(filepath.Join(dir), "default"); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("a manager on the directory of a provider: %v", err)
	}
	again := openServed(t, dir)
	if again.Writer.Epoch != s.Writer.Epoch+1 || again.Writer.Instance != s.Writer.Instance {
		t.Errorf("%+v after %+v", again.Writer, s.Writer)
	}
	rs, err := again.Log.Load(t.Context(), events.ProviderBoundary(servedEnvironment), 0)
	if err != nil || len(rs) != 1 || rs[0].Hash != r.Hash {
		t.Errorf("%+v %v", rs, err)
	}
	v, err := verify.Log(t.Context(), again.Log, verify.Options{})
	if err != nil || !v.OK() || v.Signatures != 1 {
		t.Errorf("%+v %v", v, err)
	}
	closed(t, again)
}

// TestServedLogThatWasLost (decision 6): a journal that is gone or shorter is
// not read as an empty one; an operator's word makes a new beginning, in which
// the loss stands.
func TestServedLogThatWasLost(t *testing.T) {
	dir := t.TempDir()
	s := openServed(t, dir)
	accept(t, s, 0, "operation-00000001")
	closed(t, s)
	remembered, _, err := checkpoint.Read(dir)
	if err != nil || remembered.Sequence < 3 {
		t.Fatalf("%+v %v", remembered, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, natsDir)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // refusing changes nothing
		if _, err := OpenServed(t.Context(), ServedOptions{Dir: dir}); fault.ExitOf(fault.From(err)) != fault.ExitLogLost {
			t.Errorf("%v", err)
		}
	}
	s, err = OpenServed(t.Context(), ServedOptions{Dir: dir, AcceptHistoryLoss: "the disk broke"})
	if err != nil {
		t.Fatal(err)
	}
	rs, err := s.Log.Load(t.Context(), events.SpaceBoundary(ServedSpace), 0)
	if err != nil || len(rs) != 1 {
		t.Fatalf("%+v %v", rs, err)
	}
	if e, ok := rs[0].Events[0].(events.HistoryLossAccepted); !ok || e.Remembered != remembered.Sequence || e.Reason != "the disk broke" {
		t.Errorf("%+v", rs[0].Events)
	}
	closed(t, s)
	closed(t, openServed(t, dir))
}

// TestServedLogWithADamagedRecord (decision 6): a journal that lost a record
// from its middle is refused before anything is written to it.
func TestServedLogWithADamagedRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openServed(t, dir)
	const damaged = events.OperationID("operation-00000002")
	for n, op := range []events.OperationID{"operation-00000001", damaged, "operation-00000003"} {
		r, err := s.Log.Commit(t.Context(), events.Commit{Boundary: events.ProviderBoundary(events.EnvironmentID(s.ids.UUID())), Meta: s.meta(),
			Events: []events.Event{events.ProviderAccepted{Operation: op, Verb: events.VerbStart, Digest: strings.Repeat("d", n+1)}}})
		if err != nil || r.Sequence == 0 {
			t.Fatal(err)
		}
	}
	closed(t, s)
	blocks, err := filepath.Glob(filepath.Join(dir, natsDir, "jetstream", "*", "streams", "*", "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatal(blocks, err)
	}
	whole, err := os.ReadFile(blocks[0])
	if err != nil || !bytes.Contains(whole, []byte(damaged)) {
		t.Fatalf("the record is not in %s: %v", blocks[0], err)
	}
	if err := os.WriteFile(blocks[0], bytes.Replace(whole, []byte(damaged), []byte("operation-0000000x"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // refusing changes nothing
		if _, err := OpenServed(t.Context(), ServedOptions{Dir: dir}); fault.ExitOf(fault.From(err)) != fault.ExitLogLost {
			t.Fatalf("%v", err)
		}
	}
}

// TestServedRefusesFiles: a journal of files is not passed over.
func TestServedRefusesFiles(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, filesDir, "57")
	if err := os.MkdirAll(old, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(old, string(servedEnvironment)+".jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := OpenServed(t.Context(), ServedOptions{Dir: dir})
	if fault.CodeOf(err) != fault.BadRequest || !strings.Contains(err.Error(), string(servedEnvironment)) {
		t.Errorf("%v", err)
	}
}

// TestServedRemembersWhileItRuns: the checkpoint follows the log, so that a
// kill leaves a journal that can't be cut back unseen.
func TestServedRemembersWhileItRuns(t *testing.T) {
	dir := t.TempDir()
	s := openServed(t, dir)
	defer closed(t, s)
	s.stop() // what it does at each tick is done here
	s.background.Wait()
	for n, before := range []uint64{0, 2} {
		r := accept(t, s, before, events.OperationID("operation-0000000"+string(rune('1'+n))))
		for range 2 {
			if err := s.checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if c, known, err := checkpoint.Read(dir); err != nil || !known || c.Sequence != r.Sequence || c.Record != r.Hash {
			t.Errorf("%+v %t %v, the record is %d", c, known, err, r.Sequence)
		}
	}
}

// TestServedCheckpointDamaged (decision 6): a checkpoint that can't be read is
// a loss like any other, and the reason that an operator gives stands.
func TestServedCheckpointDamaged(t *testing.T) {
	dir := t.TempDir()
	closed(t, openServed(t, dir))
	if err := os.WriteFile(filepath.Join(dir, checkpoint.FileName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenServed(t.Context(), ServedOptions{Dir: dir}); fault.ExitOf(fault.From(err)) != fault.ExitLogLost {
		t.Errorf("%v", err)
	}
	s, err := OpenServed(t.Context(), ServedOptions{Dir: dir, AcceptHistoryLoss: "it was damaged"})
	if err != nil {
		t.Fatal(err)
	}
	rs, err := s.Log.Load(t.Context(), events.SpaceBoundary(ServedSpace), 0)
	if err != nil || len(rs) != 1 {
		t.Fatalf("%+v %v", rs, err)
	}
	if e, ok := rs[0].Events[0].(events.HistoryLossAccepted); !ok || e.Remembered != 0 || e.Reason != "it was damaged" {
		t.Errorf("%+v", rs[0].Events)
	}
	closed(t, s)
	closed(t, openServed(t, dir))
}
