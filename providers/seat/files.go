//go:build linux

package seat

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/kept"
	"berth/providers/process/seatdir"
)

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
	if err := kept.CheckName(id); err != nil {
		return events.Facts{}, err
	}
	if _, err := os.Lstat(c.Dir.File(keptName(c.Op))); err == nil {
		return events.Facts{}, fault.New(fault.AlreadyExists, "environment %s already has checkpoint %s", c.Op.Environment, id)
	}
	if err := kept.CheckRoom(c.Op.Environment, c.Dir.File(seatdir.DirCaptures), "*.json", c.d.kind.MaxCheckpoints); err != nil {
		return events.Facts{}, err
	}
	return c.d.kind.Checkpoint(ctx, c, id)
}

// LoadKept reads the manifest of checkpoint id of an environment into k, a
// *seatdir.Kept or what embeds one; not-found if there is no such checkpoint.
func LoadKept(dir seatdir.Dir, id string, k any) error {
	err := os.ErrNotExist
	if kept.Named(id) {
		err = dir.ReadJSON(seatdir.ManifestFile(id), k)
	}
	if errors.Is(err, os.ErrNotExist) {
		return kept.NoCheckpoint(dir.ID, id)
	}
	return err
}

// export copies a checkpoint to a file of the provider or to a path of this
// host, and verifies it while it does (R33-R37).
func (c *Call) export(ctx context.Context) (events.Facts, error) {
	a, id := c.Op.Arguments, c.Op.Environment
	if err := kept.CheckBound(id, a); err != nil {
		return events.Facts{}, err
	}
	var k seatdir.Kept
	if err := LoadKept(c.Dir, a.CheckpointID, &k); err != nil {
		return events.Facts{}, err
	}
	if err := kept.CheckLength(a, *k.Checkpoint); err != nil {
		return events.Facts{}, err
	}
	if err := kept.CheckRoom(id, c.Dir.File(seatdir.DirExports), "*.json", c.d.kind.MaxFiles); err != nil {
		return events.Facts{}, err
	}
	to, file := c.exported(string(c.Op.ID)), events.File{ID: string(c.Op.ID)}
	if a.HostPath != "" {
		if err := kept.CheckPath(a.HostPath); err != nil {
			return events.Facts{}, err
		}
		to, file = a.HostPath, events.File{Path: a.HostPath}
	}
	n, sum, err := kept.Copy(ctx, to, c.Captured(a.CheckpointID), *k.Checkpoint)
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

// deleteFile removes an exported file; the export itself never does (R41).
func (c *Call) deleteFile(ctx context.Context) (events.Facts, error) {
	id := c.Op.Arguments.FileID
	p := c.exported(id)
	if _, err := os.Lstat(p); !kept.Named(id) || err != nil {
		return events.Facts{}, kept.NoFile(c.Op.Environment, id)
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
	return kept.Open(id, file, offset, c.exported)
}
