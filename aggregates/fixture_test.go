package aggregates_test

import (
	"testing"
	"time"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
)

// capable is a provider that can do everything.
var capable = events.Capabilities{PauseKeepsMemory: true, ColdCheckpoint: true, Snapshot: true, Export: true, Extend: events.ExtendLimit{StepMs: 600_000}}

// caller is the operator of the tests.
var caller = events.Caller{Owner: "local", Actor: "me", UID: uid2}

// plan asks for an hour.
var plan = events.Plan{Provider: "drill", Image: events.Image{Kind: "template", Reference: "base"}, Command: []string{"sleep", "60"}, Lifetime: time.Hour,
	Resources: events.Resources{CPUs: events.MustQuantity("0.5"), MemoryMiB: 128}}

// life is a seat that grows step by step; every step is checked by the tables.
type life struct {
	t testing.TB
	aggregates.Seat
}

func (l *life) add(es ...events.Event) *life {
	l.t.Helper()
	m := events.Meta{Time: t0, Writer: events.Writer{Instance: inst, Epoch: 2}}
	if err := l.Check(m, es...); err != nil {
		l.t.Fatalf("the fixture is not legal: %v", err)
	}
	l.Seat = l.With(m, es...)
	return l
}

func (l *life) do(es []events.Event, err error) *life {
	l.t.Helper()
	if err != nil {
		l.t.Fatalf("the fixture was refused: %v", err)
	}
	return l.add(es...)
}

// call is one operation, dispatched and answered.
func (l *life) call(id events.OperationID, v events.Verb, f events.Facts) *life {
	l.t.Helper()
	l.dispatch(id, v)
	return l.add(events.OperationConfirmed{Environment: env1, Operation: id, Facts: f})
}

func (l *life) dispatch(id events.OperationID, v events.Verb) *life {
	l.t.Helper()
	return l.add(events.OperationDispatched{Environment: env1, Operation: id, Verb: v, Deadline: at(time.Minute)})
}

func (l *life) lose(id events.OperationID) *life {
	l.t.Helper()
	return l.add(events.OperationUncertain{Environment: env1, Operation: id, Fault: fault.New(fault.DeadlineExceeded, "no answer")})
}

func seen(s events.ProviderState) events.Facts {
	return events.Facts{Ref: "ref-1", Incarnation: "m1", State: s, ExpiresAt: ptr(at(time.Hour)), ObservedAt: t0}
}

func fresh(t testing.TB) *life { return &life{t, aggregates.NewSeat(boundary)} }

func claimed(t testing.TB) *life {
	l := fresh(t)
	return l.do(l.Claim(aggregates.Claim{UID: uid1, Environment: env1, Activation: "activation-0000001", Holder: inst, Plan: plan,
		Target: events.TargetRunning, Deadline: ptr(at(time.Hour)), Ready: at(30 * time.Second)}))
}

func reserved(t testing.TB) *life {
	return claimed(t).add(events.EnvironmentProbed{Environment: env1, Capabilities: capable, ProbedAt: t0, Host: "h", Architecture: "amd64", Engine: "drill"}).
		call("operation-reserve-1", events.VerbReserve, seen(events.StateReserved))
}

func running(t testing.TB) *life {
	l := reserved(t)
	l.do(l.Head.Open("activation-0000001"))
	l.do(l.Head.Mint("cred-1", "U1", nil, nil))
	l.do(l.Head.Release("cred-1"))
	return l.call("operation-provision", events.VerbProvision, seen(events.StateCreating)).
		call("operation-start-001", events.VerbStart, seen(events.StateRunning)).
		add(events.SlotActivated{UID: uid1})
}

// kept is a running seat with checkpoint k1.
func kept(t testing.TB) *life {
	f := seen(events.StateRunning)
	f.Checkpoint = &events.Checkpoint{ID: "k1", Kind: "cold", CapturedAt: t0}
	return running(t).call("operation-check-001", events.VerbCheckpoint, f)
}

func retiring(t testing.TB) *life {
	l := running(t)
	return l.do(l.Retire(uid1, "retired", 0))
}

// over is a seat whose whole life is done.
func over(t testing.TB) *life {
	l := retiring(t)
	l.call("operation-stop-0001", events.VerbStop, seen(events.StateStopped)).add(l.Head.Revoke()...).
		add(events.SlotCleaned{UID: uid1}).call("operation-destroy-1", events.VerbDestroy, seen(events.StateAbsent))
	return l.do(l.Release())
}
