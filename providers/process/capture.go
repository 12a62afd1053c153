//go:build linux

package process

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/providers"
	"berth/providers/process/custodian"
	"berth/providers/process/seatdir"
)

// Limits of captures.
const (
	MaxCheckpoints  = 64
	MaxFiles        = 64
	MaxCaptureBytes = 16 << 30
)

// kept is written beside a capture or an export, after it: its presence
// proves that the operation landed.
type kept struct {
	Operation  events.OperationID `json:"operation"`
	Checkpoint *events.Checkpoint `json:"checkpoint,omitempty"`
	File       *events.File       `json:"file,omitempty"`
}

var nameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

func keptName(op providers.Operation) string {
	if op.Verb == events.VerbCheckpoint {
		return filepath.Join(seatdir.DirCaptures, filepath.Base(op.Arguments.CheckpointID)+".json")
	}
	return filepath.Join(seatdir.DirExports, string(op.ID)+".json")
}

func (c *call) captured(id string) string { return c.dir.File(seatdir.DirCaptures, id+".tar") }
func (c *call) exported(id string) string {
	return c.dir.File(seatdir.DirExports, filepath.Base(id)+".tar")
}

// checkpoint captures the home of the seat, frozen for that time: a cold
// capture (decision 17). Memory is not in it.
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
	f, err := c.facts(ctx)
	if err != nil {
		return f, err
	}
	release := func() {}
	if f.State == events.StateRunning {
		var who seatdir.Ident
		if err := c.dir.ReadJSON(seatdir.FileIdent, &who); err != nil {
			return f, err
		}
		if release, err = custodian.Hold(ctx, c.dir, who.Custodian); err != nil {
			return f, err
		}
	}
	defer release()
	at := c.d.now()
	n, sum, err := writeFile(c.captured(id), func(w io.Writer) error {
		return tarTree(ctx, w, c.dir.File(seatdir.DirHome), c.j.IDBase)
	})
	if err != nil {
		return f, err
	}
	f.Checkpoint = &events.Checkpoint{ID: id, Kind: "cold", ByteLength: n, SHA256: sum, CapturedAt: at}
	return f, c.dir.WriteJSON(keptName(c.op), kept{Operation: c.op.ID, Checkpoint: f.Checkpoint})
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

// export copies a checkpoint to a file of the provider or to a path of this
// host, and verifies it while it does (R33-R37).
func (c *call) export(ctx context.Context) (events.Facts, error) {
	a, id := c.op.Arguments, c.op.Environment
	if a.MaxBytes < 1 {
		return events.Facts{}, fault.New(fault.BadRequest, "export of environment %s needs maxBytes of at least 1 (R33)", id)
	}
	var k kept
	err := c.dir.ReadJSON(filepath.Join(seatdir.DirCaptures, filepath.Base(a.CheckpointID)+".json"), &k)
	if errors.Is(err, os.ErrNotExist) || err == nil && !nameRE.MatchString(a.CheckpointID) {
		return events.Facts{}, fault.New(fault.NotFound, "environment %s has no checkpoint %q", id, a.CheckpointID)
	}
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
	n, sum, err := writeFile(to, func(w io.Writer) error {
		src, err := os.Open(c.captured(a.CheckpointID))
		if err != nil {
			return err
		}
		defer src.Close()
		n, err := io.Copy(w, bounded{ctx, io.LimitReader(src, k.Checkpoint.ByteLength+1)})
		if err == nil && n != k.Checkpoint.ByteLength {
			err = fault.New(fault.FailedPrecondition, "checkpoint %s is damaged: it has not %d bytes any more", a.CheckpointID, k.Checkpoint.ByteLength)
		}
		return err
	}, k.Checkpoint.SHA256)
	if err != nil {
		return events.Facts{}, err
	}
	file.ByteLength, file.SHA256 = n, sum
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

// writeFile writes a file whole or not at all, durably, and returns its length
// and SHA-256. A wanted digest that differs is an error.
func writeFile(to string, fill func(io.Writer) error, want ...string) (int64, string, error) {
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

func (b bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.r.Read(p)
}

// tarTree archives a tree in the order of its names, below `.`. What the seat
// placed in it can't lead out of it. Owners are as the seat sees them; sockets,
// pipes and devices are left out.
func tarTree(ctx context.Context, w io.Writer, dir string, idBase int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	tw := tar.NewWriter(w)
	err = fs.WalkDir(root.FS(), ".", func(p string, de fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		return tarEntry(ctx, tw, root, p, idBase)
	})
	if err != nil {
		return err
	}
	return tw.Close()
}

func tarEntry(ctx context.Context, tw *tar.Writer, root *os.Root, p string, idBase int) error {
	st, err := root.Lstat(p)
	if err != nil {
		return err
	}
	link := ""
	switch {
	case st.Mode()&fs.ModeSymlink != 0:
		if link, err = root.Readlink(p); err != nil {
			return err
		}
	case !st.Mode().IsRegular() && !st.IsDir():
		return nil
	}
	h, err := tar.FileInfoHeader(st, link)
	if err != nil {
		return err
	}
	h.Name, h.Uname, h.Gname = p, "", ""
	if st.IsDir() {
		h.Name += "/"
	}
	if s, ok := st.Sys().(*syscall.Stat_t); ok && idBase != 0 {
		h.Uid, h.Gid = int(s.Uid)-idBase, int(s.Gid)-idBase
		if h.Uid < 0 || h.Gid < 0 {
			h.Uid, h.Gid = 0, 0
		}
	}
	if err := tw.WriteHeader(h); err != nil || !st.Mode().IsRegular() {
		return err
	}
	f, err := root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(tw, bounded{ctx, io.LimitReader(f, h.Size)})
	if err == nil && n != h.Size {
		err = fmt.Errorf("%s became shorter while it was read", p)
	}
	return err
}
