package aggregates_test

import (
	"reflect"
	"testing"
	"time"

	"berth/aggregates/environment"
	"berth/aggregates/instance"
	"berth/events"
	"berth/events/fault"
)

// Each guard here refuses alone, where everything else would allow. They were
// found by breaking them one at a time (internal/prove/mutate).

// Law 2: nothing is dispatched, by whatever wrote it, while another operation
// is open.
func TestNoDispatchBesideAnOpenOperation(t *testing.T) {
	for name, l := range map[string]*life{"dispatched": running(t).dispatch(op1, events.VerbPause), "uncertain": running(t).dispatch(op1, events.VerbPause).lose(op1)} {
		second := events.OperationDispatched{Environment: env1, Operation: op2, Verb: events.VerbCheckpoint, Deadline: at(time.Minute)}
		if err := l.Check(events.Meta{}, second); fault.CodeOf(err) != fault.FailedPrecondition {
			t.Errorf("%s: %v", name, err)
		}
		after := l.With(events.Meta{}, second).Environment
		if after.Operation == nil || after.Operation.ID != op1 {
			t.Errorf("%s: the open operation was replaced: %+v", name, after.Operation)
		}
	}
}

// Law 2: a name is not free while its environment is not proved gone, though
// the host is cleaned, every credential is revoked and nothing is open.
func TestNoReleaseBeforeTheEnvironmentIsGone(t *testing.T) {
	l := retiring(t).call("operation-stop-0001", events.VerbStop, seen(events.StateStopped))
	l.add(l.Head.Revoke()...).add(events.SlotCleaned{UID: uid1})
	if _, err := l.Release(); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Fatalf("it was released: %v", err)
	}
	l.call("operation-destroy-1", events.VerbDestroy, seen(events.StateAbsent))
	l.do(l.Release())
}

// Scenario 30: the accepted deadline ends a life for extensions, also where
// the provider would keep the environment for longer.
func TestNoExtensionBeyondTheAcceptedDeadline(t *testing.T) {
	l := running(t)
	f := seen(events.StateRunning)
	f.ExpiresAt = ptr(at(3 * time.Hour))
	l.add(events.EnvironmentObserved{Environment: env1, Facts: f})
	e := events.OperationPlanned{Operation: op1, Verb: events.VerbExtend, Arguments: events.Arguments{ExtendTo: ptr(at(4 * time.Hour))}}
	if _, err := l.Plan(e, at(time.Hour)); fault.CodeOf(err) != fault.Expired {
		t.Errorf("at the deadline: %v", err)
	}
}

// Rule 2.3: a credential that was minted before the gate moved is not released
// after it.
func TestNoReleaseOfAnEarlierGeneration(t *testing.T) {
	l := reserved(t)
	l.do(l.Head.Open("activation-0000001"))
	l.do(l.Head.Mint("cred-1", "U1", nil, nil))
	l.add(events.GateFrozen{UID: uid1, Operation: op1, Kind: "registration"})
	l.do(l.Head.Open(op1))
	if _, err := l.Head.Release("cred-1"); fault.CodeOf(err) != fault.Expired {
		t.Errorf("%v", err)
	}
}

// R61: the slot itself refuses a lifecycle that was there before.
func TestASlotNeverTakesALifecycleBack(t *testing.T) {
	s := over(t).Slot
	again := events.SlotClaimed{UID: uid1, Environment: env1, Holder: inst, Plan: plan}
	if err := s.Check(again); fault.CodeOf(err) != fault.PermissionDenied {
		t.Errorf("%v", err)
	}
	if after := s.Apply(events.Meta{}, again); after.Held() {
		t.Errorf("the slot is %s", after.Phase)
	}
}

// Law 3: an epoch that is written again, or an older one, changes nothing.
func TestEpochsOnlyRise(t *testing.T) {
	s := instance.State{}.Apply(events.Meta{Time: t0}, events.InstanceRegistered{Instance: inst, Epoch: 3, Version: "v3"})
	for _, epoch := range []uint64{0, 2, 3} {
		if after := s.Apply(events.Meta{}, events.InstanceRegistered{Instance: inst, Epoch: epoch, Version: "other"}); !reflect.DeepEqual(after, s) {
			t.Errorf("epoch %d after 3: %+v", epoch, after)
		}
	}
}

// The queue has its limit in the table too, whoever writes to it.
func TestTheQueueIsBoundedByTheFold(t *testing.T) {
	l := running(t)
	for n := range environment.MaxQueue + 3 {
		l.Seat = l.With(events.Meta{}, events.OperationPlanned{Environment: env1, Operation: events.OperationID("operation-queued-" + string(rune('a'+n))), Verb: events.VerbPause})
	}
	if n := len(l.Environment.Queue); n != environment.MaxQueue {
		t.Errorf("%d operations wait", n)
	}
}
