package bench

import (
	"slices"
	"time"
)

// median of some durations; zero of none. It reorders them.
func median(ds []time.Duration) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	slices.Sort(ds)
	if n := len(ds); n%2 == 0 {
		return (ds[n/2-1] + ds[n/2]) / 2
	}
	return ds[len(ds)/2]
}

// alternate times both sides in turn, and tells the medians. The side that
// begins changes with every round, so that neither always finds the other's
// dirt in the caches.
func alternate(rounds int, raw, ours func() error) (r, o time.Duration, err error) {
	var rs, os []time.Duration
	for n := range rounds {
		sides := []func() error{
			func() error { return timed(&rs, raw) },
			func() error { return timed(&os, ours) },
		}
		for i := range sides {
			if err := sides[(i+n)%2](); err != nil {
				return 0, 0, err
			}
		}
	}
	return median(rs), median(os), nil
}

// timed appends how long f took.
func timed(to *[]time.Duration, f func() error) error {
	start := time.Now()
	err := f()
	*to = append(*to, time.Since(start))
	return err
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// percentile is that of sorted durations, the nearest one; zero of none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

// middle is the median of some figures; zero of none. It reorders them.
func middle(vs []float64) float64 {
	if len(vs) == 0 {
		return 0
	}
	slices.Sort(vs)
	return (vs[(len(vs)-1)/2] + vs[len(vs)/2]) / 2
}
