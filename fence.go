package berth

import (
	"context"
	"sync"
	"time"

	"berth/events"
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
	rs, err := f.m.log.Load(ctx, events.InstanceBoundary(f.m.writer.Instance), 0)
	if err != nil {
		return fault.New(fault.Unavailable, "whether this manager's epoch is current can't be read: %s", err).WithOutcome(fault.NotExecuted)
	}
	for _, r := range rs {
		for _, e := range r.Events {
			if reg, ok := e.(events.InstanceRegistered); ok && reg.Epoch > f.m.writer.Epoch {
				f.lost = fault.New(fault.Expired, "another process registered instance %s with epoch %d; this one has %d and does nothing more", reg.Instance, reg.Epoch, f.m.writer.Epoch)
			}
		}
	}
	f.read = begun
	return f.lost
}
