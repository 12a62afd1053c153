package aggregates_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
)

// boundary is the one seat of the properties.
var boundary = events.SeatBoundary("local", "a")

func pick[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

func millis(t *rapid.T, label string) time.Time {
	return at(time.Duration(rapid.Int64Range(0, 72*3600*1000).Draw(t, label)) * time.Millisecond)
}

func someTime(t *rapid.T, label string) *time.Time {
	if rapid.Bool().Draw(t, label+"?") {
		return nil
	}
	return ptr(millis(t, label))
}

func someFault(t *rapid.T) *fault.Error {
	if t == nil {
		return fault.New(fault.Unavailable, "skeleton")
	}
	return fault.New(pick(t, "code", fault.Unavailable, fault.Unimplemented, fault.ResourceExhausted), "it said no").WithDetail("berth.test", "k", "v")
}

func someFacts(t *rapid.T) events.Facts {
	if t == nil {
		return events.Facts{}
	}
	f := events.Facts{
		Ref: pick(t, "ref", "", "ref-1", "ref-2"), Incarnation: pick(t, "incarnation", "", "m1", "m2"), VolumeID: pick(t, "volume", "", "v1"),
		Network: pick(t, "network", "", "n1", "n2"), ExpiresAt: someTime(t, "expires"), ObservedAt: millis(t, "observed"),
		State: pick(t, "state", events.StateReserved, events.StateCreating, events.StateRunning, events.StatePaused, events.StateStopped, events.StateFailed, events.StateAbsent, events.StateUnknown),
	}
	switch rapid.IntRange(0, 5).Draw(t, "extra") {
	case 0:
		f.StoppedAt, f.ExitCode = ptr(millis(t, "stopped")), ptr(rapid.IntRange(0, 255).Draw(t, "exit"))
	case 1:
		f.Checkpoint = &events.Checkpoint{ID: pick(t, "checkpoint", "k1", "k2"), Kind: "cold", ByteLength: 12, CapturedAt: t0}
	case 2:
		f.File = &events.File{ID: "file-1", ByteLength: 12, SHA256: "00"}
	case 3:
		f.Custody = &events.Custody{BootID: "b", PID: 7, StartTime: 9}
	}
	return f
}

func somePlan(t *rapid.T) events.Plan {
	p := events.Plan{
		Provider: "drill", Image: events.Image{Kind: "template", Reference: "base"}, Lifetime: time.Hour,
		Resources: events.Resources{CPUs: events.MustQuantity("0.25"), MemoryMiB: 64}, Command: []string{"sh", "-c", "true"},
	}
	if rapid.Bool().Draw(t, "options") {
		p.Options, p.Network = map[string]string{"a": "b", "c": "d"}, ptr("n1")
	}
	return p
}

// ids is what an event may name; small sets make events of other lifecycles,
// repeats and impossible orders common.
type ids struct {
	uid  events.UID
	env  events.EnvironmentID
	op   events.OperationID
	cred events.CredentialID
}

func someIDs(t *rapid.T) ids {
	return ids{
		pick(t, "uid", uid1, uid1, uid2), pick(t, "env", env1, env1, env2),
		pick(t, "op", op1, op2, "operation-0000000003", "operation-0000000004"), pick[events.CredentialID](t, "cred", "c1", "c2"),
	}
}

// kinds makes every event of a seat's boundary; with a nil t, a skeleton of it.
var kinds = []func(t *rapid.T, i ids) events.Event{
	func(t *rapid.T, i ids) events.Event {
		e := events.SlotClaimed{UID: i.uid, Environment: i.env, Holder: inst, Target: events.TargetRunning, Ready: t0}
		if t != nil {
			e.Plan, e.Deadline = somePlan(t), someTime(t, "deadline")
		}
		return e
	},
	func(_ *rapid.T, i ids) events.Event { return events.SlotActivated{UID: i.uid} },
	func(_ *rapid.T, i ids) events.Event {
		return events.SlotTerminalizing{UID: i.uid, Reason: "retired", Grace: "10s"}
	},
	func(_ *rapid.T, i ids) events.Event { return events.SlotCleaned{UID: i.uid} },
	func(_ *rapid.T, i ids) events.Event { return events.SlotRetired{UID: i.uid} },
	func(_ *rapid.T, i ids) events.Event { return events.SlotTakenOver{UID: i.uid, Holder: inst, Epoch: 3} },
	func(_ *rapid.T, i ids) events.Event { return events.HeadActivated{UID: i.uid, Operation: i.op} },
	func(_ *rapid.T, i ids) events.Event {
		return events.HeadEpochAdvanced{UID: i.uid, Operation: i.op, Epoch: 2}
	},
	func(_ *rapid.T, i ids) events.Event { return events.HeadRetiring{UID: i.uid, Operation: i.op} },
	func(_ *rapid.T, i ids) events.Event { return events.HeadRetired{UID: i.uid, Operation: i.op} },
	func(_ *rapid.T, i ids) events.Event {
		return events.GateOpened{UID: i.uid, Operation: i.op, Generation: 1}
	},
	func(_ *rapid.T, i ids) events.Event {
		return events.GateFrozen{UID: i.uid, Operation: i.op, Kind: "retirement"}
	},
	func(_ *rapid.T, i ids) events.Event { return events.GateRetired{UID: i.uid, Operation: i.op} },
	func(_ *rapid.T, i ids) events.Event {
		return events.CredentialMinted{UID: i.uid, Credential: i.cred, Holder: "U1", Generation: 1, ExpiresAt: &t0}
	},
	func(_ *rapid.T, i ids) events.Event { return events.CredentialReleased{UID: i.uid, Credential: i.cred} },
	func(_ *rapid.T, i ids) events.Event { return events.CredentialRevoked{UID: i.uid, Credential: i.cred} },
	func(_ *rapid.T, i ids) events.Event {
		return events.EnvironmentWrittenOff{Environment: i.env, UID: i.uid, Reason: "lost"}
	},
	func(t *rapid.T, i ids) events.Event {
		e := events.TurnRelayed{UID: i.uid, Turn: i.op, Goal: string(events.GoalBoundary(caller, "g-"+events.GoalID(i.op))), Deadline: t0}
		if t != nil {
			e.Deadline = millis(t, "deadline")
		}
		return e
	},
	func(_ *rapid.T, i ids) events.Event {
		return events.TurnYielded{UID: i.uid, Turn: i.op, Status: events.TurnHandoff, To: "next", Note: "so far"}
	},
	func(_ *rapid.T, i ids) events.Event {
		return events.TurnDropped{UID: i.uid, Turn: i.op, Reason: "deadline", Outcome: fault.Unknown, DownAt: &t0}
	},
	func(_ *rapid.T, _ ids) events.Event { return events.CommandAnswered{Command: "cmd", Fingerprint: "f"} },
}

// environmental are the events that only the environment folds.
var environmental = []func(t *rapid.T, i ids) events.Event{
	func(_ *rapid.T, i ids) events.Event {
		return events.EnvironmentProbed{Environment: i.env, Network: "n1", Capabilities: capable, ProbedAt: t0, Host: "h", Architecture: "amd64", Engine: "drill"}
	},
	func(t *rapid.T, i ids) events.Event {
		return events.EnvironmentRefused{Environment: i.env, Fault: someFault(t)}
	},
	func(_ *rapid.T, i ids) events.Event {
		return events.TargetChanged{Environment: i.env, Target: events.TargetRunning}
	},
	func(t *rapid.T, i ids) events.Event {
		v, a := someCall(t)
		return events.OperationPlanned{Environment: i.env, Operation: i.op, Verb: v, Arguments: a}
	},
	func(t *rapid.T, i ids) events.Event {
		v, a := someCall(t)
		return events.OperationDispatched{Environment: i.env, Operation: i.op, Verb: v, Arguments: a, Deadline: t0}
	},
	func(t *rapid.T, i ids) events.Event {
		return events.OperationConfirmed{Environment: i.env, Operation: i.op, Facts: someFacts(t)}
	},
	func(t *rapid.T, i ids) events.Event {
		return events.OperationRefused{Environment: i.env, Operation: i.op, Fault: someFault(t)}
	},
	func(t *rapid.T, i ids) events.Event {
		return events.OperationUncertain{Environment: i.env, Operation: i.op, Fault: someFault(t)}
	},
	func(t *rapid.T, i ids) events.Event {
		return events.OperationLanded{Environment: i.env, Operation: i.op, Facts: someFacts(t), Evidence: "seen"}
	},
	func(_ *rapid.T, i ids) events.Event {
		return events.OperationExcluded{Environment: i.env, Operation: i.op, Evidence: "fenced"}
	},
	func(_ *rapid.T, i ids) events.Event {
		return events.OperationStuck{Environment: i.env, Operation: i.op, Since: t0}
	},
	func(_ *rapid.T, i ids) events.Event {
		return events.OperationCancelled{Environment: i.env, Operation: i.op, Reason: "asked"}
	},
	func(t *rapid.T, i ids) events.Event {
		return events.EnvironmentObserved{Environment: i.env, Facts: someFacts(t)}
	},
	func(t *rapid.T, i ids) events.Event {
		e := events.DeadlineChanged{Environment: i.env, Deadline: t0}
		if t != nil {
			e.Deadline = millis(t, "deadline")
		}
		return e
	},
	func(_ *rapid.T, i ids) events.Event {
		return events.FileAccepted{Environment: i.env, Operation: i.op, File: events.File{ID: "file-1", ByteLength: 12, SHA256: "00"}}
	},
	func(t *rapid.T, i ids) events.Event {
		return events.FileRejected{Environment: i.env, Operation: i.op, Fault: someFault(t)}
	},
}

func someCall(t *rapid.T) (events.Verb, events.Arguments) {
	if t == nil {
		return events.VerbPause, events.Arguments{}
	}
	v := rapid.SampledFrom(events.Verbs).Draw(t, "verb")
	if v == events.VerbExtend {
		return v, events.Arguments{ExtendTo: ptr(millis(t, "to"))}
	}
	return v, events.Arguments{CheckpointID: pick(t, "k", "", "k1")}
}

var anyKind = slices.Concat(kinds, environmental)

// someEvent is any event, possible or not.
func someEvent(t *rapid.T) events.Event {
	return rapid.SampledFrom(anyKind).Draw(t, "kind")(t, someIDs(t))
}

// likely is an event out of those that the seat's tables allow now; ok is
// false if there is none.
func likely(t *rapid.T, s aggregates.Seat, from []func(*rapid.T, ids) events.Event) (events.Event, bool) {
	i := someIDs(t)
	if s.Slot.UID != "" && s.Slot.Held() {
		i.uid, i.env = s.Slot.UID, s.Environment.ID
	}
	if op := s.Environment.Operation; op != nil {
		i.op = op.ID
	}
	var can []func(*rapid.T, ids) events.Event
	for _, k := range from {
		if s.Check(events.Meta{}, k(nil, i)) == nil {
			can = append(can, k)
		}
	}
	if len(can) == 0 {
		return nil, false
	}
	return can[rapid.IntRange(0, len(can)-1).Draw(t, "likely")](t, i), true
}

// someRecords is a history of commits: mostly possible ones, some impossible.
func someRecords(t *rapid.T) []events.Record {
	n := rapid.IntRange(1, 25).Draw(t, "records")
	s, when := aggregates.NewSeat(boundary), t0
	var rs []events.Record
	for i := range n {
		when = when.Add(time.Duration(rapid.IntRange(-1000, 7_200_000).Draw(t, "later")) * time.Millisecond)
		m := events.Meta{ID: events.EventID(fmt.Sprintf("0191e1a0-0000-7000-8000-%012d", i)), Time: when, Writer: events.Writer{Instance: inst, Epoch: 2}}
		if rapid.Bool().Draw(t, "command") {
			m.Command, m.Fingerprint = events.CommandID(fmt.Sprintf("cmd-%d", rapid.IntRange(0, 9).Draw(t, "id"))), "f"
		}
		var es []events.Event
		at := s
		for range rapid.IntRange(1, 3).Draw(t, "events") {
			e, ok := likely(t, at, anyKind)
			if !ok || rapid.IntRange(0, 4).Draw(t, "wild") == 0 {
				e = someEvent(t)
			}
			at = at.With(m, e)
			es = append(es, e)
		}
		r := events.Record{Sequence: uint64(i + 1), Previous: uint64(i), Boundary: boundary, Meta: m, Events: es}
		rs = append(rs, r)
		s = s.Apply(r)
	}
	return rs
}

// someLife is a seat that got where it is by decisions and by what happened to
// its environment: the states that can be reached.
func someLife(t *rapid.T) aggregates.Seat {
	s := aggregates.NewSeat(boundary)
	m := events.Meta{Time: t0, Writer: events.Writer{Instance: inst, Epoch: 2}}
	happens := append(slices.Clone(environmental),
		func(_ *rapid.T, i ids) events.Event { return events.SlotActivated{UID: i.uid} },
		func(_ *rapid.T, i ids) events.Event { return events.SlotCleaned{UID: i.uid} },
		func(_ *rapid.T, i ids) events.Event { return events.CredentialRevoked{UID: i.uid, Credential: i.cred} })
	for range rapid.IntRange(0, 30).Draw(t, "steps") {
		if rapid.IntRange(0, 2).Draw(t, "decide") == 0 || !s.Slot.Held() {
			_, decide := decision(t)
			if es, err := decide(s); err == nil {
				s = s.With(m, es...)
			}
			continue
		}
		if e, ok := likely(t, s, happens); ok {
			s = s.With(m, e)
		}
	}
	return s
}
