// Package kept has what drivers do with the files that they keep on this host:
// captured checkpoints and exported files. A file is written whole or not at
// all, read as long as it is asked for, and called by a name that can't leave
// its directory; what an error tells of a path or a name is public text.
package kept

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/internal/until"
	"berth/providers"
)

// MaxCapture is the longest capture, in bytes.
const MaxCapture = 16 << 30

// Named says that a name is one of a checkpoint or a file: 1 to 64 letters,
// digits, - and _, so that it is one file of one directory.
func Named(name string) bool { return providers.CheckpointName.MatchString(name) }

// CheckName refuses, with bad-request, the id of a checkpoint that is to be
// made and is no name.
func CheckName(id string) error {
	if !Named(id) {
		return fault.New(fault.BadRequest, "checkpoint id %q: 1 to 64 letters, digits, - and _", events.Scrub(id))
	}
	return nil
}

// NoCheckpoint is the refusal of a checkpoint that is not there.
func NoCheckpoint(of events.EnvironmentID, id string) error {
	return fault.New(fault.NotFound, "environment %s has no checkpoint %q", of, events.Scrub(id))
}

// NoFile is the refusal of an exported file that is not there.
func NoFile(of events.EnvironmentID, id string) error {
	return fault.New(fault.NotFound, "environment %s has no exported file %q", of, events.Scrub(id))
}

// CheckRoom makes a directory of an environment, and refuses with
// resource-exhausted if it has as many files of a pattern as there can be.
func CheckRoom(of events.EnvironmentID, dir, pattern string, most int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	done, err := filepath.Glob(filepath.Join(dir, pattern))
	if err == nil && len(done) >= most {
		err = fault.New(fault.ResourceExhausted, "environment %s has %d %s, the most there can be", of, most, filepath.Base(dir))
	}
	return err
}

// CheckBound refuses an export without a bound.
func CheckBound(of events.EnvironmentID, a events.Arguments) error {
	if a.MaxBytes < 1 {
		return fault.New(fault.BadRequest, "export of environment %s needs maxBytes of at least 1 (R33)", of)
	}
	return nil
}

// CheckLength refuses an export of a checkpoint that is longer than is accepted.
func CheckLength(a events.Arguments, cp events.Checkpoint) error {
	if cp.ByteLength > a.MaxBytes {
		return fault.New(fault.ResourceExhausted, "checkpoint %s has %d bytes, more than maxBytes %d (R37)", events.Scrub(cp.ID), cp.ByteLength, a.MaxBytes).
			WithHint("--max-bytes %d takes it", cp.ByteLength)
	}
	return nil
}

// CheckPath refuses a path of this host that an export could not be written to,
// before anything is tried (R34).
func CheckPath(p string) error {
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

// Write writes a file whole or not at all, durably, and gives its length and
// SHA-256. More than most bytes are refused with resource-exhausted.
func Write(to string, most int64, fill func(io.Writer) error) (int64, string, error) {
	return write(to, most, "", fill)
}

func write(to string, most int64, want string, fill func(io.Writer) error) (int64, string, error) {
	var m *Measure
	err := durable.Replace(to, 0o600, func(w io.Writer) error {
		m = NewMeasure(w, most)
		if err := fill(m); err != nil {
			return err
		}
		if sum := m.SHA256(); want != "" && want != sum {
			return fault.New(fault.FailedPrecondition, "the content has the SHA-256 %s and should have %s", sum, want)
		}
		return nil
	})
	if err != nil {
		return 0, "", err
	}
	return m.Bytes, m.SHA256(), nil
}

// Copy copies a capture whole or not at all, durably, and only with the length
// and the digest of its checkpoint (R37).
func Copy(ctx context.Context, to, from string, want events.Checkpoint) (int64, string, error) {
	return write(to, MaxCapture, want.SHA256, func(w io.Writer) error {
		src, err := os.Open(from)
		if err != nil {
			return err
		}
		defer src.Close()
		n, err := io.Copy(w, until.Reader(ctx, io.LimitReader(src, want.ByteLength+1)))
		if err == nil && n != want.ByteLength {
			err = fault.New(fault.FailedPrecondition, "checkpoint %s is damaged: it has not %d bytes any more", events.Scrub(want.ID), want.ByteLength)
		}
		return err
	})
}

// Open opens an exported file from an offset (R36, R87). path says where the
// file of a name is; a name that is none opens nothing.
func Open(of events.EnvironmentID, name string, offset int64, path func(string) string) (io.ReadCloser, error) {
	if !Named(name) {
		return nil, NoFile(of, name)
	}
	f, err := os.Open(path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, NoFile(of, name)
	}
	if err != nil {
		return nil, Seen("reading a file", of, err)
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
		return nil, Seen("reading a file", of, err)
	}
	return f, nil
}

// Seen is the error of something that was tried with an environment: one that
// has a code keeps it, another is unavailable, or what ended its context.
func Seen(what string, of events.EnvironmentID, err error) *fault.Error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f
	}
	said := fmt.Sprintf("%s of environment %s: %s", what, of, events.Scrub(err.Error()))
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fault.Ended(err, "%s", said).WithOutcome(fault.Unknown)
	}
	return fault.New(fault.Unavailable, "%s", said).WithOutcome(fault.Unknown)
}

// Measure counts and hashes what it passes on, and refuses more than a bound.
type Measure struct {
	Bytes int64 // that were passed on

	w    io.Writer
	h    hash.Hash
	most int64
}

// NewMeasure passes at most most bytes on to w.
func NewMeasure(w io.Writer, most int64) *Measure {
	return &Measure{w: w, h: sha256.New(), most: most}
}

// Write implements io.Writer. What is too much is refused with resource-exhausted.
func (m *Measure) Write(p []byte) (int, error) {
	if m.Bytes+int64(len(p)) > m.most {
		return 0, fault.New(fault.ResourceExhausted, "a capture of more than %d bytes", m.most)
	}
	n, err := m.w.Write(p)
	_, _ = m.h.Write(p[:n])
	m.Bytes += int64(n)
	return n, err
}

// SHA256 is the digest of what was passed on, in hexadecimal.
func (m *Measure) SHA256() string { return hex.EncodeToString(m.h.Sum(nil)) }
