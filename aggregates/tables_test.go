package aggregates_test

import (
	"fmt"
	"testing"
	"time"

	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/aggregates/head"
	"berth/aggregates/instance"
	"berth/aggregates/machine"
	"berth/aggregates/slot"
	"berth/aggregates/turns"
	"berth/events"
	"berth/events/fault"
)

const (
	uid1 = events.UID("aaaaaaaaaaaaaaaaaaaaaaaaaa")
	uid2 = events.UID("bbbbbbbbbbbbbbbbbbbbbbbbbb")
	env1 = events.EnvironmentID("0191e1a0-0000-7000-8000-000000000001")
	env2 = events.EnvironmentID("0191e1a0-0000-7000-8000-000000000002")
	op1  = events.OperationID("operation-0000000001")
	op2  = events.OperationID("operation-0000000002")
	inst = events.InstanceID("iiiiiiiiiiiiiiiiiiiiiiiiii")
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

func ptr[T any](v T) *T { return &v }

// agree folds every event of a table in every state of it and compares with
// the table: a row moves to where it says, and what has no row changes nothing.
func agree[S, E ~string](t *testing.T, table machine.Table[S, E], fold func(from S, on E) (to S, changed bool)) {
	t.Helper()
	rows := map[string]bool{}
	for _, from := range table.States() {
		for _, on := range table.Events() {
			name := fmt.Sprintf("%s/%s+%s", table.Name, from, on)
			want, legal := table.Next(from, on)
			got, changed := fold(from, on)
			if got != want {
				t.Errorf("%s: the fold goes to %q, the table to %q (listed %v)", name, got, want, legal)
			}
			if !legal {
				if changed {
					t.Errorf("%s is not in the table, and the fold changed the state", name)
				}
				if e := table.Refuse(from, on); e.Code != fault.FailedPrecondition || e.Outcome != fault.NotExecuted {
					t.Errorf("%s: refusal %v", name, e)
				}
			}
			rows[name] = legal
		}
	}
	for _, r := range table.Rows {
		for _, from := range r.From {
			if to, _ := table.Next(from, r.On); to != r.To {
				t.Errorf("%s: two rows for %q in %q", table.Name, r.On, from)
			}
		}
	}
	reachable := map[S]bool{table.Initial: true}
	for range table.Rows {
		for _, r := range table.Rows {
			for _, f := range r.From {
				if reachable[f] {
					reachable[r.To] = true
				}
			}
		}
	}
	for _, s := range table.States() {
		if !reachable[s] {
			t.Errorf("%s: no way leads to state %q", table.Name, s)
		}
	}
}

// Rules 2.1: every phase with every event is listed or changes nothing.
func TestSlotTable(t *testing.T) {
	byOn := map[slot.On]events.Event{
		slot.OnClaim:       events.SlotClaimed{UID: uid2},
		slot.OnActivate:    events.SlotActivated{UID: uid1},
		slot.OnTerminalize: events.SlotTerminalizing{UID: uid1, Reason: "retired"},
		slot.OnClean:       events.SlotCleaned{UID: uid1},
		slot.OnRetire:      events.SlotRetired{UID: uid1},
		slot.OnTakeOver:    events.SlotTakenOver{UID: uid1, Holder: inst, Epoch: 9},
		slot.OnWriteOff:    events.EnvironmentWrittenOff{UID: uid1},
	}
	agree(t, slot.Table, func(from slot.Phase, on slot.On) (slot.Phase, bool) {
		s := slot.State{Phase: from, UID: uid1}
		after := s.Apply(events.Meta{Time: t0}, byOn[on])
		if _, legal := slot.Table.Next(from, on); legal != (s.Check(byOn[on]) == nil) || legal != (s.Allow(on) == nil) {
			t.Errorf("slot/%s+%s: Check and the table disagree", from, on)
		}
		return after.Phase, after != s
	})
}

// Rules 2.2 and 2.3: the head and its gate move together.
func TestHeadAndGateTables(t *testing.T) {
	byHead := map[head.On]events.Event{
		head.OnActivate: events.HeadActivated{UID: uid2, Operation: op1},
		head.OnAdvance:  events.HeadEpochAdvanced{UID: uid1, Operation: op1, Epoch: 2},
		head.OnRelease:  events.CredentialReleased{UID: uid1, Credential: "c1"},
		head.OnRetire:   events.HeadRetiring{UID: uid1, Operation: op1},
		head.OnComplete: events.HeadRetired{UID: uid1, Operation: op1},
		head.OnWriteOff: events.EnvironmentWrittenOff{UID: uid1},
	}
	gateFor := func(on head.On) head.GatePhase { // one in which the event's gate half is legal
		if on == head.OnActivate {
			return head.GateRetired
		}
		return head.GateOpen
	}
	agree(t, head.Table, func(from head.Phase, on head.On) (head.Phase, bool) {
		s := head.State{Phase: from, UID: uid1, Gate: head.Gate{Phase: gateFor(on)}}
		after := s.Apply(byHead[on])
		return after.Phase, after.Phase != s.Phase || after.Current != s.Current || after.Epoch != s.Epoch || after.Gate != s.Gate
	})
	byGate := map[head.GateOn]events.Event{
		head.OnFreezeFirst: events.HeadActivated{UID: uid2, Operation: op1},
		head.OnFreeze:      events.GateFrozen{UID: uid1, Operation: op1, Kind: "retirement"},
		head.OnOpen:        events.GateOpened{UID: uid1, Operation: op1, Generation: 1},
		head.OnGateRetire:  events.GateRetired{UID: uid1, Operation: op1},
		head.OnMint:        events.CredentialMinted{UID: uid1, Credential: "c1", Generation: 1},
		head.OnGateOff:     events.EnvironmentWrittenOff{UID: uid1},
	}
	headFor := func(on head.GateOn) head.Phase {
		if on == head.OnFreezeFirst {
			return head.Retired
		}
		return head.Active
	}
	agree(t, head.GateTable, func(from head.GatePhase, on head.GateOn) (head.GatePhase, bool) {
		s := head.State{Phase: headFor(on), UID: uid1, Gate: head.Gate{Phase: from}}
		after := s.Apply(byGate[on])
		return after.Gate.Phase, after.Gate != s.Gate || len(after.Ledger) > 0 || after.Phase != s.Phase
	})
}

// Decision 12: the life of one operation.
func TestOperationTable(t *testing.T) {
	byOn := map[environment.On]events.Event{
		environment.OnPlan:     events.OperationPlanned{Environment: env1, Operation: op1, Verb: events.VerbPause},
		environment.OnDispatch: events.OperationDispatched{Environment: env1, Operation: op1, Verb: events.VerbPause},
		environment.OnConfirm:  events.OperationConfirmed{Environment: env1, Operation: op1},
		environment.OnRefuse:   events.OperationRefused{Environment: env1, Operation: op1, Fault: fault.New(fault.Conflict, "no")},
		environment.OnLose:     events.OperationUncertain{Environment: env1, Operation: op1, Fault: fault.New(fault.Unavailable, "lost")},
		environment.OnLand:     events.OperationLanded{Environment: env1, Operation: op1, Evidence: "seen"},
		environment.OnExclude:  events.OperationExcluded{Environment: env1, Operation: op1, Evidence: "fenced"},
		environment.OnCancel:   events.OperationCancelled{Environment: env1, Operation: op1, Reason: "asked"},
	}
	agree(t, environment.Table, func(from environment.Phase, on environment.On) (environment.Phase, bool) {
		s := environment.State{ID: env1, UID: uid1, Record: environment.Running}
		op := environment.Operation{ID: op1, Verb: events.VerbPause, Phase: from}
		switch {
		case from == environment.NoOperation:
		case from == environment.Planned:
			s.Queue = []environment.Operation{op}
		case op.Open():
			s.Operation = &op
		default:
			s.Done = []*environment.Operation{&op}
		}
		after := s.Apply(events.Meta{Time: t0}, byOn[on])
		got, _ := after.Find(op1)
		if _, legal := environment.Table.Next(from, on); legal != (s.Check(byOn[on]) == nil) {
			t.Errorf("operation/%s+%s: Check and the table disagree", from, on)
		}
		return got.Phase, got.Phase != from || got.At != op.At
	})
}

// Rules 2.7, R67, R74: the four states of the record.
func TestRecordTable(t *testing.T) {
	see := func(p events.ProviderState, incarnation string) events.Event {
		return events.EnvironmentObserved{Environment: env1, Facts: events.Facts{Ref: "r", State: p, Incarnation: incarnation, ObservedAt: t0}}
	}
	byOn := map[environment.RecordOn]events.Event{
		environment.OnClaim:   events.SlotClaimed{UID: uid1, Environment: env1},
		environment.OnRunning: see(events.StateRunning, "m1"),
		environment.OnStopped: see(events.StateStopped, "m1"),
		environment.OnFailed:  see(events.StateFailed, "m1"),
		environment.OnAbsent:  see(events.StateAbsent, "m1"),
		environment.OnReplace: see(events.StateRunning, "m2"),
		environment.OnRefusal: events.EnvironmentRefused{Environment: env1, Fault: fault.New(fault.Unimplemented, "no")},
	}
	agree(t, environment.RecordTable, func(from environment.RecordState, on environment.RecordOn) (environment.RecordState, bool) {
		s := environment.State{ID: env1, UID: uid1, Record: from, Incarnation: "m1"}
		if from == environment.None {
			s = environment.State{}
		}
		after := s.Apply(events.Meta{Time: t0}, byOn[on])
		return after.Record, after.Record != s.Record
	})
}

// Rules 2.6: terminals are immutable, the first wins.
func TestGoalTable(t *testing.T) {
	byOn := map[goal.On]events.Event{
		goal.OnAccept:    events.GoalAccepted{Command: "spawn", Fingerprint: "f"},
		goal.OnOffer:     events.GoalOffered{By: inst, Until: t0},
		goal.OnDecline:   events.GoalDeclined{Instance: inst},
		goal.OnClaim:     events.GoalClaimed{Instance: inst},
		goal.OnRename:    events.GoalRenamed{Allocated: events.Allocation{Name: "demo_2"}},
		goal.OnProgress:  events.GoalProgressed{Phase: "launched"},
		goal.OnWait:      events.GoalProgressed{Phase: goal.PhaseWaiting},
		goal.OnCancel:    events.GoalCancelRequested{Mode: "graceful"},
		goal.OnSucceed:   events.GoalEnded{State: events.GoalSucceeded},
		goal.OnFail:      events.GoalEnded{State: events.GoalFailed},
		goal.OnCancelled: events.GoalEnded{State: events.GoalCancelled},
		goal.OnExpire:    events.GoalEnded{State: events.GoalExpired},
		goal.OnLose:      events.GoalEnded{State: events.GoalUncertain},
		goal.OnSettle:    events.GoalSettled{State: events.GoalFailed},
	}
	agree(t, goal.Table, func(from events.GoalState, on goal.On) (events.GoalState, bool) {
		s := goal.State{State: from}
		after := s.Apply(events.Meta{Time: t0}, byOn[on])
		return after.State, after.State != from || after.Settled != nil || after.Phase != "" || after.CancelMode != "" || after.Allocated.Name != "" || after.Declined != nil
	})
	for _, st := range goal.Table.States() {
		if st.Terminal() != (len((goal.State{State: st}).End(events.GoalFailed, nil, nil)) == 0) && st != goal.None {
			t.Errorf("a goal that is %q: Terminal and End disagree", st)
		}
	}
}

// Rules 2.6: a turn has one end.
func TestTurnTable(t *testing.T) {
	byOn := map[turns.On]events.Event{
		turns.OnRelay: events.TurnRelayed{UID: uid1, Turn: op1, Deadline: t0},
		turns.OnYield: events.TurnYielded{UID: uid1, Turn: op1, Status: events.TurnDone},
		turns.OnDrop:  events.TurnDropped{UID: uid1, Turn: op1, Reason: turns.ReasonDeadline},
	}
	agree(t, turns.Table, func(from turns.Phase, on turns.On) (turns.Phase, bool) {
		s := turns.State{UID: uid1}
		switch from {
		case turns.None:
		case turns.Pending:
			s.Pending = []turns.Turn{{ID: op1, Phase: from}}
		default:
			s.Ended = []turns.Turn{{ID: op1, Phase: from}}
		}
		after := s.Apply(events.Meta{Time: t0}, byOn[on])
		got, _ := after.Find(op1)
		if _, legal := turns.Table.Next(from, on); legal != (s.Check(byOn[on]) == nil) {
			t.Errorf("turn/%s+%s: Check and the table disagree", from, on)
		}
		return got.Phase, got.Phase != from || !got.RelayedAt.IsZero() || !got.EndedAt.IsZero()
	})
}

// Decision 1: epochs only rise.
func TestInstanceTable(t *testing.T) {
	byOn := map[instance.On]events.Event{
		instance.OnRegister: events.InstanceRegistered{Instance: inst, Epoch: 2},
		instance.OnStop:     events.InstanceStopped{Instance: inst, Epoch: 1},
		instance.OnObserve:  events.InstanceObserved{Instance: inst, Epoch: 1, Labels: map[string]string{"rack": "7"}},
	}
	agree(t, instance.Table, func(from instance.Phase, on instance.On) (instance.Phase, bool) {
		s := instance.State{Phase: from, ID: inst, Epoch: 1}
		after := s.Apply(events.Meta{Time: t0}, byOn[on])
		return after.Phase, after.Phase != from || after.Epoch != s.Epoch || after.Labels != nil
	})
	s := instance.State{Phase: instance.Registered, ID: inst, Epoch: 4}
	for _, e := range []events.Event{events.InstanceRegistered{Instance: inst, Epoch: 4}, events.InstanceStopped{Instance: inst, Epoch: 3}} {
		if after := s.Apply(events.Meta{}, e); after.Epoch != 4 || after.Phase != instance.Registered {
			t.Errorf("%s of an epoch that is over changed the instance to %+v", e.EventType(), after)
		}
	}
}
