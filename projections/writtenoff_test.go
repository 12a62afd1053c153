package projections

import (
	"testing"

	"berth/events"
)

// A written-off environment whose creation is proved never to have happened
// is as much at its end as one that is proved gone (decision 13).
func TestWrittenOffAndNeverMadeIsOver(t *testing.T) {
	id := events.EnvironmentID("01890a5d-ac96-774b-bcce-b302099a8057")
	at := events.EnvironmentBoundary(id)
	v := NewViews("sim")
	v.Apply(events.Record{Sequence: 1, Boundary: at, Events: []events.Event{events.EnvironmentInherited{Environment: id, From: events.SeatBoundary("local", "a"), UID: "abcdefghijklmnopqrstuvwxyz",
		Plan: events.Plan{Provider: "drill"}, Open: events.OperationDispatched{Environment: id, Operation: "operation-00000001", Verb: events.VerbReserve}}}})
	if n := len(v.WrittenOff()); n != 1 {
		t.Fatalf("%d written-off environments", n)
	}
	v.Apply(events.Record{Sequence: 2, Previous: 1, Boundary: at, Events: []events.Event{events.OperationExcluded{Environment: id, Operation: "operation-00000001", Evidence: "fenced"}}})
	if left := v.WrittenOff(); len(left) != 0 {
		t.Errorf("still listed: %+v", left)
	}
}
