package aggregates_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"berth/aggregates/turns"
	"berth/events"
	"berth/events/fault"
)

func relayed(n int) events.TurnRelayed {
	return events.TurnRelayed{UID: uid1, Turn: turnID(n), Goal: string(events.GoalBoundary(caller, goalOf(n))), Deadline: at(time.Duration(n) * time.Minute)}
}

func turnID(n int) events.OperationID {
	return events.OperationID(fmt.Sprintf("operation-turn-%04d", n))
}

func goalOf(n int) events.GoalID { return events.GoalID(fmt.Sprintf("g-%d", n)) }

// asked is a running seat with turns that wait, the nth for n minutes.
func asked(t testing.TB, waiting ...int) *life {
	l := running(t)
	for _, n := range waiting {
		l.do(l.Relay(relayed(n), t0))
	}
	return l
}

var done = events.TurnYielded{Status: events.TurnDone, Note: "all of it"}

// A turn is for a seat that runs; every refusal is typed and before any effect.
func TestRelayRefuses(t *testing.T) {
	other := relayed(1)
	other.UID = uid2
	theirs := relayed(1)
	theirs.Turn, theirs.Goal = turnID(9), string(events.GoalBoundary(events.Caller{Owner: "local", Actor: "you", UID: uid1}, goalOf(1)))
	stopped := events.EnvironmentObserved{Environment: env1, Facts: seen(events.StateStopped)}
	cases := []struct {
		name string
		seat *life
		turn events.TurnRelayed
		now  time.Time
		want fault.Code // empty: relayed
	}{
		{"a running seat", running(t), relayed(1), t0, ""},
		{"nobody of that name", fresh(t), relayed(1), t0, fault.NotFound},
		{"another lifecycle", running(t), other, t0, fault.Expired},
		{"one that is not ready", reserved(t), relayed(1), t0, fault.FailedPrecondition},
		{"one that stopped", running(t).add(stopped), relayed(1), t0, fault.FailedPrecondition},
		{"one that is on its way out", retiring(t), relayed(1), t0, fault.FailedPrecondition},
		{"just before the deadline", running(t), relayed(1), at(time.Minute - 1), ""},
		{"at the deadline", running(t), relayed(1), at(time.Minute), fault.DeadlineExceeded},
		{"another caller's goal id that waits", asked(t, 1), theirs, t0, fault.Conflict},
		{"the last place", asked(t, 1, 2, 3, 4, 5, 6, 7), relayed(8), t0, ""},
		{"one too many", asked(t, 1, 2, 3, 4, 5, 6, 7, 8), relayed(9), t0, fault.ResourceExhausted},
	}
	for _, c := range cases {
		es, err := c.seat.Relay(c.turn, c.now)
		if fault.CodeOf(err) != c.want || (err != nil && (len(es) > 0 || fault.From(err).Outcome != fault.NotExecuted)) {
			t.Errorf("%s: %v %v, want %q", c.name, es, err, c.want)
		}
	}
	l := asked(t, 1)
	if es, err := l.Relay(relayed(1), at(time.Hour)); len(es) != 0 || err != nil {
		t.Errorf("the same turn again: %v %v", es, err)
	}
}

// Only the seat gives a turn back, only the oldest, and only in time; a repeat
// of the same request decides nothing.
func TestYieldIsTheSeatsAndInTime(t *testing.T) {
	give := func(l *life, uid events.UID, n int, fp string, now time.Time) ([]events.Event, error) {
		return l.Yield(uid, goalOf(n), done, fp, now)
	}
	cases := []struct {
		name string
		seat *life
		uid  events.UID
		turn int
		now  time.Time
		want fault.Code
	}{
		{"the oldest, just in time", asked(t, 1, 2), uid1, 1, at(time.Minute - 1), ""},
		{"at the deadline", asked(t, 1), uid1, 1, at(time.Minute), fault.FailedPrecondition},
		{"one that waits behind", asked(t, 1, 2), uid1, 2, t0, fault.FailedPrecondition},
		{"one that nobody asked", asked(t, 1), uid1, 5, t0, fault.NotFound},
		{"a stale lifecycle", asked(t, 1), uid2, 1, t0, fault.Expired},
		{"nobody of that name", fresh(t), uid1, 1, t0, fault.Expired},
	}
	for _, c := range cases {
		es, err := give(c.seat, c.uid, c.turn, "f", c.now)
		if fault.CodeOf(err) != c.want || err != nil && (len(es) > 0 || fault.From(err).Outcome != fault.NotExecuted) {
			t.Errorf("%s: %v %v, want %q", c.name, es, err, c.want)
		}
	}
	l := asked(t, 1)
	es, err := give(l, uid1, 1, "f", t0)
	if err != nil {
		t.Fatal(err)
	}
	l.Seat = l.With(events.Meta{Time: t0, Fingerprint: "f"}, es...)
	if es, err := give(l, uid1, 1, "f", at(time.Hour)); len(es) != 0 || err != nil {
		t.Errorf("the same request again: %v %v", es, err)
	}
	if _, err := give(l, uid1, 1, "g", t0); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Errorf("another request for a turn that was given back: %v", err)
	}
	turn, _ := l.Turns.Find(turnID(1))
	state, why, result := turn.Verdict("web")
	var r turns.Result
	if err := json.Unmarshal(result, &r); err != nil || state != events.GoalSucceeded || why != nil || r != (turns.Result{Status: events.TurnDone, Note: done.Note}) {
		t.Errorf("its verdict is %s %v %s", state, why, result)
	}
}

// A turn ends at its deadline, by a cancel, or with its seat; only the one that
// was shown may have been begun (law 5).
func TestTurnsEndTruthfully(t *testing.T) {
	end := func(l *life, now time.Time) *life {
		es := l.DropTurns(now)
		if len(es) == 0 {
			t.Helper()
			t.Fatal("no turn ends")
		}
		return l.add(es...)
	}
	if es := asked(t, 1, 2).DropTurns(at(time.Minute - 1)); len(es) != 0 {
		t.Errorf("a turn ends before its deadline: %v", es)
	}
	stopped := events.EnvironmentObserved{Environment: env1, Facts: seen(events.StateStopped)}
	cases := []struct {
		name    string
		seat    *life
		turn    int
		state   events.GoalState
		code    fault.Code
		outcome fault.Outcome
	}{
		{"the deadline of the one that is shown", end(asked(t, 1, 2), at(time.Minute)), 1, events.GoalFailed, fault.DeadlineExceeded, fault.Unknown},
		{"the deadline of one that is not", end(asked(t, 2, 1), at(time.Minute)), 1, events.GoalFailed, fault.DeadlineExceeded, fault.NotExecuted},
		{"a seat that is retired", end(func() *life { l := asked(t, 1, 2); return l.do(l.Retire(uid1, "retired", 0)) }(), t0), 1, events.GoalCancelled, fault.Cancelled, fault.Unknown},
		{"and the turn behind", end(func() *life { l := asked(t, 1, 2); return l.do(l.Retire(uid1, "retired", 0)) }(), t0), 2, events.GoalCancelled, fault.Cancelled, fault.NotExecuted},
		{"a lifetime that is over", end(func() *life { l := asked(t, 1); return l.do(l.Retire(uid1, "expired", 0)) }(), t0), 1, events.GoalFailed, fault.FailedPrecondition, fault.Unknown},
		{"a cancel", func() *life { l := asked(t, 1); return l.add(l.CancelTurn(turnID(1))...) }(), 1, events.GoalCancelled, fault.Cancelled, fault.Unknown},
	}
	for _, c := range cases {
		turn, _ := c.seat.Turns.Find(turnID(c.turn))
		state, why, _ := turn.Verdict("web")
		if state != c.state || why == nil || why.Code != c.code || why.Outcome != c.outcome {
			t.Errorf("%s: %s %v", c.name, state, why)
		}
	}
	stopped.Facts.StoppedAt = ptr(at(time.Second))
	down := end(asked(t, 1).add(stopped), at(time.Minute))
	turn, _ := down.Turns.Find(turnID(1))
	_, why, _ := turn.Verdict("web")
	if len(why.Details) != 1 || why.Details[0].Kind != turns.DetailDeadline || why.Details[0].Facts["agentDownAt"] == "" {
		t.Errorf("the agent was down, and the details are %+v", why.Details)
	}
	if es := asked(t, 1).CancelTurn(turnID(2)); len(es) != 0 {
		t.Errorf("a turn that is not there is cancelled: %v", es)
	}
	if a, b := asked(t, 2, 1).NextLapse(), running(t).NextLapse(); !a.Equal(at(time.Minute)) || !b.IsZero() {
		t.Errorf("the next deadlines are %s and %s", a, b)
	}
}

// What is kept of ended turns is bounded, and a new life of the name has none.
func TestTurnsAreBoundedAndOfOneLife(t *testing.T) {
	l := running(t)
	for n := 1; n <= turns.MaxEnded+1; n++ {
		l.do(l.Relay(relayed(n), t0))
		l.do(l.Yield(uid1, goalOf(n), done, "f", t0))
	}
	if _, ok := l.Turns.Find(turnID(1)); ok || len(l.Turns.Ended) != turns.MaxEnded {
		t.Errorf("%d ended turns are kept", len(l.Turns.Ended))
	}
	again := l.Turns.Apply(events.Meta{}, events.SlotClaimed{UID: uid2})
	if again.UID != uid2 || len(slices.Concat(again.Pending, again.Ended)) != 0 {
		t.Errorf("the next life begins with %+v", again)
	}
	if err := again.Check(relayed(1)); fault.CodeOf(err) != fault.Expired {
		t.Errorf("a turn of the life before: %v", err)
	}
}
