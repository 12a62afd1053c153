//go:build linux

package process

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/seat"
)

// loop writes for ever, from a file in the private home.
const loop = `echo begin; echo kept > $HOME/note; i=0; while :; do i=$((i+1)); echo line $i; sleep 0.05; done`

// changes pauses or resumes, once: what is so already is refused, and stays so.
func (r *rig) changes(id events.EnvironmentID, v events.Verb, to events.ProviderState) {
	r.Helper()
	if f := r.must(r.op(id, v)); f.State != to || f.Custody == nil {
		r.Fatalf("%s: %+v", v, f)
	}
	out := r.do(r.op(id, v))
	if out.Kind != providers.Refused || out.Fault.Code != fault.FailedPrecondition || !strings.Contains(out.Fault.Message, "it is "+string(to)) {
		r.Errorf("%s again: %s, %v", v, out.Kind, out.Fault)
	}
	if got := r.inspect(id); got.State != to {
		r.Fatalf("after %s: %s", v, got.State)
	}
}

func TestAWholeLife(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	deadline := time.Now().Add(time.Hour)
	id, f := r.running(r.plan(loop), func(op *providers.Operation) { op.Expires = &deadline })
	if f.Ref == "" || f.ExpiresAt == nil || !f.ExpiresAt.Equal(events.MillisUTC(deadline)) || f.Network != "host" || f.Incarnation == "" {
		t.Fatalf("facts of the start: %+v", f)
	}
	r.untilLog(id, "line 3")

	r.changes(id, events.VerbPause, events.StatePaused)
	var before string
	r.until("quiet output", func() bool { // what was on its way has arrived
		before = r.logs(id)
		return r.logs(id) == before
	})
	r.changes(id, events.VerbResume, events.StateRunning)
	r.until("the seat goes on with its memory", func() bool { // R9
		after := r.logs(id)
		return len(after) > len(before) && strings.Count(after, "begin") == 1
	})

	cp := r.op(id, events.VerbCheckpoint)
	cp.Arguments.CheckpointID = "first"
	got := r.must(cp).Checkpoint
	if got == nil || got.Kind != "cold" || got.ByteLength == 0 {
		t.Fatalf("checkpoint: %+v", got)
	}
	if s := r.inspect(id).State; s != events.StateRunning {
		t.Fatalf("after a checkpoint the seat is %s", s)
	}
	checkExport(r, id, *got)

	stop := r.op(id, events.VerbStop)
	stop.Arguments.Grace = "30s"
	f = r.must(stop)
	if f.State != events.StateStopped || f.StoppedAt == nil || f.ExitCode == nil {
		t.Fatalf("after the stop: %+v", f)
	}
	if again := r.must(stop); !again.StoppedAt.Equal(*f.StoppedAt) {
		t.Fatal("the same stop again has another answer")
	}
	if !strings.Contains(r.logs(id), "line 3") {
		t.Fatal("the output is gone with the seat")
	}
	r.must(r.op(id, events.VerbDestroy))
	if s := r.inspect(id).State; s != events.StateAbsent {
		t.Fatalf("after a destroy: %s", s)
	}
	entries, _ := os.ReadDir(r.d.Seat(id).Path)
	if len(entries) != 2 {
		t.Fatalf("the tombstone holds %v", entries)
	}
	if again := r.op(id, events.VerbReserve); r.do(again).Kind != providers.Refused {
		t.Fatal("a destroyed id was used again")
	}
}

func checkExport(r *rig, id events.EnvironmentID, cp events.Checkpoint) {
	r.Helper()
	ex := r.op(id, events.VerbExport)
	ex.Arguments = events.Arguments{CheckpointID: cp.ID, MaxBytes: cp.ByteLength}
	f := r.must(ex).File
	rc, err := r.d.ReadFile(r.context(), id, r.d.Ref(id), f.ID, 0)
	if err != nil {
		r.Fatal(err)
	}
	b, err := io.ReadAll(rc)
	rc.Close()
	sum := sha256.Sum256(b)
	if err != nil || int64(len(b)) != f.ByteLength || hex.EncodeToString(sum[:]) != f.SHA256 || f.SHA256 != cp.SHA256 {
		r.Fatalf("the export does not have its length and digest (R37): %v", err)
	}
	if got := readTar(r, b)["note"]; got != "kept\n" {
		r.Fatalf("the captured note is %q", got)
	}
	if rc, err = r.d.ReadFile(r.context(), id, "", f.ID, f.ByteLength-1); err != nil {
		r.Fatal(err)
	}
	if tail, _ := io.ReadAll(rc); len(tail) != 1 {
		r.Fatalf("from the last byte %d bytes were read", len(tail))
	}
	rc.Close()
	for _, offset := range []int64{-1, f.ByteLength + 1} {
		if _, err := r.d.ReadFile(r.context(), id, "", f.ID, offset); fault.CodeOf(err) != fault.BadRequest {
			r.Fatalf("offset %d: %v", offset, err)
		}
	}

	small := r.op(id, events.VerbExport)
	small.Arguments = events.Arguments{CheckpointID: cp.ID, MaxBytes: cp.ByteLength - 1}
	if out := r.do(small); out.Kind != providers.Refused || out.Fault.Code != fault.ResourceExhausted {
		r.Fatalf("more than maxBytes (R37): %+v", out)
	}
	host := r.op(id, events.VerbExport)
	host.Arguments = events.Arguments{CheckpointID: cp.ID, MaxBytes: cp.ByteLength, HostPath: filepath.Join(r.TempDir(), "demo.tar")}
	if f := r.must(host).File; f.Path != host.Arguments.HostPath || f.ID != "" {
		r.Fatalf("export to a host path: %+v", f)
	}
	if there, err := os.ReadFile(host.Arguments.HostPath); err != nil || !bytes.Equal(there, b) {
		r.Fatalf("the file on the host differs: %v", err)
	}
	del := r.op(id, events.VerbDeleteFile)
	del.Arguments.FileID = f.ID
	r.must(del)
	if _, err := r.d.ReadFile(r.context(), id, "", f.ID, 0); fault.CodeOf(err) != fault.NotFound {
		r.Fatalf("a deleted file: %v", err)
	}
}

func readTar(r *rig, b []byte) map[string]string {
	out := map[string]string{}
	tr := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			r.Fatal(err)
		}
		c, _ := io.ReadAll(tr)
		out[h.Name] = string(c)
	}
}

func TestAnExitIsProvedAndTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	told := make(chan events.EnvironmentID, 1)
	ctx, cancel := context.WithCancel(context.Background())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_ = r.d.Watch(ctx, func(id events.EnvironmentID) {
			select { // an end may be told more than once, and the second start ends too
			case told <- id:
			case <-ctx.Done():
			}
		})
	}()
	defer func() { cancel(); <-watched }()
	r.until("the watch", func() bool { return r.d.Watchers() == 1 })
	id, _ := r.running(r.plan("echo bye; sleep 300 & exit 7"))
	f := r.untilState(id, events.StateStopped)
	if f.ExitCode == nil || *f.ExitCode != 7 || f.StoppedAt == nil || f.Custody != nil {
		t.Fatalf("the exit: %+v", f)
	}
	select {
	case got := <-told:
		if got != id {
			t.Fatalf("told of %s", got)
		}
	case <-time.After(patience):
		t.Fatal("nobody told of the exit")
	}
	if out := r.logs(id); !strings.Contains(out, "bye") {
		t.Fatalf("the last output is missing: %q", out)
	}
	// What has stopped may be started again, as another incarnation.
	f = r.must(r.op(id, events.VerbStart))
	if f.State != events.StateRunning {
		t.Fatalf("a second start: %+v", f)
	}
	r.untilState(id, events.StateStopped)
	if n := strings.Count(r.logs(id), "bye"); n != 2 {
		t.Fatalf("the output has %d runs", n)
	}
}

func TestStopLeavesTheGraceAndThenKills(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	kind, _ := r.running(r.plan(`trap 'echo cleaning; exit 3' TERM; echo ready; while :; do sleep 0.05; done`))
	r.untilLog(kind, "ready")
	op := r.op(kind, events.VerbStop)
	op.Arguments.Grace = "60s"
	if f := r.must(op); f.ExitCode == nil || *f.ExitCode != 3 || !strings.Contains(r.logs(kind), "cleaning") {
		t.Fatalf("a seat that cleans up: %+v", f)
	}
	shell, _ := r.running(r.plan(`trap '' TERM; trap 'exit 4' HUP; echo ready; while :; do sleep 0.05; done`))
	r.untilLog(shell, "ready")
	op = r.op(shell, events.VerbStop)
	op.Arguments.Grace = "60s"
	if f := r.must(op); f.ExitCode == nil || *f.ExitCode != 4 {
		t.Fatalf("a shell that somebody types into: %+v", f)
	}
	deaf, _ := r.running(r.plan(`trap '' TERM HUP; echo ready; while :; do sleep 0.05; done`))
	r.untilLog(deaf, "ready")
	op = r.op(deaf, events.VerbStop)
	op.Arguments.Grace = "50ms"
	if f := r.must(op); f.ExitCode == nil || *f.ExitCode != 137 {
		t.Fatalf("a seat that does not listen: %+v", f)
	}
	frozen, _ := r.running(r.plan("sleep 600"))
	r.must(r.op(frozen, events.VerbPause))
	op = r.op(frozen, events.VerbStop)
	op.Arguments.Grace = "60s"
	if f := r.must(op); f.State != events.StateStopped {
		t.Fatalf("a frozen seat: %+v", f)
	}
}

// R28-R31: one extend adds at most the step, never shortens, and invents nothing.
func TestExtend(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	end := events.MillisUTC(time.Now().Add(time.Hour))
	id, _ := r.running(r.plan("sleep 600"), func(op *providers.Operation) { op.Expires = &end })
	extend := func(to time.Time) *time.Time {
		op := r.op(id, events.VerbExtend)
		op.Arguments.ExtendTo = &to
		f := r.must(op)
		if again := r.must(op); !again.ExpiresAt.Equal(*f.ExpiresAt) {
			t.Fatal("the same extend again added more")
		}
		return f.ExpiresAt
	}
	if got := extend(end.Add(time.Hour)); !got.Equal(end.Add(time.Hour)) {
		t.Fatalf("extended to %s", got)
	}
	if got := extend(end); !got.Equal(end.Add(time.Hour)) {
		t.Fatalf("shortened to %s", got)
	}
	if got := extend(end.Add(1000 * time.Hour)); !got.Equal(end.Add(time.Hour + seat.ExtendStep)) {
		t.Fatalf("beyond the step: %s", got)
	}
	if got := r.inspect(id).ExpiresAt; !got.Equal(end.Add(time.Hour + seat.ExtendStep)) {
		t.Fatalf("observed: %s", got)
	}
	free, _ := r.running(r.plan("sleep 600"))
	op := r.op(free, events.VerbExtend)
	op.Arguments.ExtendTo = &end
	if f := r.must(op); f.ExpiresAt != nil {
		t.Fatalf("no deadline became %s", f.ExpiresAt)
	}
}
