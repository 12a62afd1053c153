//go:build linux

package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/projections"
)

// name is the one name of a world.
const name = "web"

// asks is how often one thing is asked for, at most: a life that is killed
// twice loses at most two calls before they land.
const asks = 3

// life is what clients were told of one life.
type life struct {
	spawned commands.SpawnResult
	file    events.File
}

// awaited is a goal at its end.
func (w *world) awaited(goal string) commands.GoalResult {
	w.Helper()
	var g commands.GoalResult
	w.do("the end of goal "+goal, func(ctx context.Context, c *client.Client) (err error) {
		g, err = client.Call(ctx, c, commands.GoalGet, commands.GoalRef{Goal: goal})
		if err == nil && !g.Ended {
			err = notYet("%s, %s", g.State, g.Phase)
		}
		return err
	})
	return g
}

// until waits for what inspect shows.
func (w *world) until(what string, cond func(projections.Inspection) bool) projections.Inspection {
	w.Helper()
	var r projections.Inspection
	w.do(what, func(ctx context.Context, c *client.Client) (err error) {
		r, err = client.Call(ctx, c, commands.Inspect, commands.Named{Name: name}, client.WithMinSequence(w.since))
		if err == nil && !cond(r) {
			err = notYet("%s, open %+v, queue %+v", r.Status, r.Operation, r.Queue)
		}
		return err
	})
	return r
}

func status(s aggregates.Status) func(projections.Inspection) bool {
	return func(r projections.Inspection) bool { return r.Status == s && quiet(r) }
}

// quiet says that nothing is open and nothing is queued.
func quiet(r projections.Inspection) bool {
	open := r.Operation != nil && (r.Operation.State == environment.Dispatched || r.Operation.State == environment.Uncertain)
	return !open && len(r.Queue) == 0
}

// spawn asks for the life until it is answered, and waits for its goal.
func (w *world) spawn(in commands.SpawnInput) commands.SpawnResult {
	w.Helper()
	in.Name, in.Goal = name, "spawn-"+name
	id := w.command()
	var first commands.SpawnResult
	w.do("spawn", func(ctx context.Context, c *client.Client) (err error) {
		first, err = client.Call(ctx, c, commands.Spawn, in, id)
		return err
	})
	w.goals++
	w.since = max(w.since, first.Sequence) // the views may be behind the log that goals are read from
	if g := w.awaited(in.Goal); g.State != events.GoalSucceeded {
		w.Fatalf("the spawn ended: %s, %v\n%s", g.State, g.Fault, w.out.String())
	}
	// The same goal once more is the same answer for ever (scenario 3).
	w.do("spawn again", func(ctx context.Context, c *client.Client) error {
		again, err := client.Call(ctx, c, commands.Spawn, in, id)
		if err == nil && (again.UID != first.UID || again.Environment != first.Environment) {
			w.Fatalf("one goal was answered twice: %+v, then %+v", first, again)
		}
		return err
	})
	return first
}

// write asks for one write until it is answered.
func write[In commands.Input](w *world, c commands.Command[In, commands.WriteResult], in In) (r commands.WriteResult) {
	w.Helper()
	id := w.command()
	w.do(c.Name, func(ctx context.Context, on *client.Client) (err error) {
		r, err = client.Call(ctx, on, c, in, id)
		return err
	})
	w.since = max(w.since, r.Sequence)
	return r
}

// achieve writes until the name is as it should be. What is proved never to
// have landed is the client's to ask for again, under another id; nothing else
// is.
func achieve[In commands.Input](w *world, c commands.Command[In, commands.WriteResult], in In, want func(projections.Inspection) bool) {
	w.Helper()
	for range asks {
		write(w, c, in)
		var never bool
		w.until(c.Name, func(r projections.Inspection) bool {
			never = quiet(r) && r.Operation != nil && r.Operation.State == environment.Excluded
			return never || want(r)
		})
		if !never {
			return
		}
	}
	w.Fatalf("%s was proved never to have landed too often", c.Name)
}

// operate asks for a goal on the name and waits for its end; one that was
// proved never to have landed is asked for again under another id.
func operate[In commands.Input](w *world, c commands.Command[In, commands.OperationResult], in func(goal string) In) commands.GoalResult {
	w.Helper()
	for n := 1; n <= asks; n++ {
		goal, id := fmt.Sprintf("%s-%d", c.Name, n), w.command()
		var asked commands.OperationResult
		w.do(c.Name, func(ctx context.Context, on *client.Client) (err error) {
			asked, err = client.Call(ctx, on, c, in(goal), id)
			return err
		})
		w.goals++
		g := w.awaited(goal)
		if g.State == events.GoalSucceeded {
			return g
		}
		w.since = max(w.since, asked.Sequence)
		r := w.until(c.Name, quiet)
		never := r.Operation != nil && r.Operation.ID == asked.Operation && r.Operation.State == environment.Excluded
		if !never {
			w.Fatalf("goal %s ended: %s, %v\n%s", goal, g.State, g.Fault, w.out.String())
		}
	}
	w.Fatalf("%s was proved never to have landed too often", c.Name)
	return commands.GoalResult{}
}

// live goes through a whole life and every verb, up to the retired name.
func (w *world) live(in commands.SpawnInput, longer time.Duration) life {
	w.Helper()
	l := life{spawned: w.spawn(in)}
	named := commands.Named{Name: name}
	r := w.until("running", status(aggregates.StatusRunning))

	if w.ready != nil {
		w.ready()
	}
	to := time.UnixMilli(*r.Deadline).Add(longer).UTC().Truncate(time.Second)
	achieve(w, commands.Extend, commands.ExtendInput{Named: named, Until: to.Format(time.RFC3339)}, func(r projections.Inspection) bool {
		return quiet(r) && r.Deadline != nil && *r.Deadline >= to.UnixMilli()
	})
	achieve(w, commands.Pause, commands.SeatInput{Named: named}, status(aggregates.StatusPaused))
	achieve(w, commands.Resume, commands.SeatInput{Named: named}, status(aggregates.StatusRunning))

	made := operate(w, commands.Checkpoint, func(goal string) commands.CheckpointInput {
		return commands.CheckpointInput{Named: named, Goal: goal}
	})
	var cp events.Checkpoint
	w.must(json.Unmarshal(made.Result, &cp))
	operate(w, commands.Restore, func(goal string) commands.RestoreInput {
		return commands.RestoreInput{Named: named, Goal: goal, Checkpoint: cp.ID}
	})
	g := operate(w, commands.Export, func(goal string) commands.ExportInput {
		return commands.ExportInput{Named: named, Goal: goal}
	})
	w.must(json.Unmarshal(g.Result, &l.file))
	w.retire()
	return l
}

func (w *world) retire() {
	w.Helper()
	write(w, commands.Retire, commands.RetireInput{Named: commands.Named{Name: name}, Grace: "0s"})
	w.until("retired", status(aggregates.StatusRetired))
}
