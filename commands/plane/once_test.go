package plane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/projections"
)

func seatInput(name string) commands.SeatInput {
	return commands.SeatInput{Named: commands.Named{Name: name}}
}

// Decision 5: a repeated id gets the same answer for ever, also when the name
// has moved on, and another input under it is a conflict; neither appends.
func TestRepeatedCommandIDs(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	w.Spawn("demo")
	extend := commands.ExtendInput{Named: commands.Named{Name: "demo"}, By: "30m"}
	first := must[commands.WriteResult](t)(commandstest.Ask(w, commands.Extend, "one", extend))
	operated(t, w, first.Operation)
	again := must[commands.WriteResult](t)(commandstest.Ask(w, commands.Extend, "one", extend))
	if again != first {
		t.Errorf("the repeat is answered\n%+v, the first was\n%+v", again, first)
	}
	retired := must[commands.WriteResult](t)(commandstest.Ask(w, commands.Retire, "two", commands.RetireInput{Named: commands.Named{Name: "demo"}}))
	must[commands.WaitResult](t)(commandstest.Ask(w, commands.Wait, "", commands.WaitInput{Name: "demo", Until: []string{"retired"}}))
	w.Until("it is gone", func(v *projections.Views) bool { _, ok := v.Seat("local", "demo"); return !ok })

	spawn2 := commandstest.Drill("demo")
	must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "second-life", spawn2))
	w.Ended("second-life")
	tip := w.Tip()
	// The retirement of the first life, repeated, does nothing to the second.
	if r := must[commands.WriteResult](t)(commandstest.Ask(w, commands.Retire, "two", commands.RetireInput{Named: commands.Named{Name: "demo"}})); r != retired {
		t.Errorf("the repeat is answered\n%+v, the first was\n%+v", r, retired)
	}
	_, err := commandstest.Ask(w, commands.Retire, "two", commands.RetireInput{Named: commands.Named{Name: "demo"}, Grace: "3s"})
	refused(t, err, fault.Conflict, fault.NotExecuted)
	_, err = commandstest.Ask(w, commands.Pause, "one", seatInput("demo"))
	refused(t, err, fault.Conflict, fault.NotExecuted)
	if got := w.Tip(); got != tip {
		t.Errorf("repeats and conflicts appended: the tip went from %d to %d", tip, got)
	}
	// One that pins a life that is over is expired.
	_, err = commandstest.Ask(w, commands.Retire, "three", commands.RetireInput{Named: commands.Named{Name: "demo", UID: string(retired.UID)}})
	refused(t, err, fault.Expired, fault.NotExecuted)
}

// Scenario 3: one goal id from twenty clients at once is one environment and
// one answer; another request under the same id is a conflict.
func TestDuplicateGoalID(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	answers := make([]commands.SpawnResult, 20)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			r, err := commandstest.Ask(w, commands.Spawn, fmt.Sprintf("request-%d", i), withGoal(commandstest.Drill("demo"), "the-goal"))
			if err != nil {
				t.Errorf("client %d: %v", i, err)
			}
			answers[i] = r
		})
	}
	wg.Wait()
	for _, a := range answers {
		if a.UID != answers[0].UID || a.Environment != answers[0].Environment || a.Fingerprint != answers[0].Fingerprint {
			t.Errorf("two answers: %+v and %+v", answers[0], a)
		}
	}
	if g := w.Ended("the-goal"); g.State != events.GoalSucceeded {
		t.Errorf("the goal ended %+v", g)
	}
	if truth := must[[]string](t)(held(w)); len(truth) != 1 {
		t.Errorf("the provider holds %v", truth)
	}
	other := withGoal(commandstest.Drill("demo"), "the-goal")
	other.TTL = "2h"
	_, err := commandstest.Ask(w, commands.Spawn, "late", other)
	refused(t, err, fault.Conflict, fault.NotExecuted)
}

func withGoal(in commands.SpawnInput, goal string) commands.SpawnInput {
	in.Goal = goal
	return in
}

// held is what the provider really holds.
func held(w *commandstest.World) ([]string, error) {
	l, err := w.Drill.List(context.Background())
	var out []string
	for _, e := range l {
		out = append(out, string(e.Environment))
	}
	return out, err
}

// Two names racing: of many goals for one name, one gets it; the others are
// refused at once, or accepted and failed with what holds the name.
func TestRaceForAName(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	var mu sync.Mutex
	won := []events.UID{}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			r, err := commandstest.Ask(w, commands.Spawn, fmt.Sprintf("goal-%d", i), commandstest.Drill("demo"))
			mu.Lock()
			defer mu.Unlock()
			why := fault.From(err)
			if err == nil && r.State == events.GoalFailed {
				why = r.Fault
			}
			switch {
			case why == nil:
				won = append(won, r.UID)
			case why.Code != fault.FailedPrecondition || !slices.ContainsFunc(why.Details, func(d fault.Detail) bool { return d.Kind == "berth.slot-held" }):
				t.Errorf("a loser is told %v %+v", why, why)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d goals got the name: %v", len(won), won)
	}
	w.Until("the winner runs", func(v *projections.Views) bool {
		s, ok := v.Seat("local", "demo")
		return ok && s.Slot.UID == won[0] && s.Live()
	})
}

// Headroom is decided one spawn at a time: what was admitted and is not folded
// yet counts as held (R80, decision 2).
func TestHeadroom(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Capacity: &events.HostCapacity{CPUs: events.MustQuantity("1"), MemoryMiB: 1024, DiskGiB: 10, Slots: 3}})
	var wg sync.WaitGroup
	var mu sync.Mutex
	accepted := 0
	for i := range 10 {
		wg.Go(func() {
			_, err := commandstest.Ask(w, commands.Spawn, fmt.Sprintf("goal-%d", i), commandstest.Drill(fmt.Sprintf("n%d", i)))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				accepted++
				return
			}
			refused(t, err, fault.ResourceExhausted, fault.NotExecuted)
		})
	}
	wg.Wait()
	if accepted != 3 {
		t.Errorf("%d spawns were accepted where 3 have room", accepted)
	}
	in := commandstest.Drill("big")
	in.CPUs = "1.000000001"
	_, err := commandstest.Ask(w, commands.Spawn, "big", in)
	refused(t, err, fault.ResourceExhausted, fault.NotExecuted)
}

// A dry run answers with what would be appended, and appends nothing.
func TestDryRunsAppendNothing(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	w.Spawn("demo")
	w.Ended("spawn-demo")
	must[commands.OperationResult](t)(commandstest.Ask(w, commands.Checkpoint, "c", commands.CheckpointInput{Named: commands.Named{Name: "demo"}}))
	var checkpoint events.Checkpoint
	if err := json.Unmarshal(w.Ended("c").Result, &checkpoint); err != nil {
		t.Fatal(err)
	}
	tip := w.Tip()
	for _, c := range []struct {
		row   *commands.Contract
		in    any
		types []string
	}{
		{commands.Spawn.Contract, commandstest.Drill("other"), []string{"goal.accepted.v1", "uid.reserved.v1", "slot.claimed.v1"}},
		{commands.Reserve.Contract, commandstest.Drill("other"), []string{"slot.claimed.v1"}},
		{commands.Extend.Contract, commands.ExtendInput{Named: commands.Named{Name: "demo"}, By: "1h"}, []string{"environment.operation-planned.v1"}},
		{commands.Pause.Contract, seatInput("demo"), []string{"environment.operation-planned.v1"}},
		{commands.Start.Contract, seatInput("demo"), []string{"command.answered.v1"}},
		{commands.Checkpoint.Contract, commands.CheckpointInput{Named: commands.Named{Name: "demo"}}, []string{"goal.accepted.v1", "environment.operation-planned.v1"}},
		{commands.Restore.Contract, commands.RestoreInput{Named: commands.Named{Name: "demo"}, Checkpoint: checkpoint.ID}, []string{"goal.accepted.v1", "environment.operation-planned.v1"}},
		{commands.Export.Contract, commands.ExportInput{Named: commands.Named{Name: "demo"}}, []string{"goal.accepted.v1", "environment.operation-planned.v1"}},
		{commands.Retire.Contract, commands.RetireInput{Named: commands.Named{Name: "demo"}}, []string{"slot.terminalizing.v1"}},
	} {
		r := w.Send(c.row, commands.Request{ID: "dry", DryRun: true}, c.in)
		if !r.OK || r.Result != nil {
			t.Errorf("dry %s: %+v %v", c.row.Name, r, r.Error)
		}
		b, _ := json.Marshal(r.WouldAppend)
		for _, typ := range c.types {
			if !slices.ContainsFunc(r.WouldAppend, func(d commands.Draft) bool {
				return slices.ContainsFunc(d.Events, func(e commands.DraftEvent) bool { return e.Type == typ })
			}) {
				t.Errorf("dry %s would not append %s: %s", c.row.Name, typ, b)
			}
		}
	}
	if r := w.Send(commands.Pause.Contract, commands.Request{ID: "dry", DryRun: true}, seatInput("nobody")); r.OK || r.Error.Code != fault.NotFound {
		t.Errorf("a dry run of what would be refused: %+v", r)
	}
	if r := w.Send(commands.Ls.Contract, commands.Request{DryRun: true}, commands.LsInput{}); r.OK || r.Error.Code != fault.BadRequest {
		t.Errorf("a dry run of a read: %+v", r)
	}
	if got := w.Tip(); got != tip {
		t.Errorf("dry runs appended: the tip went from %d to %d", tip, got)
	}
}

// lost makes the acknowledgement of commits on a kind of boundary fail, which
// says nothing about whether they are stored.
func lost(l *memory.Log, kind events.Kind, stored bool) {
	fail := func(b events.Boundary) error {
		if b.Kind() == kind {
			return fault.New(fault.Unavailable, "the acknowledgement was lost")
		}
		return nil
	}
	if stored {
		l.SetHooks(memory.Hooks{After: func(rs []events.Record) error { return fail(rs[0].Boundary) }})
		return
	}
	l.SetHooks(memory.Hooks{Before: func(cs []events.Commit) error { return fail(cs[0].Boundary) }})
}

// A goal that was accepted is continued when its claim could not be made, or
// when nobody knows whether it was made: never twice, and never failed.
func TestAcceptedGoalsAreContinued(t *testing.T) {
	for _, stored := range []bool{true, false} {
		for _, kind := range []events.Kind{events.KindUID, events.KindSeat} {
			t.Run(fmt.Sprintf("%s stored=%v", kind, stored), func(t *testing.T) {
				t.Parallel()
				w := commandstest.New(t, commandstest.Config{Idle: true})
				lost(w.Memory, kind, stored)
				r := must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g", commandstest.Drill("demo")))
				if r.State != events.GoalStateAccepted {
					t.Errorf("the goal is %s although nothing is known to have failed", r.State)
				}
				w.Memory.SetHooks(memory.Hooks{})
				w.Until("it is claimed", func(v *projections.Views) bool {
					s, ok := v.Seat("local", "demo")
					return ok && s.Slot.UID == r.UID
				})
				claims := 0
				for _, rec := range must[[]events.Record](t)(w.Log.Load(t.Context(), events.SeatBoundary("local", "demo"), 0)) {
					for _, e := range rec.Events {
						if _, ok := e.(events.SlotClaimed); ok {
							claims++
						}
					}
				}
				if claims != 1 {
					t.Errorf("%d claims of one goal", claims)
				}
			})
		}
	}
}

// A goal that is cancelled between its acceptance and its claim ends as
// cancelled, and the claim that may still be on its way is fenced.
func TestCancelBeforeTheClaim(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	lost(w.Memory, events.KindSeat, false)
	r := must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g", commandstest.Drill("demo")))
	w.Memory.SetHooks(memory.Hooks{Before: func(cs []events.Commit) error {
		for _, e := range cs[0].Events {
			if _, claim := e.(events.SlotClaimed); claim {
				return fault.New(fault.Unavailable, "not now")
			}
		}
		return nil
	}})
	g := must[commands.GoalResult](t)(commandstest.Ask(w, commands.GoalCancel, "c", commands.GoalCancelInput{GoalRef: commands.GoalRef{Goal: "g"}}))
	if g.State != events.GoalCancelled || g.Fault.Outcome != fault.NotExecuted {
		t.Errorf("the goal is %+v", g)
	}
	w.Memory.SetHooks(memory.Hooks{})
	seat := must[aggregates.Seat](t)(w.Shelf.Seat(t.Context(), "local", "demo"))
	if seat.Slot.Held() || seat.Sequence == 0 {
		t.Errorf("the name is %s at sequence %d; want free, and fenced", seat.Status(), seat.Sequence)
	}
	b := events.GoalBoundary(commandstest.Caller, "g")
	state, _, err := w.Shelf.Goal(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	state.State = events.GoalStateAccepted // an attempt that knows nothing of the cancel
	if err := w.Plane.Continue(t.Context(), b, state); err != nil {
		t.Fatal(err)
	}
	if seat := must[aggregates.Seat](t)(w.Shelf.Seat(t.Context(), "local", "demo")); seat.Slot.UID == r.UID {
		t.Error("a cancelled goal was claimed")
	}
	_, err = commandstest.Ask(w, commands.GoalCancel, "c2", commands.GoalCancelInput{GoalRef: commands.GoalRef{Goal: "g"}})
	refused(t, err, fault.FailedPrecondition, fault.NotExecuted)
}
