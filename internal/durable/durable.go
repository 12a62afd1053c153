// Package durable writes files that survive a power cut and locks directories
// between processes: the few calls that every room with files of its own
// needs, in the one order that is safe.
package durable

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"berth/events/fault"
)

// WriteFile replaces path with data as one step: a temporary file in the same
// directory, synced, renamed over, and the directory synced. After a crash at
// any point the old or the new content is there, whole.
func WriteFile(path string, data []byte, perm os.FileMode) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	tmp := f.Name()
	if err := fill(f, data, perm); err != nil {
		os.Remove(tmp)
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		os.Remove(tmp)
		return err
	}
	return SyncDir(dir)
}

func fill(f *os.File, data []byte, perm os.FileMode) error {
	_, err := f.Write(data)
	err = errors.Join(err, f.Chmod(perm))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
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
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fault.New(fault.Conflict, "%s is held by another process", path)
		}
		return nil, err
	}
	return &Lock{f}, nil
}

// Unlock releases the lock.
func (l *Lock) Unlock() error { return l.f.Close() }
