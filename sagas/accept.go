package sagas

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/providers"
)

// MaxCopies is how often the copy of one exported file is begun or taken up
// again after a cut, before the file is rejected.
const MaxCopies = 5

// copyBuffer is all that a copy holds in memory.
const copyBuffer = 64 << 10

// ExportFile is where an accepted provider file is, under ExportsDir.
func ExportFile(dir string, id events.OperationID) string { return filepath.Join(dir, string(id)) }

// accept takes a produced file in: exactly the length and the digest that the
// provider answered, at most the bytes that were asked for (R37). What does
// not match is rejected and nothing of it is kept (scenario 63).
func (e *Engine) accept(ctx context.Context, p providers.Entry, s aggregates.Seat, op environment.Operation) input {
	if !e.hook("accept:before") {
		return nil
	}
	file := *op.Facts.File
	var err error
	if op.Arguments.HostPath != "" {
		err = inspectHostFile(file, op.Arguments.MaxBytes)
	} else {
		err = e.copyFile(ctx, p, s, op, file)
	}
	if e.calls.Err() != nil || !e.hook("accept:after") {
		return nil
	}
	return func(t *turn, s aggregates.Seat) []events.Event {
		now, ok := s.Environment.Find(op.ID)
		if !ok || now.File != nil || now.Fault != nil {
			return nil
		}
		if err != nil {
			return []events.Event{events.FileRejected{Environment: s.Environment.ID, Operation: op.ID, Fault: fault.From(err)}}
		}
		return []events.Event{events.FileAccepted{Environment: s.Environment.ID, Operation: op.ID, File: file}}
	}
}

func rejected(file events.File, format string, args ...any) *fault.Error {
	return fault.New(fault.FailedPrecondition, "the exported file was rejected: "+format, args...).WithOutcome(fault.Executed).
		WithDetail("berth.export-rejected", "byteLength", strconv.FormatInt(file.ByteLength, 10), "sha256", file.SHA256).
		WithHint("nothing of it was kept; export again")
}

// inspectHostFile looks at the file itself, whatever the provider said of it
// (R34). One that does not match is removed: it was made for this export.
func inspectHostFile(file events.File, most int64) error {
	err := checkHostFile(file, most)
	if err != nil {
		if rm := os.Remove(file.Path); rm != nil && !errors.Is(rm, os.ErrNotExist) {
			return rejected(file, "%s; and %s can't be removed", fault.From(err).Message, file.Path)
		}
	}
	return err
}

func checkHostFile(file events.File, most int64) error {
	f, err := os.Open(file.Path)
	if err != nil {
		return rejected(file, "%s can't be read", file.Path)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return rejected(file, "%s is not a plain file", file.Path)
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, file.ByteLength+1))
	if err != nil {
		return rejected(file, "%s can't be read", file.Path)
	}
	return match(file, most, n, h)
}

// match compares what was read with what was answered and asked for.
func match(file events.File, most, n int64, h hash.Hash) error {
	switch sum := hex.EncodeToString(h.Sum(nil)); {
	case most > 0 && file.ByteLength > most:
		return rejected(file, "it has %d bytes, more than the %d asked for", file.ByteLength, most)
	case n > file.ByteLength:
		return rejected(file, "it is longer than the %d bytes that the provider answered", file.ByteLength)
	case n < file.ByteLength:
		return rejected(file, "it ended after %d of %d bytes", n, file.ByteLength)
	case sum != file.SHA256:
		return rejected(file, "its SHA-256 is %s", sum)
	}
	return nil
}

// copyFile streams a provider file into ExportsDir.
func (e *Engine) copyFile(ctx context.Context, p providers.Entry, s aggregates.Seat, op environment.Operation, file events.File) error {
	if most := op.Arguments.MaxBytes; most > 0 && file.ByteLength > most {
		return match(file, most, file.ByteLength, sha256.New())
	}
	if err := durable.MakeDir(e.o.ExportsDir); err != nil {
		return fault.New(fault.Unavailable, "the directory for exports can't be made: %s", err)
	}
	from := Source{Driver: p.Driver, Environment: s.Environment.ID, Ref: s.Environment.Ref, File: file}
	return CopyFile(ctx, from, ExportFile(e.o.ExportsDir, op.ID), func(try int) bool { return e.pause(ctx, Backoff(try, e.o.Jitter())) })
}

// Source is a file that a provider exported, as its export answered it.
type Source struct {
	Driver      providers.Driver
	Environment events.EnvironmentID
	Ref         string
	File        events.File
}

// CopyFile streams a provider file to path, which is replaced only when the
// copy is whole, synced, and has the answered length and digest (R37). A copy
// that was cut is taken up where it was, MaxCopies times in all; wait is asked
// before each of those (from 0), and false gives up. It is refused with
// failed-precondition, executed, when what came is not the file.
func CopyFile(ctx context.Context, from Source, path string, wait func(try int) bool) error {
	return durable.Replace(path, 0o600, func(w io.Writer) error { return from.fill(ctx, w, wait) })
}

// fill reads until the answered length is there or no try is left.
func (f Source) fill(ctx context.Context, w io.Writer, wait func(try int) bool) error {
	file := f.File
	h := sha256.New()
	var n int64
	var last error
	for try := range MaxCopies {
		if try > 0 && !wait(try-1) {
			break
		}
		var got int64
		got, last = f.read(ctx, n, io.MultiWriter(w, h))
		if n += got; n >= file.ByteLength && last == nil {
			return match(file, 0, n, h)
		}
	}
	if last != nil && n <= file.ByteLength {
		return rejected(file, "reading it broke off after %d of %d bytes: %s", n, file.ByteLength, fault.From(last).Message)
	}
	return match(file, 0, n, h)
}

// read copies from an offset, at most one byte more than there should be.
func (f Source) read(ctx context.Context, from int64, w io.Writer) (int64, error) {
	r, err := f.Driver.ReadFile(ctx, f.Environment, f.Ref, f.File.ID, from)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.CopyBuffer(onlyWriter{w}, io.LimitReader(onlyReader{r}, f.File.ByteLength-from+1), make([]byte, copyBuffer))
}

// onlyReader and onlyWriter hide the shortcuts of io.Copy, which would choose
// their own buffers.
type onlyReader struct{ io.Reader }
type onlyWriter struct{ io.Writer }

// pause waits; false if ctx ended first.
func (e *Engine) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
