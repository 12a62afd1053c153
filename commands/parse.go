package commands

import (
	"strconv"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
)

var units = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// ParseSize reads a size such as 128MiB, 1GB or 4096 (bytes): a whole number
// and a unit. Refused with bad-request that names the field: anything else,
// and what is not in [least, most].
func ParseSize(field, s string, least, most int64) (int64, error) {
	number, unit := s, int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			number, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || number[0] < '0' || number[0] > '9' || n > (1<<62)/unit {
		return 0, bad(field, "%q is not a size such as 128MiB", clip(s))
	}
	if n*unit < least || n*unit > most {
		return 0, bad(field, "%s is not between %d and %d bytes", clip(s), least, most)
	}
	return n * unit, nil
}

// ParseDuration reads a Go duration such as 90s or 1h30m, in [least, most].
func ParseDuration(field, s string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || len(s) > 64 {
		return 0, bad(field, "%q is not a duration such as 30m or 1h30m", clip(s))
	}
	if d < least || d > most {
		return 0, bad(field, "%s is not between %s and %s", d, least, most)
	}
	return d, nil
}

// ParseTime reads an RFC 3339 time.
func ParseTime(field, s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || len(s) > 64 {
		return time.Time{}, bad(field, "%q is not a time such as 2026-01-02T15:04:05Z", clip(s))
	}
	return events.MillisUTC(t), nil
}

// whole is a size that must be a multiple of unit, in units.
func whole(field, s string, unit, most int64) (int64, error) {
	n, err := ParseSize(field, s, unit, most)
	if err == nil && n%unit != 0 {
		err = bad(field, "%s is not a whole number of units of %d bytes", clip(s), unit)
	}
	return n / unit, err
}

func parseCPUs(field, s string) (events.Quantity, error) {
	q, err := events.ParseQuantity(s)
	switch {
	case err != nil:
		return q, bad(field, "%s", fault.From(err).Message)
	case q.IsZero() || q.Cmp(events.MustQuantity(MaxCPUs)) > 0:
		return q, bad(field, "%s is not more than 0 and at most %s", q, MaxCPUs)
	}
	return q, nil
}

// named gives a refusal of a parser the name of the field.
func named(field string, err error) error {
	if err == nil {
		return nil
	}
	return bad(field, "%s", events.Scrub(fault.From(err).Message))
}

// bad is a refusal that names the field, in the message and as a fact.
func bad(field, format string, args ...any) *fault.Error {
	return fault.New(fault.BadRequest, field+": "+format, args...).WithDetail(DetailField, "field", field)
}

// DetailField is the kind of detail that names the field of a bad request.
const DetailField = "berth.field"

func clip(s string) string {
	if s = events.Scrub(s); len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

func clipLimit[T int | int64](field string, n, most T) error {
	if n < 0 || n > most {
		return bad(field, "%d is not between 0 and %d", n, most)
	}
	return nil
}
