package berth

import (
	"context"
	"sync"
	"time"

	"berth/events/fault"
)

// fence says whether this process's epoch is still the current one. With an
// embedded server the lock on the data directory already proves it; with an
// external one the instance's boundary is read at most every leaseFor.
type fence struct {
	m *Manager

	mu   sync.Mutex
	read time.Time
	lost error
}

// Check is nil while the epoch is current, and refuses with expired for ever
// after a newer one was seen (law 3).
func (f *fence) Check(ctx context.Context) error {
	if f.m.srv != nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost != nil || time.Since(f.read) < leaseFor {
		return f.lost
	}
	begun := time.Now()
	now, _, err := f.m.shelf.Instance(ctx, f.m.writer.Instance) // only what came since the last look is read
	if err != nil {
		return fault.New(fault.Unavailable, "whether this manager's epoch is current can't be read: %s", err).WithOutcome(fault.NotExecuted)
	}
	if now.Epoch > f.m.writer.Epoch {
		f.lost = fault.New(fault.Expired, "another process registered instance %s with epoch %d; this one has %d and does nothing more", now.ID, now.Epoch, f.m.writer.Epoch)
	}
	f.read = begun
	return f.lost
}
