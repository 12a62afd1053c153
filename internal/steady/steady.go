// Package steady is time that setting the wall clock does not move.
package steady

import (
	"sync"
	"time"
)

// SkewLimit is how far the wall clock may drift from a Clock's time before it
// is told as a skew.
const SkewLimit = 5 * time.Second

// Clock is one process's time: the wall clock at the start, carried on by the
// monotonic one. A wall clock that is set meanwhile moves no
// deadline (scenario 38).
type Clock struct {
	base time.Time

	mu   sync.Mutex
	told time.Duration
}

// New starts a clock now.
func New() *Clock { return &Clock{base: time.Now()} }

// Now is the time.
func (c *Clock) Now() time.Time { return c.base.Add(time.Since(c.base)) }

// Skew is how much the wall clock was moved since the last skew that was
// told; it is told once, when it exceeds SkewLimit.
func (c *Clock) Skew() (time.Duration, bool) { return c.skew(time.Now().Round(0)) }

func (c *Clock) skew(wall time.Time) (time.Duration, bool) {
	off := wall.Sub(c.Now().Round(0))
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := off - c.told; d.Abs() >= SkewLimit {
		c.told = off
		return d, true
	}
	return 0, false
}
