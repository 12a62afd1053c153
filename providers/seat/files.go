//go:build linux

package seat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/providers"
	"berth/providers/process/seatdir"
)

// NameRE is how checkpoints and exported files are named.
var NameRE = providers.CheckpointName

func keptName(op providers.Operation) string {
	if op.Verb == events.VerbCheckpoint {
		return seatdir.ManifestFile(filepath.Base(op.Arguments.CheckpointID))
	}
	return filepath.Join(seatdir.DirExports, string(op.ID)+".json")
}

// Captured is the file of checkpoint id.
func (c *Call) Captured(id string) string {
	return c.d.Captured(c.Dir, id)
}

// Captured is the file of checkpoint id of an environment.
func (d *Base) Captured(dir seatdir.Dir, id string) string {
	return dir.File(seatdir.DirCaptures, id+d.kind.CaptureExt)
}

func (c *Call) exported(id string) string {
	return c.Dir.File(seatdir.DirExports, filepath.Base(id)+c.d.kind.ExportExt)
}

// checkpoint makes a capture, as the kind of seat allows it.
func (c *Call) checkpoint(ctx context.Context) (events.Facts, error) {
	id := c.Op.Arguments.CheckpointID
	if !NameRE.MatchString(id) {
		return events.Facts{}, fault.New(fault.BadRequest, "checkpoint id %q: 1 to 64 letters, digits, - and _", id)
	}
	if _, err := os.Lstat(c.Dir.File(keptName(c.Op))); err == nil {
		return events.Facts{}, fault.New(fault.AlreadyExists, "environment %s already has checkpoint %s", c.Op.Environment, id)
	}
	if err := c.room(seatdir.DirCaptures, c.d.kind.MaxCheckpoints); err != nil {
		return events.Facts{}, err
	}
	return c.d.kind.Checkpoint(ctx, c, id)
}

// LoadKept reads the manifest of checkpoint id of an environment into k, a
// *seatdir.Kept or what embeds one; not-found if there is no such checkpoint.
func LoadKept(dir seatdir.Dir, id string, k any) error {
	err := os.ErrNotExist
	if NameRE.MatchString(id) {
		err = dir.ReadJSON(seatdir.ManifestFile(id), k)
	}
	if errors.Is(err, os.ErrNotExist) {
		return fault.New(fault.NotFound, "environment %s has no checkpoint %q", dir.ID, events.Scrub(id))
	}
	return err
}

// room makes the directory and refuses when it is full.
func (c *Call) room(dir string, most int) error {
	if err := os.Mkdir(c.Dir.File(dir), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	done, err := filepath.Glob(c.Dir.File(dir, "*.json"))
	if err == nil && len(done) >= most {
		err = fault.New(fault.ResourceExhausted, "environment %s has %d %s, the most there can be", c.Op.Environment, most, dir)
	}
	return err
}

// export copies a checkpoint to a file of the provider or to a path of this
// host, and verifies it while it does (R33-R37).
func (c *Call) export(ctx context.Context) (events.Facts, error) {
	a, id := c.Op.Arguments, c.Op.Environment
	if a.MaxBytes < 1 {
		return events.Facts{}, fault.New(fault.BadRequest, "export of environment %s needs maxBytes of at least 1 (R33)", id)
	}
	var k seatdir.Kept
	if err := LoadKept(c.Dir, a.CheckpointID, &k); err != nil {
		return events.Facts{}, err
	}
	if n := k.Checkpoint.ByteLength; n > a.MaxBytes {
		return events.Facts{}, fault.New(fault.ResourceExhausted, "checkpoint %s has %d bytes, more than maxBytes %d (R37)", a.CheckpointID, n, a.MaxBytes)
	}
	if err := c.room(seatdir.DirExports, c.d.kind.MaxFiles); err != nil {
		return events.Facts{}, err
	}
	to, file := c.exported(string(c.Op.ID)), events.File{ID: string(c.Op.ID)}
	if a.HostPath != "" {
		if err := checkHostPath(a.HostPath); err != nil {
			return events.Facts{}, err
		}
		to, file = a.HostPath, events.File{Path: a.HostPath}
	}
	n, sum, err := copyCapture(ctx, to, c.Captured(a.CheckpointID), *k.Checkpoint)
	if err != nil {
		return events.Facts{}, err
	}
	file.ByteLength, file.SHA256 = n, sum
	f, err := c.Facts(ctx)
	if err != nil {
		return f, err
	}
	f.File = &file
	return f, c.Dir.WriteJSON(keptName(c.Op), seatdir.Kept{Operation: c.Op.ID, File: &file})
}

// copyCapture copies a captured file whole or not at all, durably, and only
// with the length and the digest of its checkpoint (R37).
func copyCapture(ctx context.Context, to, from string, want events.Checkpoint) (int64, string, error) {
	return WriteFile(to, func(w io.Writer) error {
		src, err := os.Open(from)
		if err != nil {
			return err
		}
		defer src.Close()
		n, err := io.Copy(w, NewReader(ctx, io.LimitReader(src, want.ByteLength+1)))
		if err == nil && n != want.ByteLength {
			err = fault.New(fault.FailedPrecondition, "checkpoint %s is damaged: it has not %d bytes any more", want.ID, want.ByteLength)
		}
		return err
	}, want.SHA256)
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

// deleteFile removes an exported file; the export itself never does (R41).
func (c *Call) deleteFile(ctx context.Context) (events.Facts, error) {
	id := c.Op.Arguments.FileID
	p := c.exported(id)
	if _, err := os.Lstat(p); !NameRE.MatchString(id) || err != nil {
		return events.Facts{}, fault.New(fault.NotFound, "environment %s has no exported file %q", c.Op.Environment, id)
	}
	for _, name := range []string{c.Dir.File(seatdir.DirExports, id+".json"), p} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return events.Facts{}, err
		}
	}
	return c.Facts(ctx)
}

// ReadFile streams an exported file from offset. The id opens nothing but a
// file of this environment (R36, R38, R87).
func (d *Base) ReadFile(_ context.Context, id events.EnvironmentID, ref, file string, offset int64) (io.ReadCloser, error) {
	dir, j, err := d.known(id, ref)
	if err != nil {
		return nil, err
	}
	c := &Call{d: d, Dir: dir, J: j}
	if !NameRE.MatchString(file) {
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

// WriteFile writes a file whole or not at all, durably, and returns its length
// and SHA-256. A wanted digest that differs is an error.
func WriteFile(to string, fill func(io.Writer) error, want ...string) (int64, string, error) {
	h := sha256.New()
	cw := &counted{}
	err := durable.Replace(to, 0o600, func(w io.Writer) error {
		cw.w = io.MultiWriter(w, h)
		if err := fill(cw); err != nil {
			return err
		}
		if sum := hex.EncodeToString(h.Sum(nil)); len(want) > 0 && want[0] != sum {
			return fault.New(fault.FailedPrecondition, "the content has the SHA-256 %s and should have %s", sum, want[0])
		}
		return nil
	})
	return cw.n, hex.EncodeToString(h.Sum(nil)), err
}

type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	if c.n+int64(len(p)) > MaxCaptureBytes {
		return 0, fault.New(fault.ResourceExhausted, "a capture of more than %d bytes", int64(MaxCaptureBytes))
	}
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

type bounded struct {
	ctx context.Context
	r   io.Reader
}

// NewReader reads r until ctx ends.
func NewReader(ctx context.Context, r io.Reader) io.Reader { return bounded{ctx, r} }

func (b bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.r.Read(p)
}
