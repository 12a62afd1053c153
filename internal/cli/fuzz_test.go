package cli

import (
	"testing"
	"time"

	"berth/events/fault"
)

// A time from the command line: a moment, or a bad request.
func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"2h", "-2h", "2026-01-02T15:04:05Z", "", "9223372036854775807ns"} {
		f.Add(s)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		at, err := parseTime("--until", s, now)
		if err != nil && fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%q: %v", s, err)
		}
		_ = humanTime(at, now)
	})
}
