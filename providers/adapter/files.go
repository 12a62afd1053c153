package adapter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
)

// Limits of captures and exports, which are kept on the manager's host.
const (
	MaxCheckpoints  = 64 // of one environment
	MaxFiles        = 64
	MaxCaptureBytes = 16 << 30
)

const (
	captures = "captures"
	exports  = "exports"
)

var nameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

func (d *Driver) dropFiles(id events.EnvironmentID) error { return os.RemoveAll(d.s.files(id)) }

// checkpoint streams the seat's files into a capture, hashed on the way.
func (c *Call) checkpoint(ctx context.Context) (events.Facts, error) {
	id := c.Op.Arguments.CheckpointID
	if !nameRE.MatchString(id) {
		return events.Facts{}, fault.New(fault.BadRequest, "checkpoint id %q: 1 to 64 letters, digits, - and _", events.Scrub(id))
	}
	if _, err := os.Lstat(c.d.s.files(c.Op.Environment, captures, id+".json")); err == nil {
		return events.Facts{}, fault.New(fault.AlreadyExists, "environment %s already has checkpoint %s", c.Op.Environment, id)
	}
	if err := c.room(captures, MaxCheckpoints); err != nil {
		return events.Facts{}, err
	}
	cp := events.Checkpoint{ID: id, Kind: "cold", CapturedAt: millis(c.d.clock)}
	var err error
	cp.ByteLength, cp.SHA256, err = writeFile(c.d.s.files(c.Op.Environment, captures, id+".tar"), MaxCaptureBytes, func(w io.Writer) error {
		return c.d.b.Capture(ctx, c, w)
	})
	if err != nil {
		return events.Facts{}, err
	}
	raw, err := json.Marshal(cp)
	if err == nil {
		err = durable.WriteFile(c.d.s.files(c.Op.Environment, captures, id+".json"), raw, 0o600)
	}
	if err != nil {
		return events.Facts{}, err
	}
	f, err := c.d.observe(ctx, c.Record)
	f.Checkpoint = &cp
	return f, err
}

// room makes the directory and refuses when it is full.
func (c *Call) room(dir string, most int) error {
	at := c.d.s.files(c.Op.Environment, dir)
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	done, err := filepath.Glob(filepath.Join(at, "*.tar"))
	if err == nil && len(done) >= most {
		err = fault.New(fault.ResourceExhausted, "environment %s has %d %s, the most there can be", c.Op.Environment, most, dir)
	}
	return err
}

// export copies a capture to a provider file or to a path of this host, and
// verifies it while it does (R33-R37).
func (c *Call) export(ctx context.Context) (events.Facts, error) {
	a, id := c.Op.Arguments, c.Op.Environment
	if a.MaxBytes < 1 {
		return events.Facts{}, fault.New(fault.BadRequest, "export of environment %s needs maxBytes of at least 1 (R33)", id)
	}
	var cp events.Checkpoint
	raw, err := os.ReadFile(c.d.s.files(id, captures, filepath.Base(a.CheckpointID)+".json"))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !nameRE.MatchString(a.CheckpointID) {
		return events.Facts{}, fault.New(fault.NotFound, "environment %s has no checkpoint %q", id, events.Scrub(a.CheckpointID))
	}
	if err == nil {
		err = json.Unmarshal(raw, &cp)
	}
	if err != nil {
		return events.Facts{}, err
	}
	if cp.ByteLength > a.MaxBytes {
		return events.Facts{}, fault.New(fault.ResourceExhausted, "checkpoint %s has %d bytes, more than maxBytes %d (R37)", a.CheckpointID, cp.ByteLength, a.MaxBytes)
	}
	to, file := c.d.s.files(id, exports, string(c.Op.ID)+".tar"), events.File{ID: string(c.Op.ID)}
	if a.HostPath != "" {
		to, file = a.HostPath, events.File{Path: a.HostPath}
		err = checkHostPath(a.HostPath)
	} else {
		err = c.room(exports, MaxFiles)
	}
	if err != nil {
		return events.Facts{}, err
	}
	file.ByteLength, file.SHA256, err = writeFile(to, cp.ByteLength, func(w io.Writer) error {
		return c.copyCapture(ctx, w, cp)
	})
	if err != nil {
		return events.Facts{}, err
	}
	f, err := c.d.observe(ctx, c.Record)
	f.File = &file
	return f, err
}

// copyCapture fails before its end if the capture is not what it was.
func (c *Call) copyCapture(ctx context.Context, w io.Writer, cp events.Checkpoint) error {
	src, err := os.Open(c.d.s.files(c.Op.Environment, captures, cp.ID+".tar"))
	if err != nil {
		return err
	}
	defer src.Close()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, h), io.LimitReader(src, cp.ByteLength))
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case n != cp.ByteLength || hex.EncodeToString(h.Sum(nil)) != cp.SHA256:
		return fault.New(fault.FailedPrecondition, "checkpoint %s is damaged: it is not what was captured", cp.ID)
	}
	return nil
}

func checkHostPath(p string) error {
	if !filepath.IsAbs(p) || filepath.Clean(p) != p {
		return fault.New(fault.BadRequest, "export path %q: an absolute, clean path", events.Scrub(p))
	}
	if st, err := os.Stat(filepath.Dir(p)); err != nil || !st.IsDir() {
		return fault.New(fault.FailedPrecondition, "export path %q: its directory is not there", events.Scrub(p))
	}
	if st, err := os.Lstat(p); err == nil && !st.Mode().IsRegular() {
		return fault.New(fault.FailedPrecondition, "export path %q: something that is no regular file is there", events.Scrub(p))
	}
	return nil
}

// deleteFile removes an exported file; the export itself never does (R41).
func (c *Call) deleteFile(ctx context.Context) (events.Facts, error) {
	id := c.Op.Arguments.FileID
	if !nameRE.MatchString(id) {
		return events.Facts{}, fault.New(fault.NotFound, "environment %s has no exported file %q", c.Op.Environment, events.Scrub(id))
	}
	err := os.Remove(c.d.s.files(c.Op.Environment, exports, id+".tar"))
	if errors.Is(err, fs.ErrNotExist) {
		return events.Facts{}, fault.New(fault.NotFound, "environment %s has no exported file %s", c.Op.Environment, id)
	}
	if err != nil {
		return events.Facts{}, err
	}
	return c.d.observe(ctx, c.Record)
}

// ReadFile streams an exported file from offset. The id opens nothing but a
// file of this environment (R36, R38, R87).
func (d *Driver) ReadFile(_ context.Context, id events.EnvironmentID, ref, file string, offset int64) (io.ReadCloser, error) {
	if _, err := d.known(id, ref); err != nil {
		return nil, err
	}
	if !nameRE.MatchString(file) {
		return nil, fault.New(fault.NotFound, "environment %s has no such exported file", id)
	}
	f, err := os.Open(d.s.files(id, exports, file+".tar"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "environment %s has no exported file %s", id, file)
	}
	if err != nil {
		return nil, Seen("reading a file", id, err)
	}
	st, err := f.Stat()
	if err == nil && (offset < 0 || offset > st.Size()) {
		err = fault.New(fault.BadRequest, "offset %d of a file of %d bytes", offset, st.Size())
	}
	if err == nil {
		_, err = f.Seek(offset, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, Seen("reading a file", id, err)
	}
	return f, nil
}

// writeFile writes a file whole or not at all, durably, and returns its length
// and SHA-256. More than most bytes are refused.
func writeFile(to string, most int64, fill func(io.Writer) error) (int64, string, error) {
	h := sha256.New()
	cw := &counted{most: most}
	err := durable.Replace(to, 0o600, func(w io.Writer) error {
		cw.w = io.MultiWriter(w, h)
		return fill(cw)
	})
	return cw.n, hex.EncodeToString(h.Sum(nil)), err
}

type counted struct {
	w       io.Writer
	n, most int64
}

func (c *counted) Write(p []byte) (int, error) {
	if c.n+int64(len(p)) > c.most {
		return 0, fault.New(fault.ResourceExhausted, "a capture of more than %d bytes", c.most)
	}
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
