package projections_test

import (
	"fmt"
	"testing"
	"time"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
	"berth/projections/sample"
)

// Decision 5: a command id of a name's earlier lifecycle is answered from what
// is remembered, and from MaxRecent freed names on with expired; it is never
// taken for new.
func TestCommandsOutliveALifecycle(t *testing.T) {
	v, seq, last := projections.NewViews("test"), uint64(0), map[events.Boundary]uint64{}
	at := sample.Start
	ids := map[events.Alias]events.CommandID{}
	apply := func(a events.Alias, m events.Meta, es ...events.Event) {
		seq++
		at = at.Add(time.Second)
		m.Time = at
		b := events.SeatBoundary("local", a)
		v.Apply(events.Record{Sequence: seq, Previous: last[b], Boundary: b, Meta: m, Events: es})
		last[b] = seq
	}
	claim := func(a events.Alias) {
		uid := events.UID(fmt.Sprintf("uid%d", seq))
		cmd := events.CommandID(fmt.Sprintf("%012x-7000-8000-000000000000", at.UnixMilli()))
		cmd = cmd[:8] + "-" + cmd[8:]
		if _, ok := ids[a]; !ok {
			ids[a] = cmd
		}
		apply(a, events.Meta{Command: cmd, Fingerprint: "f"}, events.SlotClaimed{UID: uid, Environment: events.EnvironmentID(uid), Holder: "i"})
	}
	end := func(a events.Alias) {
		s, _ := v.Seat("local", a)
		apply(a, events.Meta{}, events.SlotTerminalizing{UID: s.Slot.UID, Reason: "retired"})
		apply(a, events.Meta{}, events.SlotCleaned{UID: s.Slot.UID}, events.SlotRetired{UID: s.Slot.UID})
	}
	seat := func(a events.Alias) aggregates.Seat {
		s, ok := v.Seat("local", a)
		if !ok {
			t.Fatalf("%s is not held", a)
		}
		return s
	}
	for _, a := range []events.Alias{"old", "young"} {
		claim(a)
		end(a)
		for i := range projections.MaxRecent - 1 {
			if a == "old" {
				name := events.Alias(fmt.Sprintf("n%d", i))
				claim(name)
				end(name)
			}
		}
	}
	if v.Held() != 0 || v.Ended() != projections.MaxRecent+1 {
		t.Fatalf("%d held, %d ended", v.Held(), v.Ended())
	}
	claim("old")
	claim("young")
	if _, found, err := seat("young").Commands.Seen(ids["young"], "f"); err != nil || !found {
		t.Errorf("the young one: %v %v", found, err)
	}
	if _, _, err := seat("young").Commands.Seen(ids["young"], "g"); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("the young one with another request: %v", err)
	}
	if _, _, err := seat("old").Commands.Seen(ids["old"], "f"); fault.CodeOf(err) != fault.Expired {
		t.Errorf("the old one: %v", err)
	}
}

// A member of an incomplete atomic publish changes nothing but where the next
// append has to stand (decision 3).
func TestTornRecordChangesNothing(t *testing.T) {
	at := events.SeatBoundary("local", "web")
	v := projections.NewViews("test")
	v.Apply(events.Record{Sequence: 1, Boundary: at, Events: []events.Event{events.SlotClaimed{UID: "u", Environment: "e", Holder: "i"}}})
	torn := events.Record{Sequence: 2, Previous: 1, Boundary: at, Torn: true, Meta: events.Meta{Command: "c", Fingerprint: "f"}}
	v.Apply(torn)
	v.Apply(events.Record{Sequence: 3, Boundary: events.GoalBoundary(events.Caller{Owner: "o", Actor: "a", UID: "u"}, "g"), Torn: true})
	s, ok := v.Seat("local", "web")
	if _, found, err := s.Commands.Seen("c", "f"); !ok || s.Sequence != 2 || found || err != nil {
		t.Errorf("the seat stands at %d, its command is found %v %v", s.Sequence, found, err)
	}
	if len(v.Goals(true)) != 0 || v.Sequence() != 3 || len(v.Quarantined()) != 0 {
		t.Errorf("goals %v at %d", v.Goals(true), v.Sequence())
	}
	if l := projections.Lines(torn); len(l) != 1 || l[0].Sequence != 2 {
		t.Errorf("its lines are %+v", l)
	}
}
