package plane

import (
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/events/fault"
)

// R29: an extension of which only the first steps were done says how far it
// came, and that something was executed.
func TestAnExtensionThatStoppedHalfwaySaysSo(t *testing.T) {
	until := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	seat := aggregates.Seat{Alias: "web"}
	seat.Environment.Deadline = &until
	first := environment.Operation{ID: "first", Verb: "extend", Phase: environment.Confirmed}
	seat.Environment.Done = []*environment.Operation{&first}
	why := fault.New(fault.ResourceExhausted, "no more").WithOutcome(fault.NotExecuted)
	for _, c := range []struct {
		last environment.Operation
		want fault.Outcome
	}{
		{environment.Operation{ID: "second", Phase: environment.Excluded}, fault.Executed},
		{environment.Operation{ID: "second", Phase: environment.Refused, Fault: why}, fault.Executed},
		{environment.Operation{ID: "first", Phase: environment.Refused, Fault: why}, fault.NotExecuted},
		{first, ""},
	} {
		f := halfway(seat, "first", c.last)
		if (f == nil) != (c.want == "") || f != nil && f.Outcome != c.want {
			t.Errorf("%s %s: %v", c.last.ID, c.last.Phase, f)
		}
	}
}
