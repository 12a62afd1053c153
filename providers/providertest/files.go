package providertest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"berth/events"
	"berth/providers"
)

// ample is more than any checkpoint of the suite's environments has, in bytes.
const ample = 1 << 40

func (s *seat) checkpoint() events.Checkpoint {
	s.b.Helper()
	f := s.must(events.VerbCheckpoint, events.Arguments{CheckpointID: newUUID()})
	if f.Checkpoint.CapturedAt.IsZero() || f.Checkpoint.ByteLength < 0 {
		s.b.Errorf("checkpoint: %+v", f.Checkpoint)
	}
	return *f.Checkpoint
}

func checkpointed(b *bench) {
	c := b.capabilities()
	s := b.seat().until(events.VerbStart)
	if !c.ColdCheckpoint && !c.MemoryCheckpoint {
		s.refused(s.op(events.VerbCheckpoint, events.Arguments{CheckpointID: newUUID()}))
		b.notClaimed("the driver says that it can't checkpoint, and refuses")
	}
	op := s.op(events.VerbCheckpoint, events.Arguments{CheckpointID: newUUID()})
	first, second := s.mustOp(op), s.mustOp(op)
	if *first.Checkpoint != *second.Checkpoint {
		b.Errorf("one checkpoint, two answers: %+v, then %+v", first.Checkpoint, second.Checkpoint)
	}
	if k := first.Checkpoint.Kind; k == "memory" && !c.MemoryCheckpoint || k == "cold" && !c.ColdCheckpoint {
		b.Errorf("a %s checkpoint, which the probe denied", k)
	}
	if f := s.inspect(); f.State != events.StateRunning {
		b.Errorf("the seat is %s after its checkpoint", f.State)
	}
}

// exportable starts a seat with a checkpoint, or skips after a refusal.
func (b *bench) exportable(missing string, a events.Arguments) (*seat, events.Checkpoint) {
	b.Helper()
	c := b.capabilities()
	s := b.seat().until(events.VerbStart)
	can := c.Export && (c.ColdCheckpoint || c.MemoryCheckpoint)
	if can && missing == "" {
		return s, s.checkpoint()
	}
	a.CheckpointID = newUUID()
	if can {
		a.CheckpointID = s.checkpoint().ID
	}
	s.refused(s.op(events.VerbExport, a))
	b.notClaimed("the driver refuses this export: %s", missing)
	return nil, events.Checkpoint{}
}

func exportProviderFile(b *bench) {
	s, cp := b.exportable(b.o.NoProviderFile, events.Arguments{MaxBytes: ample})
	op := s.op(events.VerbExport, events.Arguments{CheckpointID: cp.ID, MaxBytes: ample})
	file := *s.mustOp(op).File
	whole := s.read(file, 0)
	for _, offset := range []int64{1, file.ByteLength / 2, file.ByteLength} {
		if rest := s.read(file, offset); !bytes.Equal(rest, whole[offset:]) {
			b.Errorf("read from %d gave %d bytes that do not continue the file of %d (R36)", offset, len(rest), len(whole))
		}
	}
	checkBytes(b, file, whole)
	if f := b.d.Reconcile(b.ctx, op); f.Verdict != providers.Landed || f.Facts.File == nil || *f.Facts.File != file {
		b.Errorf("reconcile of an export: %+v, want the same file", f)
	}
	if again := *s.mustOp(op).File; again != file {
		b.Errorf("the same export twice: %+v, then %+v", file, again)
	}
	s.must(events.VerbDeleteFile, events.Arguments{FileID: file.ID})
	if r, err := b.d.ReadFile(b.ctx, s.id, s.ref, file.ID, 0); err == nil {
		r.Close()
		b.Errorf("a deleted file can be read")
	}
	s.refused(s.op(events.VerbDeleteFile, events.Arguments{FileID: "no-such-file"}))
}

func (s *seat) read(f events.File, offset int64) []byte {
	s.b.Helper()
	r, err := s.b.d.ReadFile(s.b.ctx, s.id, s.ref, f.ID, offset)
	if err != nil {
		s.b.Fatalf("read file from %d: %v", offset, err)
	}
	defer r.Close()
	got, err := io.ReadAll(io.LimitReader(r, f.ByteLength+1))
	if err != nil {
		s.b.Fatalf("read file from %d: %v", offset, err)
	}
	return got
}

func checkBytes(b *bench, f events.File, got []byte) {
	b.Helper()
	sum := sha256.Sum256(got)
	if int64(len(got)) != f.ByteLength || hex.EncodeToString(sum[:]) != f.SHA256 {
		b.Errorf("the export says %d bytes %s, read were %d bytes %x (R37)", f.ByteLength, f.SHA256, len(got), sum)
	}
}

func exportHostPath(b *bench) {
	dir := b.TempDir()
	path := filepath.Join(dir, "export.bin")
	s, cp := b.exportable(b.o.NoHostPath, events.Arguments{HostPath: path, MaxBytes: ample})
	file := *s.must(events.VerbExport, events.Arguments{CheckpointID: cp.ID, MaxBytes: ample, HostPath: path}).File
	got, err := os.ReadFile(path)
	if err != nil {
		b.Fatalf("%v", err)
	}
	checkBytes(b, file, got)
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 {
		b.Errorf("the export wrote beside its path: %v %v (R34)", names, err)
	}
	s.refused(s.op(events.VerbExport, events.Arguments{CheckpointID: cp.ID, MaxBytes: ample, HostPath: filepath.Join(dir, "missing", "x")}))
}

func exportTooLarge(b *bench) {
	s, cp := b.exportable(b.o.NoProviderFile, events.Arguments{MaxBytes: ample})
	length := s.must(events.VerbExport, events.Arguments{CheckpointID: cp.ID, MaxBytes: ample}).File.ByteLength
	s.must(events.VerbExport, events.Arguments{CheckpointID: cp.ID, MaxBytes: length}) // the edge
	if length > 1 {
		s.refused(s.op(events.VerbExport, events.Arguments{CheckpointID: cp.ID, MaxBytes: length - 1}))
	}
	s.refused(s.op(events.VerbExport, events.Arguments{CheckpointID: newUUID(), MaxBytes: ample}))
}

func logsByOffset(b *bench) {
	s := b.seat().until(events.VerbStart)
	s.must(events.VerbStop, events.Arguments{Grace: "0s"})
	var whole, tail bytes.Buffer
	next, err := b.d.Logs(b.ctx, s.id, s.ref, 0, false, &whole)
	if err != nil {
		b.Fatalf("logs: %v", err)
	}
	if next < int64(whole.Len()) {
		b.Errorf("%d bytes of logs, but the next offset is %d", whole.Len(), next)
	}
	if _, err := b.d.Logs(b.ctx, s.id, s.ref, next, true, &tail); err != nil || tail.Len() != 0 {
		b.Errorf("following a stopped seat from its end: %d bytes, %v", tail.Len(), err)
	}
	if whole.Len() == 0 {
		return
	}
	half := next - int64(whole.Len()/2)
	if _, err := b.d.Logs(b.ctx, s.id, s.ref, half, false, &tail); err != nil || !bytes.HasSuffix(whole.Bytes(), tail.Bytes()) {
		b.Errorf("logs from %d are not the end of the whole (%v)", half, err)
	}
}

// materialInside puts a canary into the material and looks for it in
// everything that the driver answers.
func materialInside(b *bench) {
	d := providers.Raw(b.d) // the guard would cut it out
	s := b.seat()
	material, err := Launch(s.op(events.VerbStart, events.Arguments{}), nil)
	if err != nil {
		b.Fatalf("a credential could not be made: %v", err)
	}
	canary := string(material[providers.MaterialCredential])
	see := func(what string, v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			b.Fatalf("%v", err)
		}
		if strings.Contains(string(raw), canary) {
			b.Errorf("%s holds the material", what)
		}
	}
	for _, v := range []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart, "teleport"} {
		op := s.op(v, events.Arguments{})
		op.Material = material
		out := d.Do(b.ctx, op)
		if v == events.VerbReserve && out.Kind != providers.Refused {
			s.ref, b.made = out.Facts.Ref, append(b.made, s)
		}
		see("the answer of "+string(v), out)
		see("the finding of "+string(v), d.Reconcile(b.ctx, op))
	}
	f, err := d.Inspect(b.ctx, s.id, s.ref)
	if err != nil {
		b.Fatalf("inspect: %v", err)
	}
	see("inspect", f)
	ls, err := d.List(b.ctx)
	if err != nil {
		b.Fatalf("list: %v", err)
	}
	see("list", ls)
}
