package aggregates_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/head"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/fault"
)

func mustSnapshot(t rapid.TB, s aggregates.Seat) []byte {
	b, err := aggregates.Snapshot(s)
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	return b
}

// Law 4: state is a fold. Prefix and rest give the whole; so does a snapshot
// of the prefix; so does the history as it is read back from its bytes.
func TestFoldIsAssociativeAndSurvivesBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := someRecords(t)
		whole := aggregates.Fold(boundary, rs)
		cut := rapid.IntRange(0, len(rs)).Draw(t, "cut")
		prefix := aggregates.Fold(boundary, rs[:cut])
		restored, err := aggregates.Restore(mustSnapshot(t, prefix))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(prefix, restored) {
			t.Fatalf("restored state differs:\n%s\n%s", mustSnapshot(t, prefix), mustSnapshot(t, restored))
		}
		read := aggregates.NewSeat(boundary)
		var prior events.Hash
		for _, r := range rs {
			if r.Sequence > uint64(cut) {
				prefix, restored = prefix.Apply(r), restored.Apply(r)
			}
			body, h, err := events.Encode(events.Commit{Boundary: boundary, Expect: r.Previous, Meta: r.Meta, Events: r.Events}, prior, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := events.ParseRecord(boundary, r.Sequence, body)
			if got.Broken != nil || !reflect.DeepEqual(got.Events, r.Events) {
				t.Fatalf("the events do not survive their bytes (%v):\n%+v\n%+v", got.Broken, r.Events, got.Events)
			}
			read, prior = read.Apply(got), h
		}
		for name, s := range map[string]aggregates.Seat{"prefix+rest": prefix, "snapshot+rest": restored, "bytes": read} {
			if !reflect.DeepEqual(whole, s) {
				t.Fatalf("%s differs from the whole:\n%s\n%s", name, mustSnapshot(t, whole), mustSnapshot(t, s))
			}
		}
	})
}

// Apply never changes its receiver or any earlier state: nothing is shared.
func TestApplySharesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := aggregates.NewSeat(boundary)
		var states []aggregates.Seat
		var kept [][]byte
		for _, r := range someRecords(t) {
			states, kept = append(states, s), append(kept, mustSnapshot(t, s))
			branch := s.With(r.Meta, someEvent(t)) // a sibling that grows the same lists
			_ = branch.Apply(r)
			s = s.Apply(r)
		}
		for i := range states {
			if !bytes.Equal(kept[i], mustSnapshot(t, states[i])) {
				t.Fatalf("state %d was changed by a later fold", i)
			}
		}
	})
}

// What holds between two neighbouring states of any history.
func TestLawsOfEveryStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := aggregates.NewSeat(boundary)
		for _, r := range someRecords(t) {
			for _, e := range r.Events {
				next := s.With(r.Meta, e)
				step(t, s, e, next)
				s = next
			}
			s = s.Apply(events.Record{Sequence: r.Sequence, Meta: r.Meta})
		}
	})
}

func step(t *rapid.T, was aggregates.Seat, e events.Event, is aggregates.Seat) {
	if !slices.Contains(aggregates.Statuses, is.Status()) {
		t.Fatalf("status %q is not listed", is.Status())
	}
	_ = is.Live() && is.Stuck()
	if was.Slot.Check(e) != nil && !reflect.DeepEqual(was.Slot, is.Slot) {
		t.Fatalf("%s is refused and changed the slot", e.EventType())
	}
	if was.Environment.ID != is.Environment.ID || was.Environment.UID != is.Environment.UID {
		if was.Slot.Held() {
			t.Fatalf("%s replaced the environment of a held name", e.EventType())
		}
		return // another life
	}
	a, b := was.Environment, is.Environment
	switch {
	case a.Deadline != nil && (b.Deadline == nil || b.Deadline.Before(*a.Deadline)):
		t.Fatalf("scenario 31: %s shortened the life", e.EventType())
	case !a.Reserved() && b.Reserved() && a.ID != "":
		t.Fatalf("scenario 21: %s took back a reservation that was released", e.EventType())
	case a.Gone && !b.Gone, a.WrittenOff && !b.WrittenOff:
		t.Fatalf("%s undid a proof", e.EventType())
	case a.Operation != nil && a.Operation.Open() && b.Operation != nil && b.Operation.ID != a.Operation.ID:
		t.Fatalf("law 2: %s dispatched %s while %s was open", e.EventType(), b.Operation.ID, a.Operation.ID)
	case b.StoppedAt != nil && b.Record == environment.Running:
		t.Fatalf("R67: %s left stoppedAt on something that runs", e.EventType())
	case b.Paused && b.Record != environment.Running:
		t.Fatalf("%s left a paused environment that does not run", e.EventType())
	case len(b.Queue) > environment.MaxQueue, len(b.Done) > environment.MaxDone, len(b.Checkpoints) > environment.MaxCheckpoints:
		t.Fatalf("%s went over a limit", e.EventType())
	case a.Network != "" && b.Network != a.Network && a.ProbedAt.Equal(b.ProbedAt):
		t.Fatalf("R23: %s changed the network in place", e.EventType())
	case was.Slot.Held() && !is.Slot.Held() && b.Reserved():
		t.Fatalf("%s freed the name and kept the reservation", e.EventType())
	}
	if was.Head.UID == is.Head.UID {
		for _, c := range was.Head.Ledger {
			if now, ok := is.Head.Credential(c.ID); !ok || c.Revoked && !now.Revoked {
				t.Fatalf("R59: %s brought back credential %s", e.EventType(), c.ID)
			}
		}
		if was.Head.Phase == head.Retired && is.Head.Phase != head.Retired {
			t.Fatalf("2.2: %s brought back a retired lifecycle", e.EventType())
		}
	}
}

// decision is any decision of a seat, with any arguments.
func decision(t *rapid.T) (string, func(aggregates.Seat) ([]events.Event, error)) {
	uid, env, op := pick(t, "uid", uid1, uid2), pick(t, "env", env1, env2), pick(t, "op", op1, op2)
	verb := rapid.SampledFrom(events.Verbs).Draw(t, "verb")
	args := events.Arguments{ExtendTo: someTime(t, "to"), MaxBytes: 10}
	now, target := millis(t, "now"), pick(t, "target", events.TargetReserved, events.TargetRunning, events.TargetPaused)
	epoch := uint64(rapid.IntRange(1, 4).Draw(t, "epoch"))
	cred := pick[events.CredentialID](t, "cred", "c1", "c2")
	all := map[string]func(aggregates.Seat) ([]events.Event, error){
		"claim": func(s aggregates.Seat) ([]events.Event, error) {
			return s.Claim(aggregates.Claim{UID: uid, Environment: env, Activation: op, Holder: inst})
		},
		"retire":  func(s aggregates.Seat) ([]events.Event, error) { return s.Retire(uid, "retired", time.Second) },
		"release": func(s aggregates.Seat) ([]events.Event, error) { return s.Release() },
		"advance": func(s aggregates.Seat) ([]events.Event, error) { return s.Advance(target) },
		"plan": func(s aggregates.Seat) ([]events.Event, error) {
			return s.Plan(events.OperationPlanned{Operation: op, Verb: verb, Arguments: args}, now)
		},
		"write-off": func(s aggregates.Seat) ([]events.Event, error) {
			es, _, err := s.WriteOff(events.Caller{Owner: "local"}, "lost")
			return es, err
		},
		"take-over": func(s aggregates.Seat) ([]events.Event, error) { return s.TakeOver(inst, epoch) },
		"open":      func(s aggregates.Seat) ([]events.Event, error) { return s.Head.Open(s.Head.Gate.Operation) },
		"mint":      func(s aggregates.Seat) ([]events.Event, error) { return s.Head.Mint(cred, "U1", nil, nil) },
		"credential": func(s aggregates.Seat) ([]events.Event, error) {
			return s.Head.Release(cred)
		},
		"epoch": func(s aggregates.Seat) ([]events.Event, error) { return s.Head.Advance(epoch, op) },
	}
	names := []string{"claim", "retire", "release", "advance", "plan", "write-off", "take-over", "open", "mint", "credential", "epoch"}
	name := rapid.SampledFrom(names).Draw(t, "decision")
	return name, all[name]
}

// What a decision returns is always allowed by the tables; taken twice, it
// decides nothing or is refused; a refusal says that nothing was executed.
func TestDecisionsAreLegalAndIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := someLife(t)
		for range rapid.IntRange(1, 12).Draw(t, "decisions") {
			name, decide := decision(t)
			es, err := decide(s)
			if err != nil {
				if f := fault.From(err); f.Outcome != fault.NotExecuted || f.Message == "" || len(es) > 0 && name != "release" {
					t.Fatalf("%s: refusal %+v with %d events", name, f, len(es))
				}
				continue
			}
			m := events.Meta{Time: t0, Writer: events.Writer{Instance: inst, Epoch: 2}}
			if err := s.Check(m, es...); err != nil {
				t.Fatalf("%s decided what the tables refuse: %v", name, err)
			}
			after := s.With(m, es...)
			if again, err := decide(after); err == nil && len(again) > 0 && name != "epoch" {
				t.Fatalf("%s decided twice: %v, then %v", name, es, again)
			}
			s = after
		}
	})
}

// A lifecycle that is over emits nothing: only a claim of a fresh one does.
func TestTerminalEmitsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := someLife(t)
		if s.Slot.Phase != slot.Retired && s.Slot.Phase != slot.None {
			es, err := s.Retire(s.Slot.UID, "retired", 0)
			if err != nil {
				t.Fatalf("scenario 19: retiring a held name is refused: %v", err)
			}
			s = s.With(events.Meta{Time: t0}, es...)
			env, head := s.Environment, s.Head
			if env.Operation != nil {
				s = s.With(events.Meta{Time: t0}, events.OperationUncertain{Environment: env.ID, Operation: env.Operation.ID, Fault: fault.New(fault.Unavailable, "lost")})
				es, _, err = s.WriteOff(events.Caller{Owner: "local"}, "lost")
			} else {
				s = s.With(events.Meta{Time: t0}, append(head.Revoke(), events.SlotCleaned{UID: s.Slot.UID},
					events.OperationDispatched{Environment: env.ID, Operation: "operation-destroy-1", Verb: events.VerbDestroy},
					events.OperationConfirmed{Environment: env.ID, Operation: "operation-destroy-1", Facts: events.Facts{State: events.StateAbsent, ObservedAt: t0}})...)
				es, err = s.Release()
			}
			if err != nil {
				t.Fatalf("the end of a life is refused: %v", err)
			}
			if s = s.With(events.Meta{Time: t0}, es...); s.Slot.Held() || s.Environment.Reserved() {
				t.Fatalf("the name is %s and the reservation %v after the end", s.Slot.Phase, s.Environment.Reserved())
			}
		}
		for range 20 {
			name, decide := decision(t)
			es, err := decide(s)
			if len(es) == 0 || err != nil {
				continue
			}
			switch {
			case name == "claim":
			case name == "mint", name == "open", name == "credential", name == "epoch":
				if s.Head.Phase == head.Retired {
					t.Fatalf("%s of a retired head decided %v", name, es)
				}
			default:
				t.Fatalf("%s of a name that nobody holds decided %v", name, es)
			}
		}
	})
}

// Scenarios 73, 74: what can't be read stops this boundary, and nothing on it
// is decided or folded any more.
func TestQuarantine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := someRecords(t)
		s := aggregates.Fold(boundary, rs)
		bad := events.Record{Sequence: 1000, Boundary: boundary, Broken: fault.New(fault.UnsupportedVersion, "event type x.y.v99 is not known")}
		q := s.Apply(bad)
		if q.Status() != aggregates.StatusHeld || q.Sequence != 1000 {
			t.Fatalf("status %s at %d", q.Status(), q.Sequence)
		}
		if after := q.Apply(events.Record{Sequence: 1001, Boundary: boundary, Events: []events.Event{someEvent(t)}}); !reflect.DeepEqual(after.Slot, q.Slot) || after.Sequence != 1001 {
			t.Fatal("a quarantined seat folded on")
		}
		if _, err := aggregates.Snapshot(q); fault.CodeOf(err) != fault.FailedPrecondition {
			t.Fatalf("snapshot of a quarantined seat: %v", err)
		}
		for range 10 {
			name, decide := decision(t)
			if es, err := decide(q); err == nil && len(es) > 0 && !slices.Contains([]string{"open", "mint", "credential", "epoch"}, name) {
				t.Fatalf("%s decided %v on a quarantined seat", name, es)
			}
		}
	})
}

// The same for the first record after it, whatever chance chooses above.
func TestAQuarantinedSeatIsNotClaimed(t *testing.T) {
	q := aggregates.NewSeat(boundary).Apply(events.Record{Sequence: 1, Boundary: boundary, Broken: fault.New(fault.Internal, "damaged")})
	claim := events.SlotClaimed{UID: "abcdefghijklmnopqrstuvwxyz", Environment: "01890a5d-ac96-774b-bcce-b302099a8057", Holder: "aaaaaaaaaaaaaaaaaaaaaaaaaa"}
	r := events.Record{Sequence: 2, Boundary: boundary, Events: []events.Event{claim}}
	if after := q.Apply(r); after.Slot.Held() || after.Sequence != 2 {
		t.Fatalf("a quarantined seat folded on to %s at %d", after.Slot.Phase, after.Sequence)
	}
	if !aggregates.NewSeat(boundary).Apply(r).Slot.Held() {
		t.Fatal("the record claims nothing, and the test shows nothing")
	}
}

func TestRestoreRefusesOthers(t *testing.T) {
	for in, code := range map[string]fault.Code{
		`{"format":1,"seat":{}}`: fault.UnsupportedVersion, `{}`: fault.UnsupportedVersion, `x`: fault.BadRequest,
		fmt.Sprintf(`{"format":%d,"seat":{"NoSuchField":1}}`, aggregates.SnapshotFormat): fault.BadRequest,
	} {
		if _, err := aggregates.Restore([]byte(in)); fault.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", in, err, code)
		}
	}
	if !json.Valid(mustSnapshot(t, aggregates.NewSeat(boundary))) {
		t.Error("the snapshot of a new seat is not JSON")
	}
}
