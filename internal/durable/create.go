package durable

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// Create writes a new file of a name that nothing refers to yet, in a directory
// that only its owner may enter and that is made if it is missing. When it
// returns, the file and the names that lead to it survive a power cut. It is
// for what is referred to only after that: a crash before may leave a part of
// it, which nobody reads. So nothing has to be renamed, and the three syncs run
// side by side, which a file system with a journal answers with one write.
// A file that exists is refused.
func Create(dir, name string, data []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = together(f.Sync, func() error { return SyncDir(dir) }, func() error { return SyncDir(filepath.Dir(dir)) })
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
	}
	return err
}

func together(fs ...func() error) error {
	errs := make([]error, len(fs))
	var wg sync.WaitGroup
	for i, f := range fs {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
