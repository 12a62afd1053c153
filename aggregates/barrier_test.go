package aggregates_test

import (
	"strings"
	"testing"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/head"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/fault"
)

// Seeds, manager lifecycle: a spawn that meets a lifecycle barrier is told which
// operation holds it, where head and gate stand, and what can be done; in the
// details and in the message.
func TestABarrierSaysWhatHoldsTheName(t *testing.T) {
	held := func(phase slot.Phase, h head.State, op *environment.Operation) aggregates.Seat {
		s := aggregates.Seat{Owner: "local", Alias: "demo", Head: h}
		s.Slot = slot.State{Phase: phase, UID: uid1, Holder: inst}
		s.Environment = environment.State{ID: env1, UID: uid1, Operation: op}
		return s
	}
	frozen := func(kind string, op events.OperationID) head.Gate {
		return head.Gate{Phase: head.GateFrozen, Kind: kind, Operation: op}
	}
	lost := &environment.Operation{ID: "op-0000000000000001", Verb: events.VerbDestroy, Phase: environment.Uncertain}
	for name, c := range map[string]struct {
		seat                  aggregates.Seat
		operation, id, remedy string
		gate, head, hint      string
	}{
		"a retirement":               {held(slot.Terminalizing, head.State{Phase: head.Retiring, UID: uid1, Gate: frozen("retirement", "retire-x")}, nil), "retirement", "retire-x", "retry", "frozen", "retiring", "--wait"},
		"a retirement without proof": {held(slot.Terminalizing, head.State{Phase: head.Retiring, UID: uid1, Gate: frozen("retirement", "retire-x")}, lost), "retirement", "retire-x", "reconcile", "frozen", "retiring", "--explain"},
		"an activation":              {held(slot.Provisioning, head.State{Phase: head.Active, UID: uid1, Gate: frozen("activation", "activate-x")}, nil), "activation", "activate-x", "retry", "frozen", "active", "another name"},
		"a takeover":                 {held(slot.Active, head.State{Phase: head.Active, UID: uid1, Gate: frozen("takeover", "take-x")}, nil), "takeover", "take-x", "retry", "frozen", "active", "another name"},
	} {
		_, err := c.seat.Claim(aggregates.Claim{UID: uid2, Environment: env2})
		e := fault.From(err)
		if e.Code != fault.FailedPrecondition || e.Outcome != fault.NotExecuted {
			t.Errorf("%s: %+v", name, e)
		}
		var d fault.Detail
		for _, one := range e.Details {
			if one.Kind == head.DetailBlocked {
				d = one
			}
		}
		if f := d.Facts; f["blockedOp"] != c.operation || f["opId"] != c.id || f["remedy"] != c.remedy || f["gateState"] != c.gate || f["headState"] != c.head {
			t.Errorf("%s: the detail is %v", name, d.Facts)
		}
		if !strings.Contains(e.Message, c.operation+" "+c.id) || !strings.Contains(e.Message, c.gate) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s: %s; %s", name, e.Message, e.Hint)
		}
	}
	open := held(slot.Active, head.State{Phase: head.Active, UID: uid1, Gate: head.Gate{Phase: head.GateOpen}}, nil)
	_, err := open.Claim(aggregates.Claim{UID: uid2, Environment: env2})
	if e := fault.From(err); len(e.Details) != 1 || e.Details[0].Kind != aggregates.DetailSlotHeld {
		t.Errorf("a name that simply runs is behind a barrier: %+v", e.Details)
	}
}
