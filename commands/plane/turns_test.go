package plane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/turns"
	"berth/commands"
	"berth/commands/commandstest"
	"berth/commands/plane"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

// asSeat is the caller that a seat is.
func asSeat(r commands.SpawnResult) events.Caller {
	return events.Caller{Owner: r.Owner, Actor: r.Actor, UID: r.UID}
}

func turnFor(name, payload string) commands.TurnInput {
	return commands.TurnInput{Named: commands.Named{Name: name}, Payload: payload, DeadlineMs: time.Hour.Milliseconds()}
}

func pending(w *commandstest.World, who events.Caller) []commands.PendingTurn {
	r, err := commandstest.AskAs(w, who, commands.TurnPending, "", commands.Empty{})
	if err != nil {
		w.T.Fatalf("turn-pending of %s: %v", who.Actor, err)
	}
	return r.Turns
}

// Rules 2.6 and 3: a turn is a goal; the seat sees the oldest, gives it back,
// and the goal has what it said. Both are answered alike for ever.
func TestTurnIsAskedAndGivenBack(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	seat := asSeat(w.Spawn("web"))
	first, err := commandstest.Ask(w, commands.Turn, "t-1", turnFor("web", "look\nat this"))
	if err != nil || first.GoalID != "t-1" || first.UID != seat.UID || first.Actor != "web" || first.Executor != commandstest.Instance || first.DeadlineAt == "" || first.Fingerprint == "" {
		t.Fatalf("the acceptance: %+v %v", first, err)
	}
	if _, err := commandstest.Ask(w, commands.Turn, "t-2", turnFor("web", "and then this")); err != nil {
		t.Fatal(err)
	}
	again, err := commandstest.Ask(w, commands.Turn, "t-1", turnFor("web", "look\nat this"))
	if err != nil || again.Fingerprint != first.Fingerprint || again.DeadlineAt != first.DeadlineAt {
		t.Errorf("the same turn again: %+v %v", again, err)
	}
	_, err = commandstest.Ask(w, commands.Turn, "t-1", turnFor("web", "something else"))
	if code, out := commandstest.Code(err); code != fault.Conflict || out != fault.NotExecuted {
		t.Errorf("another turn under the same id: %v", err)
	}
	if p := pending(w, seat); len(p) != 1 || p[0].GoalID != "t-1" || p[0].Payload != "look\nat this" || p[0].DeadlineAt != first.DeadlineAt || p[0].AcceptedAt == "" {
		t.Errorf("what waits is %+v", p)
	}
	in := commands.TurnYieldInput{GoalID: "t-1", Status: events.TurnHandoff, To: "reviewer", Note: "half of it\nis done"}
	for range 2 {
		y, err := commandstest.AskAs(w, seat, commands.TurnYield, "", in)
		if err != nil || y.GoalID != "t-1" || y.State != events.GoalSucceeded {
			t.Fatalf("given back: %+v %v", y, err)
		}
	}
	var result turns.Result
	g := w.Ended("t-1")
	if err := json.Unmarshal(g.Result, &result); err != nil || g.State != events.GoalSucceeded || result != (turns.Result{Status: events.TurnHandoff, To: "reviewer", Note: in.Note}) {
		t.Errorf("the goal ended with %+v", g)
	}
	if p := pending(w, seat); len(p) != 1 || p[0].GoalID != "t-2" {
		t.Errorf("then what waits is %+v", p)
	}
}

// Rules 3 and 4: what a seat may not ask, and what it is told.
func TestTurnRefusals(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	web, other := asSeat(w.Spawn("web")), asSeat(w.Spawn("other"))
	if _, err := commandstest.Ask(w, commands.Turn, "t-1", turnFor("web", "x")); err != nil {
		t.Fatal(err)
	}
	stale := web
	stale.UID = "zzzzzzzzzzzzzzzzzzzzzzzzzz"
	yield := func(who events.Caller, id string, status events.TurnStatus) error {
		_, err := commandstest.AskAs(w, who, commands.TurnYield, "", commands.TurnYieldInput{GoalID: id, Status: status})
		return err
	}
	ask := func(in commands.TurnInput) error {
		_, err := commandstest.Ask(w, commands.Turn, "t-x", in)
		return err
	}
	long, short := turnFor("web", "x"), turnFor("web", "x")
	long.DeadlineMs, short.DeadlineMs = commands.MaxDeadline.Milliseconds()+1, 0
	_, staleReads := commandstest.AskAs(w, stale, commands.TurnPending, "", commands.Empty{})
	_, staleStops := commandstest.AskAs(w, stale, commands.Stop, "s-1", commands.StopInput{})
	for name, c := range map[string]struct {
		err  error
		want fault.Code
	}{
		"a turn that nobody asked":      {yield(web, "t-9", events.TurnDone), fault.NotFound},
		"a turn of another seat":        {yield(other, "t-1", events.TurnDone), fault.PermissionDenied},
		"a stale lifecycle gives back":  {yield(stale, "t-1", events.TurnDone), fault.Expired},
		"a stale lifecycle reads":       {staleReads, fault.Expired},
		"a stale lifecycle stops":       {staleStops, fault.Expired},
		"another status":                {yield(web, "t-1", "later"), fault.BadRequest},
		"nobody of that name":           {ask(turnFor("nobody", "x")), fault.NotFound},
		"no payload":                    {ask(turnFor("web", "")), fault.BadRequest},
		"a payload that is too long":    {ask(turnFor("web", strings.Repeat("x", commands.MaxPayload+1))), fault.BadRequest},
		"a payload that has a secret":   {ask(turnFor("web", "password=hunter2")), fault.BadRequest},
		"no deadline":                   {ask(short), fault.BadRequest},
		"a deadline that is too far":    {ask(long), fault.BadRequest},
		"a handoff to nobody by status": {commands.TurnYieldInput{GoalID: "t-1", Status: events.TurnDone, To: "web"}.Check(), fault.BadRequest},
		"a note that is too long":       {commands.TurnYieldInput{GoalID: "t-1", Status: events.TurnDone, Note: strings.Repeat("x", commands.MaxNote+1)}.Check(), fault.BadRequest},
	} {
		if code, out := commandstest.Code(c.err); code != c.want || out != fault.NotExecuted {
			t.Errorf("%s: %v, want %s", name, c.err, c.want)
		}
	}
	if err := (commands.TurnInput{Named: commands.Named{Name: "web"}, Payload: strings.Repeat("x", commands.MaxPayload), DeadlineMs: 1}).Check(); err != nil {
		t.Errorf("the longest payload: %v", err)
	}
	if p := pending(w, web); len(p) != 1 {
		t.Errorf("after all of that waits %+v", p)
	}
}

// A turn that nobody gives back ends at its deadline, by the engine, and a late
// answer is refused; one that is cancelled is shown no more.
func TestTurnEndsByItself(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	seat := asSeat(w.Spawn("web"))
	in := turnFor("web", "be quick")
	in.DeadlineMs = 1
	_, err := commandstest.Ask(w, commands.Turn, "late", in)
	if code, _ := commandstest.Code(err); err != nil && code != fault.Unavailable && code != fault.DeadlineExceeded {
		t.Fatal(err)
	}
	if err == nil || fault.CodeOf(err) == fault.Unavailable {
		if g := w.Ended("late"); g.State != events.GoalFailed || g.Fault == nil || g.Fault.Code != fault.DeadlineExceeded || len(g.Fault.Details) == 0 || g.Fault.Details[0].Kind != turns.DetailDeadline {
			t.Errorf("at its deadline: %+v", g)
		}
	}
	if _, err := commandstest.Ask(w, commands.Turn, "gone", turnFor("web", "never mind")); err != nil {
		t.Fatal(err)
	}
	if _, err := commandstest.Ask(w, commands.GoalCancel, "c-1", commands.GoalCancelInput{GoalRef: commands.GoalRef{Goal: "gone"}}); err != nil {
		t.Fatal(err)
	}
	if g := w.Ended("gone"); g.State != events.GoalCancelled || g.Fault.Outcome != fault.Unknown {
		t.Errorf("cancelled: %+v", g)
	}
	_, err = commandstest.AskAs(w, seat, commands.TurnYield, "", commands.TurnYieldInput{GoalID: "gone", Status: events.TurnDone})
	if code, out := commandstest.Code(err); code != fault.FailedPrecondition || out != fault.NotExecuted {
		t.Errorf("an answer after the end: %v", err)
	}
	if p := pending(w, seat); len(p) != 0 {
		t.Errorf("what waits is %+v", p)
	}
}

// Rules 3, row stop: a seat ends itself, and its turns end with it.
func TestSeatStopsItself(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	seat := asSeat(w.Spawn("web"))
	for _, id := range []string{"t-1", "t-2"} {
		if _, err := commandstest.Ask(w, commands.Turn, id, turnFor("web", "x")); err != nil {
			t.Fatal(err)
		}
	}
	r, err := commandstest.AskAs(w, seat, commands.Stop, "s-1", commands.StopInput{})
	if err != nil || r.UID != seat.UID || r.Name != "web" {
		t.Fatalf("stop: %+v %v", r, err)
	}
	for id, out := range map[string]fault.Outcome{"t-1": fault.Unknown, "t-2": fault.NotExecuted} {
		if g := w.Ended(id); g.State != events.GoalCancelled || g.Fault.Outcome != out {
			t.Errorf("%s ended %+v", id, g)
		}
	}
	again, err := commandstest.AskAs(w, seat, commands.Stop, "s-1", commands.StopInput{})
	if err != nil || again.Sequence != r.Sequence {
		t.Errorf("the same stop again: %+v %v", again, err)
	}
}

// A yield is answered alike for ever: also when so many turns came after it
// that the fold keeps it no more.
func TestOldYieldIsAnsweredFromTheLog(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	seat := asSeat(w.Spawn("web"))
	for n := range turns.MaxEnded + 2 {
		id := fmt.Sprintf("t-%d", n)
		if _, err := commandstest.Ask(w, commands.Turn, id, turnFor("web", "x")); err != nil {
			t.Fatal(err)
		}
		if _, err := commandstest.AskAs(w, seat, commands.TurnYield, "", commands.TurnYieldInput{GoalID: id, Status: events.TurnDone}); err != nil {
			t.Fatal(err)
		}
	}
	y, err := commandstest.AskAs(w, seat, commands.TurnYield, "", commands.TurnYieldInput{GoalID: "t-0", Status: events.TurnDone})
	if err != nil || y.State != events.GoalSucceeded {
		t.Errorf("the first one again: %+v %v", y, err)
	}
	_, err = commandstest.AskAs(w, seat, commands.TurnYield, "", commands.TurnYieldInput{GoalID: "t-0", Status: events.TurnBlocked})
	if code, _ := commandstest.Code(err); code != fault.FailedPrecondition {
		t.Errorf("the first one, otherwise: %v", err)
	}
}

// How many turns wait at one seat is bounded, before any effect.
func TestTurnsOfOneSeatAreBounded(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	seat := asSeat(w.Spawn("web"))
	for n := range turns.MaxPending {
		if _, err := commandstest.Ask(w, commands.Turn, fmt.Sprintf("t-%d", n), turnFor("web", "x")); err != nil {
			t.Fatal(err)
		}
	}
	_, err := commandstest.Ask(w, commands.Turn, "more", turnFor("web", "x"))
	if code, out := commandstest.Code(err); code != fault.ResourceExhausted || out != fault.NotExecuted {
		t.Errorf("one turn too many: %v", err)
	}
	if _, err := commandstest.AskAs(w, seat, commands.TurnYield, "", commands.TurnYieldInput{GoalID: "t-0", Status: events.TurnBlocked}); err != nil {
		t.Fatal(err)
	}
	if _, err := commandstest.Ask(w, commands.Turn, "more", turnFor("web", "x")); err != nil {
		t.Errorf("when there is room: %v", err)
	}
}

// unsteady is a shelf whose log does not take what is decided on a seat, for now.
type unsteady struct {
	plane.Shelf
	down *atomic.Bool
}

func (u unsteady) DecideSeat(ctx context.Context, o events.Owner, a events.Alias, m events.Meta, f func(aggregates.Seat) ([]events.Event, error)) (aggregates.Seat, events.Record, error) {
	if u.down.Load() {
		return aggregates.Seat{}, events.Record{}, fault.New(fault.Unavailable, "the log is away").WithOutcome(fault.NotExecuted)
	}
	return u.Shelf.DecideSeat(ctx, o, a, m, f)
}

// Rules 3: bound and not relayed is unavailable. The goal goes on by itself,
// and the same request is answered when it is there.
func TestUnrelayedTurnIsUnavailableAndGoesOn(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	seat := asSeat(w.Spawn("web"))
	var down atomic.Bool
	o := w.Plane.Options
	o.Shelf = unsteady{w.Shelf, &down}
	p := plane.New(o)
	t.Cleanup(p.Close)
	ask := func() commands.Reply {
		in, _ := json.Marshal(turnFor("web", "x"))
		body, _ := json.Marshal(commands.Request{ID: "t-1", Input: in})
		return p.Handle(t.Context(), commandstest.Address(commands.Turn.Contract), body, "")
	}
	down.Store(true)
	if r := ask(); r.OK || r.Error.Code != fault.Unavailable || r.Error.Outcome != fault.Executed {
		t.Fatalf("accepted and not relayed: %+v", r)
	}
	if shown := pending(w, seat); len(shown) != 0 {
		t.Errorf("what waits is %+v", shown)
	}
	down.Store(false)
	w.Until("the turn is relayed", func(v *projections.Views) bool {
		s, _ := v.Seat(seat.Owner, "web")
		return len(s.Turns.Pending) == 1
	})
	if r := ask(); !r.OK {
		t.Errorf("the same request: %+v", r)
	}
}
