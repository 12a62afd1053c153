package bench

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/providers"
	"berth/providers/hosted"
	"berth/sagas"
)

// provider serves the file of an export: behind the protocol, and bare.
func (r role) provider(in io.Reader, out io.Writer) error {
	d, err := newTrial(filepath.Join(r.Dir, "trial"))
	if err != nil {
		return err
	}
	defer d.Close()
	s := &source{path: filepath.Join(r.Dir, sourceName), file: r.File}
	d.file.Store(s)
	certs := filepath.Join(r.Dir, "certs")
	f, err := serveFar(filepath.Join(r.Dir, "far"), certs, d, 0)
	if err != nil {
		return err
	}
	defer f.cancel()
	config, err := farTLS(certs).Config()
	if err != nil {
		return err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		return err
	}
	defer l.Close()
	go sendBare(l, s.path)
	if err := answer(in, out, hello{Hosted: f.url, Bare: l.Addr().String()}, nil); err != nil {
		return err
	}
	return f.stop()
}

// sendBare sends the file to whoever connects, one after the other.
func sendBare(l net.Listener, path string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if f, err := openHashed(path, 0); err == nil {
			_, _ = io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{f}, make([]byte, bareBuffer)) // a short copy is seen at the other end
			f.Close()
		}
		c.Close()
	}
}

// fetch is the manager's side of an export: it copies when it is asked.
func (r role) fetch(in io.Reader, out io.Writer) error {
	certs := filepath.Join(r.Dir, "certs")
	d, err := hosted.New(farConfig(r.Hosted, certs))
	if err != nil {
		return err
	}
	defer d.Close()
	op := providers.Operation{ID: exportID, Environment: exportID, Alias: "bench", Verb: events.VerbExport, Ref: exportID,
		Arguments: events.Arguments{CheckpointID: exportID, MaxBytes: r.File.ByteLength}, Writer: events.Writer{Instance: events.InstanceID(strings.Repeat("a", 26)), Epoch: 1}}
	ctx := context.Background()
	answered := d.Do(ctx, op)
	if answered.Kind != providers.Done || answered.Facts.File == nil {
		return fault.New(fault.Internal, "the export of the benchmark was %s: %v", answered.Kind, answered.Fault)
	}
	from := sagas.Source{Driver: d, Environment: exportID, Ref: exportID, File: *answered.Facts.File}
	config, err := bareTLS(certs)
	if err != nil {
		return err
	}
	return answer(in, out, hello{}, map[string]func() error{
		askFetch: func() error {
			return sagas.CopyFile(ctx, from, filepath.Join(r.Dir, "fetched"), func(int) bool { return true })
		},
		askBare: func() error { return fetchBare(r.Bare, config, filepath.Join(r.Dir, "bare"), r.File) },
	})
}

// fetchBare is the raw copy: read, hash, write, sync, compare.
func fetchBare(addr string, config *tls.Config, path string, file events.File) error {
	c, err := tls.Dial("tcp", addr, config)
	if err != nil {
		return err
	}
	defer c.Close()
	h := sha256.New()
	var n int64
	err = durable.Replace(path, 0o600, func(w io.Writer) error {
		n, err = io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(w, h)}, struct{ io.Reader }{c}, make([]byte, bareBuffer))
		return err
	})
	if err == nil && (n != file.ByteLength || hex.EncodeToString(h.Sum(nil)) != file.SHA256) {
		err = errors.New("the bare copy is not the file")
	}
	return err
}

// peakMemory is the most that this process held so far, in bytes: the mark of
// the kernel for the program itself, not what its parent had before.
func peakMemory() float64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(kib), " kB"), 64) // the kernel writes a number
			return n * 1024
		}
	}
	return 0
}

// clocked is how long f took, in microseconds.
func clocked(f func() error) (float64, error) {
	start := time.Now()
	err := f()
	return micros(time.Since(start)), err
}
