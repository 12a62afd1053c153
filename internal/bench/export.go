package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"berth/events"
)

const (
	exportID     = "0198c5a0-0000-7000-8000-000000000001" // of the environment, the file and the operations
	exportMemory = 64                                     // MiB that either process may hold
	bareBuffer   = 256 << 10                              // of the raw copy, at each end
	sourceName   = "source"
	mebibyte     = 1 << 20
)

// measureExport copies a file from a provider to a manager, each a process of
// its own, beside a bare TLS copy between the same two that hashes at both
// ends, writes and syncs.
func measureExport(ctx context.Context, o Options) ([]Row, error) {
	certs := filepath.Join(o.Dir, "certs")
	if err := certificates(certs); err != nil {
		return nil, err
	}
	o.Progress(fmt.Sprintf("export: a file of %d MiB", o.Export/mebibyte))
	sum, err := makeSource(filepath.Join(o.Dir, sourceName), o.Export)
	if err != nil {
		return nil, err
	}
	r := role{Kind: "provider", Dir: o.Dir, File: events.File{ID: exportID, ByteLength: o.Export, SHA256: sum}}
	p, err := begin(ctx, r)
	if err != nil {
		return nil, err
	}
	defer p.kill()
	r.Kind, r.Hosted, r.Bare = "fetch", p.Hosted, p.Bare
	m, err := begin(ctx, r)
	if err != nil {
		return nil, err
	}
	defer m.kill()
	// Ours first, for its memory; the raw side holds less.
	if _, err := m.ask(askFetch); err != nil {
		return nil, err
	}
	var held []float64
	for _, c := range []*child{m, p} {
		v, err := c.ask(askPeak)
		if err != nil {
			return nil, err
		}
		held = append(held, v/mebibyte)
	}
	raw, ours, err := fetches(m, o.Rounds)
	if err != nil {
		return nil, err
	}
	rate := func(d time.Duration) float64 { return float64(o.Export) / mebibyte / d.Seconds() }
	rows := []Row{
		beside("export-rate", rate(ours), "MiB/s", rate(raw)).atLeast(0.8).noted("%d MiB over HTTPS on loopback, beside a bare TLS copy that hashes at both ends, writes and syncs", o.Export/mebibyte),
		alone("export-memory-manager", held[0], "MiB").atMost(exportMemory).noted("the most that the process held, program included"),
		alone("export-memory-provider", held[1], "MiB").atMost(exportMemory).noted("the most that the process held, program included"),
	}
	return rows, errors.Join(m.stop(), p.stop())
}

// fetches has the manager's process copy by both ways in turn.
func fetches(m *child, rounds int) (raw, ours time.Duration, err error) {
	var rs, os []time.Duration
	for n := range rounds {
		for i := range 2 {
			way, to := askFetch, &os
			if (i+n)%2 == 0 {
				way, to = askBare, &rs
			}
			v, err := m.ask(way)
			if err != nil {
				return 0, 0, err
			}
			*to = append(*to, time.Duration(v*float64(time.Microsecond)))
		}
	}
	return median(rs), median(os), nil
}

// makeSource writes a file that no compression would help with, and tells its
// digest. The bytes follow from their place.
func makeSource(path string, size int64) (sum string, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	block := make([]byte, mebibyte)
	for i := 0; i < len(block); i += sha256.Size {
		part := sha256.Sum256(fmt.Append(nil, i))
		copy(block[i:], part[:])
	}
	h := sha256.New()
	w := io.MultiWriter(f, h)
	for left := size; left > 0 && err == nil; left -= int64(len(block)) {
		copy(block, fmt.Append(nil, left))
		_, err = w.Write(block[:min(left, int64(len(block)))])
	}
	if err == nil {
		err = f.Sync()
	}
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}

// hashed is a file that is hashed while it is read.
type hashed struct {
	*os.File
	h hash.Hash
}

func openHashed(path string, offset int64) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return hashed{f, sha256.New()}, nil
}

// Read implements io.Reader.
func (r hashed) Read(p []byte) (int, error) {
	n, err := r.File.Read(p)
	r.h.Write(p[:n])
	return n, err
}
