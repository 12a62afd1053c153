package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/providers/kept"
)

// Limits of captures and exports, which are kept on the manager's host.
const (
	MaxCheckpoints = 64 // of one environment
	MaxFiles       = 64
)

const (
	captures = "captures"
	exports  = "exports"
)

func (d *Driver) dropFiles(id events.EnvironmentID) error { return os.RemoveAll(d.s.files(id)) }

// checkpoint streams the seat's files into a capture, hashed on the way.
func (c *Call) checkpoint(ctx context.Context) (events.Facts, error) {
	id := c.Op.Arguments.CheckpointID
	if err := kept.CheckName(id); err != nil {
		return events.Facts{}, err
	}
	if _, err := os.Lstat(c.d.s.files(c.Op.Environment, captures, id+".json")); err == nil {
		return events.Facts{}, fault.New(fault.AlreadyExists, "environment %s already has checkpoint %s", c.Op.Environment, id)
	}
	if err := kept.CheckRoom(c.Op.Environment, c.d.s.files(c.Op.Environment, captures), "*.tar", MaxCheckpoints); err != nil {
		return events.Facts{}, err
	}
	cp := events.Checkpoint{ID: id, Kind: "cold", CapturedAt: millis(c.d.clock)}
	var err error
	cp.ByteLength, cp.SHA256, err = kept.Write(c.d.s.files(c.Op.Environment, captures, id+".tar"), kept.MaxCapture, func(w io.Writer) error {
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

// export copies a capture to a provider file or to a path of this host, and
// verifies it while it does (R33-R37).
func (c *Call) export(ctx context.Context) (events.Facts, error) {
	a, id := c.Op.Arguments, c.Op.Environment
	if err := kept.CheckBound(id, a); err != nil {
		return events.Facts{}, err
	}
	var cp events.Checkpoint
	raw, err := os.ReadFile(c.d.s.files(id, captures, filepath.Base(a.CheckpointID)+".json"))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !kept.Named(a.CheckpointID) {
		return events.Facts{}, kept.NoCheckpoint(id, a.CheckpointID)
	}
	if err == nil {
		err = json.Unmarshal(raw, &cp)
	}
	if err == nil {
		err = kept.CheckLength(a, cp)
	}
	if err != nil {
		return events.Facts{}, err
	}
	to, file := c.d.exported(id, string(c.Op.ID)), events.File{ID: string(c.Op.ID)}
	if a.HostPath != "" {
		to, file = a.HostPath, events.File{Path: a.HostPath}
		err = kept.CheckPath(a.HostPath)
	} else {
		err = kept.CheckRoom(id, c.d.s.files(id, exports), "*.tar", MaxFiles)
	}
	if err != nil {
		return events.Facts{}, err
	}
	file.ByteLength, file.SHA256, err = kept.Copy(ctx, to, c.d.s.files(id, captures, cp.ID+".tar"), cp)
	if err != nil {
		return events.Facts{}, err
	}
	f, err := c.d.observe(ctx, c.Record)
	f.File = &file
	return f, err
}

func (d *Driver) exported(id events.EnvironmentID, name string) string {
	return d.s.files(id, exports, name+".tar")
}

// deleteFile removes an exported file; the export itself never does (R41).
func (c *Call) deleteFile(ctx context.Context) (events.Facts, error) {
	id := c.Op.Arguments.FileID
	if !kept.Named(id) {
		return events.Facts{}, kept.NoFile(c.Op.Environment, id)
	}
	err := os.Remove(c.d.exported(c.Op.Environment, id))
	if errors.Is(err, fs.ErrNotExist) {
		return events.Facts{}, kept.NoFile(c.Op.Environment, id)
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
	return kept.Open(id, file, offset, func(name string) string { return d.exported(id, name) })
}
