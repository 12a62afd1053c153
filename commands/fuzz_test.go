package commands

import (
	"testing"
	"time"

	"berth/events"
	"berth/events/fault"
)

// Sizes, durations, times and quantities of a request: read within their
// limits, or refused as a bad request.
func FuzzParseValues(f *testing.F) {
	for _, s := range []string{"", "128MiB", "-1B", "9223372036854775807TiB", "1h30m", "2562047h", "2026-01-02T15:04:05Z", "9999-12-31T23:59:59.999Z", "0.25", "1e400", "KiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		refused := func(what string, err error) bool {
			if err != nil && fault.CodeOf(err) != fault.BadRequest {
				t.Errorf("%s %q: %v", what, s, err)
			}
			return err != nil
		}
		if n, err := ParseSize("f", s, 1, 1<<40); !refused("size", err) && (n < 1 || n > 1<<40) {
			t.Errorf("size %q is %d", s, n)
		}
		if n, err := whole("f", s, 1<<20, 1<<40); !refused("size in MiB", err) && (n < 1 || n > 1<<20) {
			t.Errorf("size %q is %d MiB", s, n)
		}
		if d, err := ParseDuration("f", s, time.Second, time.Hour); !refused("duration", err) && (d < time.Second || d > time.Hour) {
			t.Errorf("duration %q is %s", s, d)
		}
		if _, err := ParseTime("f", s); err != nil {
			refused("time", err)
		}
		if q, err := parseCPUs("f", s); !refused("cpus", err) && (q.IsZero() || q.Cmp(events.MustQuantity(MaxCPUs)) > 0) {
			t.Errorf("cpus %q is %s", s, q)
		}
	})
}

// A subject that is read is the subject that its address has.
func FuzzParseAddress(f *testing.F) {
	f.Add(Prefix("main") + "any.spawn.owner.local.local.me.abcdefghijklmnopqrstuvwxyz")
	f.Add(Prefix("main") + "any.ls.none._.local.me.abcdefghijklmnopqrstuvwxyz")
	f.Add(Prefix("main") + "*.>.none._.a.b.c")
	f.Fuzz(func(t *testing.T, subject string) {
		a, err := ParseAddress("main", subject)
		if err != nil {
			if fault.CodeOf(err) != fault.BadRequest {
				t.Errorf("%q: %v", subject, err)
			}
			return
		}
		if got := a.Subject("main"); got != subject {
			t.Errorf("%q is read as %q", subject, got)
		}
	})
}
