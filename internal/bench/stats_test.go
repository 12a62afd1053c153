package bench

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []time.Duration
		want time.Duration
	}{{nil, 0}, {[]time.Duration{3}, 3}, {[]time.Duration{9, 1, 5}, 5}, {[]time.Duration{4, 2}, 3}, {[]time.Duration{100, 1, 2, 3}, 2}} {
		if got := median(slices.Clone(c.in)); got != c.want {
			t.Errorf("median of %v is %d, not %d", c.in, got, c.want)
		}
	}
}

// Decision 26: both sides take turns, and each begins every other time.
func TestAlternate(t *testing.T) {
	var order strings.Builder
	side := func(s string) func() error { return func() error { order.WriteString(s); return nil } }
	if _, _, err := alternate(3, side("r"), side("o")); err != nil || order.String() != "roorro" {
		t.Errorf("%s, %v", order.String(), err)
	}
	broken := errors.New("broken")
	if _, _, err := alternate(3, side("r"), func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("the error is lost: %v", err)
	}
}

func TestBars(t *testing.T) {
	for _, c := range []struct {
		row  Row
		bar  string
		ok   bool
		what string
	}{
		{beside("a", 13, "us", 10).atMost(1.3), "ratio <= 1.3", true, "at the edge"},
		{beside("a", 13.1, "us", 10).atMost(1.3), "ratio <= 1.3", false, "above"},
		{beside("a", 4, "events/s", 1).atLeast(4), "ratio >= 4", true, "at the edge"},
		{beside("a", 3.99, "events/s", 1).atLeast(4), "ratio >= 4", false, "below"},
		{alone("a", 400, "bytes").atMost(400), "value <= 400", true, "a value at the edge"},
		{alone("a", 401, "bytes").atMost(400), "value <= 400", false, "a value above"},
	} {
		if c.row.Bar != c.bar || *c.row.OK != c.ok {
			t.Errorf("%s: %s, %t", c.what, c.row.Bar, *c.row.OK)
		}
	}
}

func TestRound(t *testing.T) {
	for in, want := range map[float64]float64{0: 0, 1234567: 1235000, 0.00123456: 0.001235, -98765: -98770, 12: 12} {
		if got := round(in); got != want {
			t.Errorf("%g becomes %g, not %g", in, got, want)
		}
	}
}
