package cli

import (
	"math"
	"strconv"
	"time"

	"berth/commands"
)

// parseTime reads RFC 3339, or a duration from now such as 2h; flag is named
// in a refusal.
func parseTime(flag, s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(d).UTC(), nil
	}
	return commands.ParseTime(flag, s)
}

// humanSize is a size for a person.
func humanSize(n int64) string {
	for _, u := range []struct {
		name string
		n    int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.n {
			return strconv.FormatFloat(math.Round(float64(n)/float64(u.n)*10)/10, 'f', -1, 64) + " " + u.name
		}
	}
	return strconv.FormatInt(n, 10) + " B"
}

// humanTime is a moment for a person, with its distance from now; the zero
// time is nothing.
func humanTime(t, now time.Time) string {
	d := t.Sub(now).Round(time.Second)
	switch {
	case t.IsZero():
		return ""
	case d > 0:
		return t.UTC().Format(time.RFC3339) + " (in " + shortDuration(d) + ")"
	}
	return t.UTC().Format(time.RFC3339) + " (" + shortDuration(-d) + " ago)"
}

// fromMillis is the moment of an epoch in milliseconds; nil is the zero time.
func fromMillis(ms *int64) time.Time {
	if ms == nil || *ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(*ms)
}

// shortDuration is a duration in at most two units.
func shortDuration(d time.Duration) string {
	n := func(x float64) string { return strconv.Itoa(int(x)) }
	switch {
	case d >= 48*time.Hour:
		return n(d.Hours()/24) + "d" + n(float64(int(d.Hours())%24)) + "h"
	case d >= time.Hour:
		return n(d.Hours()) + "h" + n(float64(int(d.Minutes())%60)) + "m"
	case d >= time.Minute:
		return n(d.Minutes()) + "m" + n(float64(int(d.Seconds())%60)) + "s"
	}
	return n(d.Seconds()) + "s"
}
