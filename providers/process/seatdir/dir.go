//go:build linux

package seatdir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/providers/process/cgroup"
)

// The names inside a seat's directory.
const (
	FileLock     = "lock"          // flock: whoever mutates
	FileLife     = "life"          // flock: the living custodian
	FileJournal  = "journal.json"  // operations, plan, phase
	FileRecent   = "recent.json"   // operations since, of this boot only
	FileStart    = "start.json"    // what the custodian is to start
	FileIdent    = "ident.json"    // who the custodian and the seat are
	FileDeadline = "deadline.json" // the absolute end, read by the custodian
	FileExit     = "exit.json"     // the exit proof
	FileReady    = "ready.json"    // the sign by which the seat showed that it is ready
	FileSocket   = "c.sock"        // the custodian's control socket
	FileStderr   = "custodian.log"
	DirOutput    = "output"
	DirHome      = "home"
	DirRoot      = "root" // mount point, in the seat's own mount namespace only
	DirMaterial  = "material"
	DirCaptures  = "checkpoints"
	DirExports   = "exports"
)

// maxFile bounds every JSON file that is read back.
const maxFile = 8 << 20

// Dir is the directory of one environment.
type Dir struct {
	Path string
	ID   events.EnvironmentID
}

// In is the directory of id below the seats directory.
func In(seats string, id events.EnvironmentID) Dir {
	return Dir{Path: filepath.Join(seats, string(id)), ID: id}
}

// File is the path of a name inside.
func (d Dir) File(name ...string) string {
	return filepath.Join(append([]string{d.Path}, name...)...)
}

// Make makes the directory, durably. Others may pass through it (a seat in a
// user namespace is another user) and may not list it; every file is 0600.
func (d Dir) Make() error {
	if err := os.Mkdir(d.Path, 0o711); err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil
		}
		return err
	}
	return durable.SyncDir(filepath.Dir(d.Path))
}

// Exists says that the directory is there.
func (d Dir) Exists() (bool, error) {
	_, err := os.Stat(d.Path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Lock takes the directory's lock, waiting until ctx ends. The kernel frees it
// when its holder dies.
func (d Dir) Lock(ctx context.Context) (unlock func(), err error) {
	return flock(ctx, d.File(FileLock), true)
}

// HoldLife marks the caller as the living custodian until release or death;
// false says that there is another one.
func (d Dir) HoldLife() (release func(), held bool, err error) {
	release, err = flock(context.Background(), d.File(FileLife), false)
	if fault.CodeOf(err) == fault.Conflict {
		return nil, false, nil
	}
	return release, err == nil, err
}

// TakeLife is HoldLife after the holder before was proved to have ended: what
// the kernel takes back of it a moment later is waited for, until ctx ends.
func (d Dir) TakeLife(ctx context.Context) (release func(), held bool, err error) {
	release, err = flock(ctx, d.File(FileLife), true)
	return release, err == nil, err
}

func flock(ctx context.Context, path string, wait bool) (func(), error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		l, err := durable.TryLock(path)
		if err == nil {
			return func() { _ = l.Unlock() }, nil
		}
		if !wait || fault.CodeOf(err) != fault.Conflict {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// WriteJSON replaces a file by v: written beside, synced, renamed, and the
// directory synced, so that a reader after a power cut sees the old or the new.
func (d Dir) WriteJSON(name string, v any) error {
	if err := d.WriteBefore(name, v); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(d.File(name)))
}

// WriteBefore is WriteJSON for a file that only counts together with the
// journal that is saved next: that write syncs the directory for both.
func (d Dir) WriteBefore(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return durable.Put(d.File(name), 0o600, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// ReadJSON reads a file into v; os.ErrNotExist when there is none.
func (d Dir) ReadJSON(name string, v any) error {
	f, err := os.Open(d.File(name))
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return err
	}
	if len(b) > maxFile {
		return fmt.Errorf("%s is longer than %d bytes", name, maxFile)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s is damaged: %w", name, err)
	}
	return nil
}

// GroupName begins the names of the environment's control groups.
func (d Dir) GroupName() string { return "berth-" + string(d.ID) }

// SweepGroups removes the environment's control groups, and ends what is in
// them, but for keep: also those of starts that were cut off.
func (d Dir) SweepGroups(keep string, patience time.Duration) error {
	var s Start
	var id Ident
	var errs []error
	for name, v := range map[string]any{FileStart: &s, FileIdent: &id} {
		if err := d.ReadJSON(name, v); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, g := range []cgroup.Group{s.Group, id.Group} {
		if g.Name != "" {
			errs = append(errs, g.Layout.Sweep(d.GroupName(), keep, patience))
		}
	}
	return errors.Join(errs...)
}

// Bury removes everything but the tombstone. It can be repeated after a crash
// anywhere.
func (d Dir) Bury() error {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if n := e.Name(); n == FileJournal || n == FileLock {
			continue
		}
		if err := remove(d.File(e.Name())); err != nil {
			return err
		}
	}
	return durable.SyncDir(d.Path)
}
