package sagas_test

import (
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/events"
	"berth/events/fault"
	"berth/sagas"
)

const (
	holderID = events.InstanceID("bbbbbbbbbbbbbbbbbbbbbbbbbb")
	otherID  = events.InstanceID("aaaaaaaaaaaaaaaaaaaaaaaaaa")
)

// An operator may write off by way of any instance. What is left is the
// holder's, whose epoch may be lower than that of whoever wrote (decision 13;
// the simulation's seed 31).
func TestWriteOffByAnotherInstanceIsTheHolders(t *testing.T) {
	id := events.EnvironmentID("01890a5d-ac96-774b-bcce-b302099a8057")
	at := events.EnvironmentBoundary(id)
	inherited := events.EnvironmentInherited{Environment: id, From: events.SeatBoundary("local", "a"), UID: "abcdefghijklmnopqrstuvwxyz", Holder: holderID, Plan: events.Plan{Provider: "drill"},
		Open: events.OperationDispatched{Environment: id, Operation: "operation-00000001", Verb: events.VerbReserve}}
	seat := sagas.Inherited(aggregates.NewSeat(at), events.Record{Sequence: 1, Boundary: at, Meta: events.Meta{Writer: events.Writer{Instance: otherID, Epoch: 9}}, Events: []events.Event{inherited}})
	a := sagas.Next(&sagas.View{Seat: seat, Self: events.Writer{Instance: holderID, Epoch: 2}, Now: time.Unix(0, 0), Fresh: "operation-00000002"})
	if a.Kind == sagas.Idle {
		t.Error("the holder leaves the environment to nobody")
	}
}

// A spawn whose seat was active and ended before anybody looked has succeeded:
// 2.6, the status follows the fact.
func TestSpawnThatRanHasSucceeded(t *testing.T) {
	uid := events.UID("abcdefghijklmnopqrstuvwxyz")
	g := goal.State{State: events.GoalStateRunning, Command: "spawn", Allocated: events.Allocation{Name: "a", Owner: "local", UID: uid}}
	for reason, want := range map[string]events.GoalState{"retired": events.GoalSucceeded, "expired": events.GoalSucceeded, "cancelled": events.GoalCancelled} {
		seat := aggregates.NewSeat(events.SeatBoundary("local", "a"))
		seat.Slot = seat.Slot.Apply(events.Meta{}, events.SlotClaimed{UID: uid}).Apply(events.Meta{}, events.SlotActivated{UID: uid}).
			Apply(events.Meta{}, events.SlotTerminalizing{UID: uid, Reason: reason}).Apply(events.Meta{}, events.SlotCleaned{UID: uid}).Apply(events.Meta{}, events.SlotRetired{UID: uid})
		es := sagas.NextGoal(g, seat, "goal.local.me.abcdefghijklmnopqrstuvwxyz.one", time.Unix(0, 0))
		if len(es) != 1 || es[0].(events.GoalEnded).State != want {
			t.Errorf("%s: %v, want %s", reason, es, want)
		}
		if end, ok := es[0].(events.GoalEnded); ok && want == events.GoalCancelled && fault.CodeOf(end.Fault) != fault.Cancelled {
			t.Errorf("%s: %v", reason, end.Fault)
		}
	}
}

// What was planned once is never planned again, and does not wait for ever: an
// operation that its seat's record has forgotten is of unknown outcome, and the
// log tells more (the simulation's seed 7291).
func TestAForgottenOperationIsNotWaitedFor(t *testing.T) {
	env, op := events.EnvironmentID("01890a5d-ac96-774b-bcce-b302099a8057"), events.OperationID("0199d1f0-0000-7000-8000-000000000001")
	seat := aggregates.NewSeat(events.SeatBoundary("local", "a"))
	seat.Slot = seat.Slot.Apply(events.Meta{}, events.SlotClaimed{UID: "abcdefghijklmnopqrstuvwxyz", Environment: env})
	seat.Environment.ID = env
	next := func(command string) []events.Event {
		g := goal.State{State: events.GoalStateRunning, Command: command, Fingerprint: "print", Allocated: events.Allocation{Name: "a", Owner: "local", Environment: env, Operation: op}}
		return sagas.NextGoal(g, seat, "goal.local.me.abcdefghijklmnopqrstuvwxyz.one", time.Unix(0, 0))
	}
	forgets := map[string]aggregates.Commands{
		"the command is remembered":     {Kept: []aggregates.CommandEntry{{ID: events.CommandID(op), Fingerprint: "print"}}},
		"the command is forgotten, too": {Forgotten: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)},
	}
	for _, command := range []string{"export", goal.CommandTurn} {
		seat.Commands = aggregates.Commands{}
		if es := next(command); len(es) != 0 {
			t.Errorf("%s, before it is planned: %v", command, es)
		}
		for name, commands := range forgets {
			seat.Commands = commands
			es := next(command)
			if len(es) != 1 || es[0].(events.GoalEnded).State != events.GoalUncertain || es[0].(events.GoalEnded).Fault.Outcome != fault.Unknown {
				t.Errorf("%s, %s: %v", command, name, es)
			}
		}
	}
}
