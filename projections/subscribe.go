package projections

import (
	"sync"

	"berth/events"
	"berth/events/fault"
)

// Limits of subscriptions.
const (
	MaxSubscriptions = 1024
	MaxBuffer        = 16384 // records that wait for one subscriber
)

// Subscription gives the records that were folded after it began. A
// subscriber that does not keep up loses it: C is closed and Lost tells the
// last sequence that was given, from which the log can be followed.
type Subscription struct {
	// C gives records in order. It is closed by Close and by a loss.
	C <-chan events.Record

	of     *subscribers
	c      chan events.Record
	wants  func(events.Record) bool
	last   uint64
	lost   bool
	closed bool
}

type subscribers struct {
	mu  sync.Mutex
	all map[*Subscription]struct{}
}

// Subscribe begins a subscription with room for buffer records (1 to
// MaxBuffer) and a filter (nil: everything), which must be quick. A read that
// begins after Subscribe misses no record between its answer and C, and may
// find records of its answer there again. It is
// refused with resource-exhausted when there are MaxSubscriptions.
func (r *Runner) Subscribe(buffer int, wants func(events.Record) bool) (*Subscription, error) {
	buffer = min(max(buffer, 1), MaxBuffer)
	s := &Subscription{of: &r.subscribers, c: make(chan events.Record, buffer), wants: wants}
	s.C = s.c
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if len(s.of.all) >= MaxSubscriptions {
		return nil, fault.New(fault.ResourceExhausted, "%d subscriptions are open, which is the limit; close one", MaxSubscriptions)
	}
	s.of.all[s] = struct{}{}
	return s, nil
}

// Close ends the subscription; it may be called more than once.
func (s *Subscription) Close() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.end(s)
}

// Lost says that the subscriber fell behind, and the sequence of the last
// record that was put into C, zero if none was.
func (s *Subscription) Lost() (last uint64, lost bool) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.last, s.lost
}

func (s *subscribers) end(one *Subscription) {
	if !one.closed {
		one.closed = true
		delete(s.all, one)
		close(one.c)
	}
}

// publish never waits: one slow reader must not hold up the fold.
func (s *subscribers) publish(r events.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.all {
		if one.wants != nil && !one.wants(r) {
			continue
		}
		select {
		case one.c <- r:
			one.last = r.Sequence
		default:
			one.lost = true
			s.end(one)
		}
	}
}
