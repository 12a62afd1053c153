package plane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"berth/aggregates/goal"
	"berth/aggregates/numbering"
	"berth/commands"
	"berth/commands/commandstest"
	"berth/commands/plane"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

func unnamed() commands.SpawnInput {
	return commands.SpawnInput{Provider: "drill", Command: []string{"true"}}
}

// Issue: 100 spawns at once without a name are accepted with 100 names, and
// each goal id answers with its own for ever.
func TestManySpawnsAtOnceGetNamesOfTheirOwn(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	const n = 100
	got := make([]commands.SpawnResult, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { got[i], errs[i] = commandstest.Ask(w, commands.Spawn, fmt.Sprintf("many-%d", i), unnamed()) })
	}
	wg.Wait()
	names := map[events.Alias]bool{}
	for i, r := range got {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		names[r.Name] = true
		if r.Actor != events.Actor(r.Name) {
			t.Errorf("%s is actor %s", r.Name, r.Actor)
		}
		again, err := commandstest.Ask(w, commands.Spawn, fmt.Sprintf("many-%d", i), unnamed())
		if err != nil || again.Name != r.Name || again.UID != r.UID {
			t.Errorf("asked again, %s is %s: %v", r.Name, again.Name, err)
		}
	}
	if len(names) != n || !names["agent"] || !names["agent_2"] {
		t.Errorf("%d names for %d spawns: %v", len(names), n, names)
	}
}

// Rules 3: a number is not handed out again after its seat is gone, also by a
// manager that starts later; the base alone is no number, and a name that
// somebody chose does not ask the numbers.
func TestNumbersAreNotReused(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	spawn := func(id string, in commands.SpawnInput) commands.SpawnResult {
		t.Helper()
		r, err := commandstest.Ask(w, commands.Spawn, id, in)
		if err != nil {
			t.Fatal(err)
		}
		w.Ended(id)
		return r
	}
	retire := func(name string) {
		t.Helper()
		must[commands.WriteResult](t)(commandstest.Ask(w, commands.Retire, "retire-"+name, commands.RetireInput{Named: commands.Named{Name: name}}))
		must[commands.WaitResult](t)(commandstest.Ask(w, commands.Wait, "", commands.WaitInput{Name: name, Until: []string{"retired"}}))
	}
	for i, want := range []events.Alias{"agent", "agent_2", "agent_3"} {
		if r := spawn(fmt.Sprintf("a-%d", i), unnamed()); r.Name != want {
			t.Errorf("the name is %s instead of %s", r.Name, want)
		}
	}
	retire("agent_2")
	retire("agent_3")
	pinned := commandstest.Drill("agent_4")
	spawn("pinned", pinned)
	later := commandstest.New(t, commandstest.Config{Log: w.Log, Instance: "jjjjjjjjjjjjjjjjjjjjjjjjjj", Idle: true})
	r, err := commandstest.Ask(later, commands.Spawn, "later", unnamed())
	if err != nil || r.Name != "agent_5" {
		t.Errorf("after the numbers 2 and 3 were used and 4 is held: %s %v", r.Name, err)
	}
	if r := spawn("chosen", commandstest.Drill("agent_3")); r.Name != "agent_3" {
		t.Errorf("the chosen name is %s", r.Name)
	}
	retire("agent")
	if r := spawn("bare", unnamed()); r.Name != "agent" {
		t.Errorf("the free base is not used: %s", r.Name)
	}
	if _, err := commandstest.Ask(w, commands.Spawn, "taken", commandstest.Drill("agent")); fault.CodeOf(err) != fault.FailedPrecondition || fault.From(err).Outcome != fault.NotExecuted {
		t.Errorf("a chosen name that is held: %v", err)
	}
}

// Decision 2: a name that is lost to another between acceptance and claim is an
// event on the goal, and the next number is tried.
func TestALostNameIsAnEventOnTheGoal(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	b := events.GoalBoundary(commandstest.Caller, "slow")
	in := unnamed()
	in.Goal = "slow"
	o := w.Plane.Options
	stolen := false
	o.Shelf = stealing{w.Shelf, func() {
		if !stolen {
			stolen = true
			must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "thief", commandstest.Drill("agent")))
		}
	}}
	p := plane.New(o)
	defer p.Close()
	body, _ := json.Marshal(in)
	request, _ := json.Marshal(commands.Request{ID: "slow", Input: body})
	reply := p.Handle(t.Context(), commandstest.Address(commands.Spawn.Contract), request, "")
	var r commands.SpawnResult
	if !reply.OK || json.Unmarshal(reply.Result, &r) != nil || r.Name != "agent_2" {
		t.Fatalf("%+v %s", reply.Error, reply.Result)
	}
	g, _, err := w.Shelf.Goal(t.Context(), b)
	if err != nil || g.Allocated.Name != "agent_2" || g.Allocated.UID != r.UID {
		t.Errorf("the goal is about %+v: %v", g.Allocated, err)
	}
	rs, err := w.Log.Load(t.Context(), b, 0)
	if err != nil || len(rs) != 2 || rs[1].Events[0].EventType() != events.TypeGoalRenamed {
		t.Errorf("the goal's records: %+v %v", rs, err)
	}
	seat, err := w.Shelf.Seat(t.Context(), "local", "agent_2")
	if err != nil || seat.Slot.UID != r.UID {
		t.Errorf("the seat is of %s: %v", seat.Slot.UID, err)
	}
}

// stealing lets something happen right after a goal was accepted.
type stealing struct {
	plane.Shelf
	then func()
}

func (s stealing) DecideGoal(ctx context.Context, b events.Boundary, meta events.Meta, f func(goal.State) ([]events.Event, error)) (goal.State, events.Record, error) {
	g, r, err := s.Shelf.DecideGoal(ctx, b, meta, f)
	s.then()
	return g, r, err
}

// A dry run issues no number, and says what would be issued.
func TestADryRunIssuesNoNumber(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	for range 2 {
		r := w.Send(commands.Spawn.Contract, commands.Request{ID: "dry", DryRun: true}, unnamed())
		if !r.OK || len(r.WouldAppend) != 3 {
			t.Fatalf("%+v", r)
		}
	}
	must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "one", unnamed()))
	r := w.Send(commands.Spawn.Contract, commands.Request{ID: "dry", DryRun: true}, unnamed())
	if !r.OK || len(r.WouldAppend) != 4 || r.WouldAppend[0].Boundary != events.NumberBoundary("local", "agent") {
		t.Fatalf("%+v", r)
	}
	if s, _, err := w.Shelf.Number(t.Context(), events.NumberBoundary("local", "agent")); err != nil || s != (numbering.State{}) {
		t.Errorf("a dry run issued %+v %v", s, err)
	}
}

// Rules 3: the most names that an instance holds, with those that are only
// accepted; at the edge.
func TestCapacityOfAnInstance(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true, MaxSeats: 2})
	for _, name := range []string{"one", "two"} {
		must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, name, commandstest.Drill(name)))
	}
	_, err := commandstest.Ask(w, commands.Spawn, "three", commandstest.Drill("three"))
	if fault.CodeOf(err) != fault.ResourceExhausted || fault.From(err).Outcome != fault.NotExecuted {
		t.Errorf("the third of two: %v", err)
	}
	if again, err := commandstest.Ask(w, commands.Spawn, "two", commandstest.Drill("two")); err != nil || again.Name != "two" {
		t.Errorf("what was accepted is not answered again: %v", err)
	}
}

// Rules 2.5, 3: a name counts until its end is proved, also for a manager that
// folds the log anew; then its place is free at once.
func TestCapacityIsHeldUntilTheEndIsProved(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true, MaxSeats: 1})
	must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "one", commandstest.Drill("one")))
	must[commands.WriteResult](t)(commandstest.Ask(w, commands.Retire, "end", commands.RetireInput{Named: named("one")}))
	later := commandstest.New(t, commandstest.Config{Log: w.Log, Idle: true, MaxSeats: 1})
	tip := w.Tip()
	later.Until("the log is folded", func(v *projections.Views) bool { return v.Sequence() >= tip })
	for _, at := range []*commandstest.World{w, later} {
		_, err := commandstest.Ask(at, commands.Spawn, "two", commandstest.Drill("two"))
		refused(t, err, fault.ResourceExhausted, fault.NotExecuted)
	}
	works := commandstest.New(t, commandstest.Config{MaxSeats: 1})
	works.Spawn("one")
	must[commands.WriteResult](t)(commandstest.Ask(works, commands.Retire, "end", commands.RetireInput{Named: named("one")}))
	works.Until("its end is proved", func(v *projections.Views) bool { _, ok := v.Seat("local", "one"); return !ok })
	works.Spawn("two")
}

// Rules 2.10: names that begin with chat_ are refused wherever a name is chosen.
func TestChatNamesAreReserved(t *testing.T) {
	w := registered(t, commandstest.Config{Idle: true})
	before := w.Tip()
	launch := launchOf("demo", "l-1")
	launch.Name, launch.Launch.Name = "chat_x", "chat_x"
	for _, r := range []commands.Reply{
		w.Send(commands.Spawn.Contract, commands.Request{ID: "s"}, commandstest.Drill("chat_x")),
		w.Send(commands.Reserve.Contract, commands.Request{ID: "r"}, commandstest.Drill("chat_x")),
		w.Send(commands.PersonaDefine.Contract, commands.Request{ID: "p"}, commands.PersonaInput{Name: "chat_x", Text: "x"}),
		w.Send(commands.IntentAdmit.Contract, commands.Request{ID: "i"}, launch),
	} {
		if r.OK || r.Error.Code != fault.BadRequest || r.Error.Outcome != fault.NotExecuted {
			t.Errorf("a chat_ name is answered %s %v", r.Result, r.Error)
		}
	}
	if w.Tip() != before {
		t.Error("a refusal appended something")
	}
}
