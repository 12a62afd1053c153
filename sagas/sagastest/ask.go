package sagastest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/events"
	"berth/events/fault"
	"berth/sagas"
)

// Plan is what a spawn of a world asks for.
func Plan() events.Plan {
	return events.Plan{Provider: "drill", Image: events.Image{Kind: "template", Reference: "host"},
		Resources: events.Resources{CPUs: events.MustQuantity("0.25"), MemoryMiB: 128}, Lifetime: time.Hour, Command: []string{"true"}}
}

// Spawn accepts a goal and claims the name, as a manager's command does, and
// returns the goal's boundary.
func (w *World) Spawn(alias events.Alias) events.Boundary {
	w.T.Helper()
	b := w.Accept(alias)
	g, _, err := w.Shelf.Goal(w.T.Context(), b)
	w.must(err)
	w.must(w.Continue(w.T.Context(), b, g))
	return b
}

// Accept is the first half of a spawn: the goal without its claim.
func (w *World) Accept(alias events.Alias) events.Boundary {
	w.T.Helper()
	b := events.GoalBoundary(Caller, events.GoalID("spawn-"+string(alias)+"-"+w.IDs.Token()))
	e := events.GoalAccepted{Command: "spawn", Fingerprint: "f", Request: mustJSON("spawn"), Holder: Instance, Ready: events.MillisUTC(time.Now().Add(30 * time.Second)),
		Allocated: events.Allocation{Name: alias, Owner: Owner, Actor: events.Actor(alias), UID: events.UID(w.IDs.Token()), Environment: events.EnvironmentID(w.IDs.UUID())}}
	_, _, err := w.Shelf.DecideGoal(w.T.Context(), b, w.meta(), func(g goal.State) ([]events.Event, error) { return g.Accept(e) })
	w.must(err)
	return b
}

// Continue is the second half: the claim of the name, or the end of a goal
// that has none by its deadline. It is idempotent.
func (w *World) Continue(ctx context.Context, b events.Boundary, g goal.State) error {
	if g.Command != "spawn" {
		return nil
	}
	if !time.Now().Before(g.Ready) {
		_, _, err := w.Shelf.DecideGoal(ctx, b, w.meta(), func(g goal.State) ([]events.Event, error) { return sagas.Expire(g), nil })
		return err
	}
	plan := Plan()
	if w.Alter != nil {
		w.Alter(&plan)
	}
	deadline := events.MillisUTC(g.AcceptedAt.Add(plan.Lifetime))
	a := g.Allocated
	_, _, err := w.Shelf.DecideSeat(ctx, a.Owner, a.Name, w.meta(), func(s aggregates.Seat) ([]events.Event, error) {
		return s.Claim(aggregates.Claim{UID: a.UID, Environment: a.Environment, Activation: events.OperationID("activate-" + string(a.UID)), Goal: b,
			Holder: Instance, Plan: plan, Target: events.TargetRunning, Deadline: &deadline, Ready: g.Ready})
	})
	if fault.CodeOf(err) == fault.FailedPrecondition {
		why := fault.From(err)
		_, _, err = w.Shelf.DecideGoal(ctx, b, w.meta(), func(g goal.State) ([]events.Event, error) {
			return g.End(events.GoalFailed, why, nil), nil
		})
	}
	return err
}

// Retire asks for the end of a seat.
func (w *World) Retire(alias events.Alias) {
	w.T.Helper()
	_, _, err := w.Shelf.DecideSeat(w.T.Context(), Owner, alias, w.meta(), func(s aggregates.Seat) ([]events.Event, error) {
		return s.Retire("", "retired", 0)
	})
	w.must(err)
}

// Ask queues a mutation and returns its operation id and the refusal, if any.
func (w *World) Ask(alias events.Alias, verb events.Verb, args events.Arguments) (events.OperationID, error) {
	id := events.OperationID(w.IDs.UUID())
	_, _, err := w.Shelf.DecideSeat(w.T.Context(), Owner, alias, w.meta(), func(s aggregates.Seat) ([]events.Event, error) {
		return s.Plan(events.OperationPlanned{Operation: id, Verb: verb, Arguments: args}, time.Now())
	})
	return id, err
}

// AskGoal is Ask for a checkpoint or an export with a goal of its own.
func (w *World) AskGoal(alias events.Alias, verb events.Verb, args events.Arguments) (events.OperationID, events.Boundary) {
	w.T.Helper()
	id := events.OperationID(w.IDs.UUID())
	b := events.GoalBoundary(Caller, events.GoalID(string(verb)+"-"+w.IDs.Token()))
	s := w.Seat(alias)
	_, _, err := w.Shelf.DecideGoal(w.T.Context(), b, w.meta(), func(g goal.State) ([]events.Event, error) {
		return g.Accept(events.GoalAccepted{Command: string(verb), Fingerprint: "f", Request: mustJSON("x"), Holder: Instance,
			Allocated: events.Allocation{Name: alias, Owner: Owner, Environment: s.Environment.ID, Operation: id}})
	})
	w.must(err)
	_, _, err = w.Shelf.DecideSeat(w.T.Context(), Owner, alias, w.meta(), func(s aggregates.Seat) ([]events.Event, error) {
		return s.Plan(events.OperationPlanned{Operation: id, Verb: verb, Arguments: args, Goal: string(b)}, time.Now())
	})
	w.must(err)
	return id, b
}

// Cancel asks a goal to end.
func (w *World) Cancel(b events.Boundary) error {
	_, _, err := w.Shelf.DecideGoal(w.T.Context(), b, w.meta(), func(g goal.State) ([]events.Event, error) { return g.Cancel("graceful") })
	return err
}

// WriteOff gives an uncertain seat up, as an operator may.
func (w *World) WriteOff(alias events.Alias) {
	w.T.Helper()
	s := w.Seat(alias)
	seat, inherited, err := s.WriteOff(Caller, "rehearsal")
	w.must(err)
	_, err = w.Log.CommitAll(w.T.Context(), []events.Commit{
		{Boundary: s.Boundary(), Expect: s.Sequence, Meta: w.meta(), Events: seat},
		{Boundary: events.EnvironmentBoundary(s.Environment.ID), Meta: w.meta(), Events: inherited},
	})
	w.must(err)
}

// Seat is the seat now.
func (w *World) Seat(alias events.Alias) aggregates.Seat {
	w.T.Helper()
	s, err := w.Shelf.Seat(context.WithoutCancel(w.T.Context()), Owner, alias)
	w.must(err)
	return s
}

// Goal is the goal now.
func (w *World) Goal(b events.Boundary) goal.State {
	w.T.Helper()
	g, _, err := w.Shelf.Goal(context.WithoutCancel(w.T.Context()), b)
	w.must(err)
	return g
}

// Status is a condition for Until.
func (w *World) Status(alias events.Alias, want aggregates.Status) func() bool {
	return func() bool { return w.Seat(alias).Status() == want }
}

// Ended is a condition for Until.
func (w *World) Ended(b events.Boundary) func() bool {
	return func() bool { return w.Goal(b).State.Terminal() }
}

// Story is everything in the log, a line each, for a person.
func (w *World) Story() string {
	var b strings.Builder
	start := time.Time{}
	_ = w.Log.Scan(context.Background(), 0, func(r events.Record) error {
		if start.IsZero() {
			start = r.Meta.Time
		}
		for _, e := range r.Events {
			fmt.Fprintf(&b, "%4d %8s e%d %s %s %s\n", r.Sequence, r.Meta.Time.Sub(start), r.Meta.Writer.Epoch, r.Boundary, e.EventType(), mustJSON(e))
		}
		return nil
	})
	for _, c := range w.Provider.Status().Calls {
		fmt.Fprintf(&b, "     %8s call %s %s %s %s\n", c.At.Sub(start), c.Verb, c.Alias, c.Operation, c.Fault)
	}
	return b.String()
}

// Creations is how many environments the provider was made to hold, ever.
func (w *World) Creations() int {
	s := w.Provider.Status()
	n := 0
	for _, e := range append(s.Environments, s.Tombstones...) {
		for _, o := range e.Operations {
			if o.Verb == "reserve" && o.State == "landed" {
				n++
			}
		}
	}
	return n
}
