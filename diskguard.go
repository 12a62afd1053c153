package berth

import (
	"context"
	"sync"
	"syscall"
	"time"

	"berth/events/fault"
)

const diskGuardInterval = time.Second

// diskGuard refuses new work while the disk under the data directory is
// nearly full, so that what is in progress can still be recorded.
type diskGuard struct {
	path string
	min  int64
	free func(path string) (int64, error) // replaced in tests

	mu   sync.Mutex
	at   time.Time
	last error
}

func newDiskGuard(path string, min int64) *diskGuard {
	return &diskGuard{path: path, min: min, free: freeBytes}
}

// Check is nil, or resource-exhausted with what is free and what must be. It
// asks the kernel at most once a second.
func (g *diskGuard) Check() error {
	if g.min < 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.at.IsZero() && time.Since(g.at) < diskGuardInterval {
		return g.last
	}
	g.at, g.last = time.Now(), g.check()
	return g.last
}

func (g *diskGuard) check() error {
	free, err := g.free(g.path)
	if err != nil {
		return fault.New(fault.Unavailable, "the free space of %s can't be read: %s", g.path, err).WithOutcome(fault.NotExecuted)
	}
	if free < g.min {
		return fault.New(fault.ResourceExhausted, "the disk of %s is nearly full: %d MiB free, %d MiB must stay free", g.path, free>>20, g.min>>20).
			WithHint("free some space; what is running goes on, and nothing is lost")
	}
	return nil
}

// CheckDisk is nil, or resource-exhausted if new work would be refused for
// want of space below a directory, whoever holds it.
func CheckDisk(dir string) error { return newDiskGuard(dir, MinFreeBytes).check() }

func freeBytes(path string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// watchWrites ends what New does when the embedded server takes no more
// writes: a commit would be tried for minutes, and none can succeed.
func (m *Manager) watchWrites(ctx context.Context) {
	m.unwritable = m.srv.Unwritable()
	go func() {
		select {
		case <-m.unwritable:
			m.giveUp()
		case <-ctx.Done():
		}
	}()
}

// orUnwritable is err, or the reason for it where the disk was full in the
// middle of a write. A manager that can't record anything any more ends rather
// than to answer nothing: environments and their deadlines go on, and the next
// start takes them up.
func (m *Manager) orUnwritable(err error) error {
	select {
	case <-m.unwritable:
		return fault.New(fault.ResourceExhausted, "the log in %s met a write error and takes no more writes until the next start", m.dir.Path).
			WithHint("see that the disk has space and can be written, then start again; environments go on, and nothing is lost")
	default:
		return err
	}
}
