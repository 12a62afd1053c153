package aggregates_test

import (
	"testing"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
)

// A snapshot from anywhere: restored, or refused so that the boundary is folded
// from its start.
func FuzzRestore(f *testing.F) {
	b, err := aggregates.Snapshot(aggregates.NewSeat(events.SeatBoundary("local", "web")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"format":2,"seat":{"Slot":{"Phase":"active"}}}`))
	f.Add([]byte(`{"format":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := aggregates.Restore(b)
		if err != nil {
			if c := fault.CodeOf(err); c != fault.BadRequest && c != fault.UnsupportedVersion {
				t.Errorf("refused with %v", err)
			}
			return
		}
		_ = s.Status()
		if again, err := aggregates.Snapshot(s); err == nil {
			if _, err := aggregates.Restore(again); err != nil {
				t.Errorf("what was restored can't be restored again: %v", err)
			}
		}
	})
}
