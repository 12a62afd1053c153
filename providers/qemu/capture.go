//go:build linux

package qemu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/custodian"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/machine"
)

// fileFrom is the manifest of the checkpoint that an environment begins from.
const fileFrom = "restore.json"

var nameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// kept is what proves that a checkpoint or an export landed.
type kept = machine.Kept

func keptName(op providers.Operation) string {
	if op.Verb == events.VerbCheckpoint {
		return machine.ManifestFile(filepath.Base(op.Arguments.CheckpointID))
	}
	return filepath.Join(seatdir.DirExports, string(op.ID)+".json")
}

func (c *call) exported(id string) string {
	return c.dir.File(seatdir.DirExports, filepath.Base(id)+".bin")
}

// checkpoint keeps the machine's memory (option checkpoint=memory) or its home
// (cold, the default). The supervisor makes it and writes the manifest.
func (c *call) checkpoint(ctx context.Context) (events.Facts, error) {
	id := c.op.Arguments.CheckpointID
	if !nameRE.MatchString(id) {
		return events.Facts{}, fault.New(fault.BadRequest, "checkpoint id %q: 1 to 64 letters, digits, - and _", id)
	}
	if _, err := os.Lstat(c.dir.File(keptName(c.op))); err == nil {
		return events.Facts{}, fault.New(fault.AlreadyExists, "environment %s already has checkpoint %s", c.op.Environment, id)
	}
	if err := c.room(seatdir.DirCaptures, MaxCheckpoints); err != nil {
		return events.Facts{}, err
	}
	ch, err := choices(c.j.Plan)
	if err != nil {
		return events.Facts{}, err
	}
	b, err := json.Marshal(machine.Save{Operation: c.op.ID, ID: id, Kind: ch.checkpoint})
	if err != nil {
		return events.Facts{}, err
	}
	if err := c.ask(ctx, custodian.Request{Ask: machine.AskSave, Data: b}); err != nil {
		return events.Facts{}, err
	}
	var k kept
	if err := c.dir.ReadJSON(keptName(c.op), &k); err != nil {
		return events.Facts{}, err
	}
	f, err := c.facts(ctx)
	f.Checkpoint = k.Checkpoint
	return f, err
}

// room makes the directory and refuses when it is full.
func (c *call) room(dir string, most int) error {
	if err := os.Mkdir(c.dir.File(dir), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	done, err := filepath.Glob(c.dir.File(dir, "*.json"))
	if err == nil && len(done) >= most {
		err = fault.New(fault.ResourceExhausted, "environment %s has %d %s, the most there can be", c.op.Environment, most, dir)
	}
	return err
}

// loadKept reads the manifest of a checkpoint of an environment of this host.
func loadKept(dir seatdir.Dir, id string) (kept, error) {
	var k kept
	missing := fault.New(fault.NotFound, "environment %s has no checkpoint %q", dir.ID, events.Scrub(id))
	if !nameRE.MatchString(id) {
		return k, missing
	}
	err := dir.ReadJSON(machine.ManifestFile(id), &k)
	if errors.Is(err, os.ErrNotExist) || err == nil && k.Checkpoint == nil {
		return k, missing
	}
	return k, err
}

// takeCheckpoint gives the environment a checkpoint of another one to begin
// from, as its own: the other may be destroyed, and its original runs on. What
// does not fit this machine is refused before anything boots.
func (c *call) takeCheckpoint(from origin, ch choice) error {
	dir := c.d.machine(from.environment)
	k, err := loadKept(dir, from.checkpoint)
	if err != nil {
		return err
	}
	name := machine.FileHome
	if k.Checkpoint.Kind == "memory" {
		name = machine.FileState
		f, err := c.d.packed(context.Background())
		if err != nil {
			return err
		}
		if k.Hardware == nil || k.Hardware.Digest() != hardware(f, ch).Digest() {
			return otherMachine(k.Checkpoint.ID)
		}
	}
	to := c.dir.File(name)
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Link(dir.File(machine.StateFile(from.checkpoint)), to); err != nil {
		return err
	}
	return c.dir.WriteJSON(fileFrom, k)
}

func otherMachine(id string) error {
	return fault.New(fault.FailedPrecondition,
		"checkpoint %s is of another machine: memory, processors, kernel, agent and QEMU must all be those it was made with", id)
}

// export copies a checkpoint to a file of the provider or to a path of this
// host, and verifies it while it does (R33-R37).
func (c *call) export(ctx context.Context) (events.Facts, error) {
	a, id := c.op.Arguments, c.op.Environment
	if a.MaxBytes < 1 {
		return events.Facts{}, fault.New(fault.BadRequest, "export of environment %s needs maxBytes of at least 1 (R33)", id)
	}
	k, err := loadKept(c.dir, a.CheckpointID)
	if err != nil {
		return events.Facts{}, err
	}
	if n := k.Checkpoint.ByteLength; n > a.MaxBytes {
		return events.Facts{}, fault.New(fault.ResourceExhausted, "checkpoint %s has %d bytes, more than maxBytes %d (R37)", a.CheckpointID, n, a.MaxBytes)
	}
	if err := c.room(seatdir.DirExports, MaxFiles); err != nil {
		return events.Facts{}, err
	}
	to, file := c.exported(string(c.op.ID)), events.File{ID: string(c.op.ID)}
	if a.HostPath != "" {
		if err := checkHostPath(a.HostPath); err != nil {
			return events.Facts{}, err
		}
		to, file = a.HostPath, events.File{Path: a.HostPath}
	}
	if err := copyVerified(ctx, to, c.dir.File(machine.StateFile(a.CheckpointID)), *k.Checkpoint); err != nil {
		return events.Facts{}, err
	}
	file.ByteLength, file.SHA256 = k.Checkpoint.ByteLength, k.Checkpoint.SHA256
	f, err := c.facts(ctx)
	if err != nil {
		return f, err
	}
	f.File = &file
	return f, c.dir.WriteJSON(keptName(c.op), kept{Operation: c.op.ID, File: &file})
}

func checkHostPath(p string) error {
	if !filepath.IsAbs(p) || filepath.Clean(p) != p {
		return fault.New(fault.BadRequest, "export path %q: an absolute, clean path", p)
	}
	if st, err := os.Stat(filepath.Dir(p)); err != nil || !st.IsDir() {
		return fault.New(fault.FailedPrecondition, "export path %q: its directory is not there", p)
	}
	if st, err := os.Lstat(p); err == nil && !st.Mode().IsRegular() {
		return fault.New(fault.FailedPrecondition, "export path %q: something that is no regular file is there", p)
	}
	return nil
}

// copyVerified writes a file whole or not at all, durably, and only with the
// length and the digest of the checkpoint.
func copyVerified(ctx context.Context, to, from string, want events.Checkpoint) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	f, err := os.CreateTemp(filepath.Dir(to), ".berth-*.part")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	stop := context.AfterFunc(ctx, func() { _ = src.Close() }) // ends the copy
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), io.LimitReader(src, want.ByteLength+1))
	stop()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err == nil && (n != want.ByteLength || hex.EncodeToString(h.Sum(nil)) != want.SHA256) {
		err = fault.New(fault.FailedPrecondition, "checkpoint %s is damaged: it has not the %d bytes any more that it was made of", want.ID, want.ByteLength)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), to)
	}
	return err
}

// deleteFile removes an exported file; the export itself never does (R41).
func (c *call) deleteFile(ctx context.Context) (events.Facts, error) {
	id := c.op.Arguments.FileID
	p := c.exported(id)
	if _, err := os.Lstat(p); !nameRE.MatchString(id) || err != nil {
		return events.Facts{}, fault.New(fault.NotFound, "environment %s has no exported file %q", c.op.Environment, id)
	}
	for _, name := range []string{c.dir.File(seatdir.DirExports, id+".json"), p} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return events.Facts{}, err
		}
	}
	return c.facts(ctx)
}

// ReadFile streams an exported file from offset. The id opens nothing but a
// file of this environment (R36, R38, R87).
func (d *Driver) ReadFile(_ context.Context, id events.EnvironmentID, ref, file string, offset int64) (io.ReadCloser, error) {
	dir, j, err := d.known(id, ref)
	if err != nil {
		return nil, err
	}
	c := &call{d: d, dir: dir, j: j}
	if !nameRE.MatchString(file) {
		return nil, fault.New(fault.NotFound, "environment %s has no such exported file", id)
	}
	f, err := os.Open(c.exported(file))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "environment %s has no exported file %s", id, file)
	}
	if err != nil {
		return nil, seen("reading a file", id, err)
	}
	st, err := f.Stat()
	if err == nil && (offset < 0 || offset > st.Size()) {
		err = fault.New(fault.BadRequest, "offset %d of a file of %d bytes", offset, st.Size())
	}
	if err == nil {
		_, err = f.Seek(offset, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, seen("reading a file", id, err)
	}
	return f, nil
}
