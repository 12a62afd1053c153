// Package durable writes files that survive a power cut and locks directories
// between processes: the few calls that every room with files of its own
// needs, in the one order that is safe.
package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"berth/events/fault"
)

// unfinished is how the temporary files are named: hidden, beside the file
// that they are to replace.
const unfinished = ".part"

// WriteFile replaces path with data as one step: see Replace.
func WriteFile(path string, data []byte, perm os.FileMode) error {
	return Replace(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Replace replaces path as one step with what fill writes: a temporary file in
// the same directory, synced, renamed over, and the directory synced. After a
// crash at any point the old or the new content is there, whole. An error of
// fill is returned as it is, and the old content stays.
func Replace(path string, perm os.FileMode, fill func(io.Writer) error) error {
	if err := Put(path, perm, fill); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Put is Replace without the last step: after a power cut the old content may
// be back until SyncDir, or a later Replace in the directory, has returned.
func Put(path string, perm os.FileMode, fill func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+unfinished)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	err = fill(f)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// Sweep removes what crashes left of unfinished replacements in a directory.
// The caller is the only one who writes there.
func Sweep(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, ".*"+unfinished))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// MakeDir makes a directory that only its owner may enter, and syncs its
// parent. One that exists is fine.
func MakeDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Lock is an exclusive lock between processes; the kernel releases it when
// the holder ends, however it ends.
type Lock struct{ f *os.File }

// TryLock takes the lock file at path. One that another process holds is
// refused with conflict.
func TryLock(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.EINTR
	for errors.Is(err, syscall.EINTR) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fault.New(fault.Conflict, "%s is held by another process", path)
		}
		return nil, err
	}
	return &Lock{f}, nil
}

// Unlock releases the lock. Closing alone would not: a child that is being
// started at this moment holds the open file until it has become its program.
func (l *Lock) Unlock() error {
	return errors.Join(syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN), l.f.Close())
}
