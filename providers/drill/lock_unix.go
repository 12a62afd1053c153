//go:build unix

package drill

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"berth/events/fault"
)

// lock takes the directory for this process; the kernel frees it when the
// process ends, however it ends.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unreadable(dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fault.New(fault.FailedPrecondition, "the drill directory %s is in use by another manager", dir)
		}
		return nil, unreadable(dir, err)
	}
	return f, nil
}
