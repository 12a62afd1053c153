package aggregates_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"berth/aggregates"
	"berth/events"
)

// liveRecords is the history of one live seat as a log holds it: spawned by a
// command and extended once. Every string is its own, as after a decode.
func liveRecords(b testing.TB, n int) []events.Record {
	name := func(what string) string { return fmt.Sprintf("%s-%08d-0000000000", what, n) }
	uid, env := events.UID(fmt.Sprintf("%026d", n)), events.EnvironmentID(fmt.Sprintf("0191e1a0-0000-7000-8000-%012d", n))
	bound := events.SeatBoundary("local", events.Alias(fmt.Sprint("agent-", n)))
	var prior events.Hash
	var rs []events.Record
	add := func(es ...events.Event) {
		m := events.Meta{ID: events.EventID(env), Time: t0, Caller: caller, Writer: events.Writer{Instance: inst, Epoch: 2}}
		if len(rs) == 0 || len(rs) == 5 {
			m.Command, m.Fingerprint = events.CommandID(name("command")), name("sha256-0123456789abcdef0123456789abcdef")
		}
		body, h, err := events.Encode(events.Commit{Boundary: bound, Expect: uint64(len(rs)), Meta: m, Events: es}, prior, nil)
		if err != nil {
			b.Fatal(err)
		}
		prior = h
		rs = append(rs, events.ParseRecord(bound, uint64(len(rs)+1), body))
	}
	facts := seen(events.StateRunning)
	facts.Ref, facts.Incarnation, facts.Custody = name("ref"), name("m"), &events.Custody{BootID: "boot", PID: n, StartTime: 7}
	call := func(v events.Verb, args events.Arguments, with ...events.Event) {
		op := events.OperationID(name("op-" + string(v)))
		add(append(with, events.OperationDispatched{Environment: env, Operation: op, Verb: v, Arguments: args, Deadline: t0})...)
		add(events.OperationConfirmed{Environment: env, Operation: op, Facts: facts})
	}
	act := events.OperationID(name("activation"))
	add(events.SlotClaimed{UID: uid, Environment: env, Goal: "goal.local.me." + string(uid2) + "." + name("g"), Holder: inst, Plan: plan, Target: events.TargetRunning, Deadline: ptr(t0.Add(time.Hour)), Ready: t0},
		events.HeadActivated{UID: uid, Operation: act})
	add(events.EnvironmentProbed{Environment: env, Capabilities: capable, ProbedAt: t0, Host: "host", Architecture: "amd64", Engine: "drill",
		Image: events.ImageDescription{Image: plan.Image, Architecture: "amd64", Digest: name("sha256:0123456789abcdef0123456789abcdef0123456789abcdef")}})
	call(events.VerbReserve, events.Arguments{})
	call(events.VerbProvision, events.Arguments{}, events.GateOpened{UID: uid, Operation: act, Generation: 1},
		events.CredentialMinted{UID: uid, Credential: events.CredentialID(name("cred")), Holder: name("UABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), Generation: 1})
	call(events.VerbStart, events.Arguments{}, events.CredentialReleased{UID: uid, Credential: events.CredentialID(name("cred"))})
	add(events.SlotActivated{UID: uid})
	to := ptr(t0.Add(2 * time.Hour))
	call(events.VerbExtend, events.Arguments{ExtendTo: to, Wanted: to})
	return append(rs, events.Record{Sequence: uint64(len(rs) + 1), Boundary: bound, Meta: rs[0].Meta, Events: []events.Event{events.DeadlineChanged{Environment: env, Deadline: *to}}})
}

// BenchmarkLiveSeat prints how much heap one live seat takes when folded.
func BenchmarkLiveSeat(b *testing.B) {
	var before, after runtime.MemStats
	seats := make([]aggregates.Seat, b.N) // counted below, by size
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range seats {
		rs := liveRecords(b, i)
		seats[i] = aggregates.Fold(rs[0].Boundary, rs)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if s := seats[0].Status(); s != aggregates.StatusRunning {
		b.Fatal(s)
	}
	size := uint64(len(seats)) * uint64(unsafe.Sizeof(seats[0]))
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc+size)/float64(b.N), "B/seat")
	runtime.KeepAlive(seats)
}
