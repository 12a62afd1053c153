package steady

import (
	"testing"
	"time"
)

// Scenario 38: a wall clock that is set moves nothing and is told once.
func TestClockTellsASkewOnceAndGoesOn(t *testing.T) {
	c := New()
	if d, ok := c.skew(c.Now().Round(0).Add(SkewLimit / 2)); ok {
		t.Fatalf("a drift of half the limit was told: %s", d)
	}
	jump := 2 * time.Hour
	d, ok := c.skew(c.Now().Round(0).Add(jump))
	if !ok || (d-jump).Abs() > time.Minute {
		t.Fatalf("the jump was told as %s, %v", d, ok)
	}
	if d, ok := c.skew(c.Now().Round(0).Add(jump)); ok {
		t.Fatalf("the same jump was told twice: %s", d)
	}
	if d, ok := c.skew(c.Now().Round(0)); !ok || (d+jump).Abs() > time.Minute {
		t.Fatalf("the jump back was told as %s, %v", d, ok)
	}
}
