//go:build linux

package seatdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"berth/internal/durable"
)

// A home is replaced by two renames, and what was there is kept until the
// operation that replaces it has landed: whatever is cut off in between, the one
// home or the other is whole.
const (
	DirNext = "home.next" // put together, and not in its place yet
	DirOld  = "home.old"  // what was replaced
)

// TakeHome puts DirNext in the place of the home. Nothing may run in either.
func (d Dir) TakeHome() error {
	err := os.Rename(d.File(DirHome), d.File(DirOld))
	if err == nil {
		err = os.Rename(d.File(DirNext), d.File(DirHome))
	}
	return errors.Join(err, durable.SyncDir(d.Path))
}

// SettleHome ends a replacement: one that has landed drops the old home, another
// one puts it back. It can be repeated after a crash anywhere, and does nothing
// where nothing was replaced.
func (d Dir) SettleHome(landed bool) error {
	there, err := exists(d.File(DirOld))
	if err != nil {
		return err
	}
	if there && !landed {
		if err := d.putBack(); err != nil {
			return err
		}
	}
	return errors.Join(remove(d.File(DirNext)), remove(d.File(DirOld)))
}

// putBack begins with what took the home's place, which may not have come there.
func (d Dir) putBack() error {
	taken, err := exists(d.File(DirHome))
	if err == nil && taken {
		if err = remove(d.File(DirNext)); err == nil {
			err = os.Rename(d.File(DirHome), d.File(DirNext))
		}
	}
	if err == nil {
		err = os.Rename(d.File(DirOld), d.File(DirHome))
	}
	return errors.Join(err, durable.SyncDir(d.Path))
}

func exists(p string) (bool, error) {
	_, err := os.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Remove removes what is at a name inside, if there is anything.
func (d Dir) Remove(name string) error { return remove(d.File(name)) }

// remove removes a tree. Directories that a seat made unreadable to itself are
// opened first.
func remove(p string) error {
	if err := os.RemoveAll(p); err == nil {
		return nil
	}
	_ = filepath.WalkDir(p, func(q string, de os.DirEntry, err error) error {
		if de != nil && de.IsDir() {
			_ = os.Chmod(q, 0o700)
		}
		return nil
	})
	return os.RemoveAll(p)
}
