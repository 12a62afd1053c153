package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"berth/events"
	"berth/events/fault"
)

// An environment that is not as the journal has it is an alarm, but for one
// whose last operation a crash cut off: that may have moved it on.
func TestWhatACrashCutOffIsNoAlarm(t *testing.T) {
	accepted := events.ProviderAccepted{Operation: "operation-0000001", Verb: events.VerbRestore}
	answered := events.ProviderAnswered{Operation: "operation-0000001", Verb: events.VerbRestore, Facts: &events.Facts{Ref: "r"}}
	for name, c := range map[string]struct {
		log   []events.Event
		level string
	}{
		"answered":      {[]events.Event{accepted, answered}, "level=WARN"},
		"cut off":       {[]events.Event{accepted}, "level=INFO"},
		"cut off later": {[]events.Event{accepted, answered, events.ProviderAccepted{Operation: "operation-0000002", Verb: events.VerbRestore}}, "level=INFO"},
	} {
		var at standing
		for _, e := range c.log {
			at.apply(e)
		}
		var out bytes.Buffer
		s := &Server{logger: slog.New(slog.NewTextHandler(&out, nil))}
		s.notAdopted("01a22ed2-f6ef-7000-8512-373d71d21000", at, fault.New(fault.Conflict, "held by another process"))
		if !strings.Contains(out.String(), c.level) {
			t.Errorf("%s: %s", name, out.String())
		}
	}
}
