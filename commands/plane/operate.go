package plane

import (
	"context"
	"encoding/json"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
)

// operationRequest is what the goal of a checkpoint, a restore or an export keeps of its
// request: all that is needed to plan it after a crash.
type operationRequest struct {
	Verb       events.Verb `json:"verb"`
	UID        string      `json:"uid,omitempty"`
	Checkpoint string      `json:"checkpoint,omitempty"`
	MaxBytes   int64       `json:"maxBytes,omitempty"`
}

func (p *Plane) checkpoint(ctx context.Context, c *call, in commands.CheckpointInput) (commands.OperationResult, error) {
	id, err := goalID(c, in.Goal)
	if err != nil {
		return commands.OperationResult{}, err
	}
	in.Goal = string(id)
	return p.operate(ctx, c, id, in.Named, in, operationRequest{Verb: events.VerbCheckpoint, UID: in.UID})
}

func (p *Plane) restore(ctx context.Context, c *call, in commands.RestoreInput) (commands.OperationResult, error) {
	id, err := goalID(c, in.Goal)
	if err != nil {
		return commands.OperationResult{}, err
	}
	in.Goal = string(id)
	return p.operate(ctx, c, id, in.Named, in, operationRequest{Verb: events.VerbRestore, UID: in.UID, Checkpoint: in.Checkpoint})
}

func (p *Plane) export(ctx context.Context, c *call, in commands.ExportInput) (commands.OperationResult, error) {
	id, err := goalID(c, in.Goal)
	if err != nil {
		return commands.OperationResult{}, err
	}
	in.Goal = string(id)
	return p.operate(ctx, c, id, in.Named, in, operationRequest{Verb: events.VerbExport, UID: in.UID, Checkpoint: in.Checkpoint, MaxBytes: in.Bytes()})
}

// operate accepts a goal that is one operation, and plans that operation.
func (p *Plane) operate(ctx context.Context, c *call, id events.GoalID, on commands.Named, in any, req operationRequest) (commands.OperationResult, error) {
	fp, err := commands.Fingerprint(c.Address, string(id), in)
	if err != nil {
		return commands.OperationResult{}, err
	}
	b := events.GoalBoundary(c.Caller, id)
	unlock, err := p.goalLock.lock(ctx, b)
	if err != nil {
		return commands.OperationResult{}, err
	}
	defer unlock()
	g, seq, err := p.accepted(ctx, c, b, fp, func() (goal.State, uint64, error) {
		return p.acceptOperation(ctx, c, b, fp, events.Alias(on.Name), req)
	})
	if err != nil || c.req.DryRun {
		return commands.OperationResult{}, err
	}
	g, last := p.carryOn(b, g)
	a := g.Allocated
	return commands.OperationResult{
		Name: a.Name, Owner: a.Owner, UID: a.UID, GoalID: id, Fingerprint: g.Fingerprint, Environment: a.Environment, Operation: a.Operation,
		Verb: req.Verb, State: g.State, InstanceID: g.Holder, Sequence: max(seq, last), Fault: g.Fault,
	}, nil
}

func (p *Plane) acceptOperation(ctx context.Context, c *call, b events.Boundary, fp string, alias events.Alias, req operationRequest) (goal.State, uint64, error) {
	seat, err := p.Shelf.Seat(ctx, c.owner(), alias)
	if err != nil {
		return goal.State{}, 0, err
	}
	op := events.OperationID(p.IDs.UUID())
	planned, err := p.planned(seat, b, op, &req)
	if err != nil {
		return goal.State{}, 0, err
	}
	request, err := json.Marshal(req)
	if err != nil {
		return goal.State{}, 0, fault.New(fault.Internal, "the request can't be written as JSON").WithOutcome(fault.NotExecuted)
	}
	now := events.MillisUTC(p.Now())
	accepted := events.GoalAccepted{
		Command: string(req.Verb), Fingerprint: fp, Request: request, Holder: seat.Slot.Holder, Ready: now.Add(commands.MaxReady),
		Allocated: events.Allocation{Name: alias, Owner: c.owner(), Actor: events.Actor(alias), UID: seat.Slot.UID, Environment: seat.Environment.ID, Operation: op},
	}
	if c.req.DryRun {
		if err := c.draft(b, 0, []events.Event{accepted}); err != nil {
			return goal.State{}, 0, err
		}
		return goal.State{}, 0, c.draft(seat.Boundary(), seat.Sequence, planned)
	}
	g, r, err := p.Shelf.DecideGoal(ctx, b, p.meta(c, c.req.ID, fp, op), func(g goal.State) ([]events.Event, error) { return g.Accept(accepted) })
	return g, r.Sequence, err
}

// planned is the operation as the seat accepts it, or its refusal. It fills in
// which checkpoint an export is of, so that a continuation means the same one.
func (p *Plane) planned(seat aggregates.Seat, b events.Boundary, op events.OperationID, req *operationRequest) ([]events.Event, error) {
	if err := isCurrent(seat, req.UID); err != nil {
		return nil, err
	}
	e := events.OperationPlanned{Operation: op, Verb: req.Verb, Goal: string(b)}
	switch req.Verb {
	case events.VerbCheckpoint:
		e.Arguments.CheckpointID = string(op)
	case events.VerbRestore:
		e.Arguments.CheckpointID = req.Checkpoint
	case events.VerbExport:
		e.Arguments.MaxBytes = req.MaxBytes
		if _, err := seat.Plan(e, p.Now()); err != nil {
			return nil, err // what can't be exported at all is refused as that
		}
		if req.Checkpoint == "" {
			req.Checkpoint = newestCheckpoint(seat.Environment)
		}
		if req.Checkpoint == "" {
			return nil, fault.New(fault.FailedPrecondition, "%s has no checkpoint to export", seat.Alias).WithHint("`berth checkpoint %s` makes one", seat.Alias)
		}
		e.Arguments.CheckpointID = req.Checkpoint
	}
	return seat.Plan(e, p.Now())
}

// newestCheckpoint is the one that an export without a choice means: the last
// that is asked for, else the last that was made.
func newestCheckpoint(e environment.State) string {
	id := ""
	if n := len(e.Checkpoints); n > 0 {
		id = e.Checkpoints[n-1].ID
	}
	for _, o := range coming(e) {
		if o.Verb == events.VerbCheckpoint {
			id = o.Arguments.CheckpointID
		}
	}
	return id
}

// plan queues the operation of an accepted goal, once. A refusal now ends the
// goal: the seat moved since it was accepted.
func (p *Plane) plan(ctx context.Context, b events.Boundary, g goal.State) (goal.State, uint64, error) {
	a := g.Allocated
	if g.State == events.GoalStateCancelling {
		return p.cancelUnmade(ctx, b, g)
	}
	var req operationRequest
	if err := json.Unmarshal(g.Request, &req); err != nil {
		return p.endGoal(ctx, b, events.GoalFailed, fault.New(fault.Internal, "the goal's request can't be read"))
	}
	req.UID = string(a.UID)
	// The operation's id is also the id of the command that planned it, so that
	// one that is done and forgotten by the journal is not planned again.
	meta := p.goalMeta(b, events.CommandID(a.Operation), g.Fingerprint, a.Operation)
	seat, r, err := p.Shelf.DecideSeat(ctx, a.Owner, a.Name, meta, func(s aggregates.Seat) ([]events.Event, error) {
		if _, done, err := s.Commands.Seen(meta.Command, meta.Fingerprint); done || err != nil {
			return nil, err
		}
		return p.planned(s, b, a.Operation, &req)
	})
	switch {
	case err == nil:
		return g, max(r.Sequence, seat.Sequence), nil
	case final(err):
		return p.endGoal(ctx, b, events.GoalFailed, fault.From(err))
	}
	return g, 0, err
}

// dropPlanned takes the operation of a cancelled goal out of the queue. One
// that was dispatched is reconciled first, and the goal ends with it.
func (p *Plane) dropPlanned(ctx context.Context, c *call, g goal.State) error {
	a := g.Allocated
	_, _, err := p.Shelf.DecideSeat(ctx, a.Owner, a.Name, p.meta(c, "", "", a.Operation), func(s aggregates.Seat) ([]events.Event, error) {
		if op, ok := s.Environment.Find(a.Operation); !ok || op.Phase != environment.Planned {
			return nil, nil
		}
		return []events.Event{events.OperationCancelled{Environment: a.Environment, Operation: a.Operation, Reason: "the goal was cancelled"}}, nil
	})
	return err
}

// isCurrent refuses another lifecycle of the name than the one that is meant.
func isCurrent(seat aggregates.Seat, uid string) error {
	if uid == "" || !seat.Slot.Held() {
		return nil // a name that nobody holds is refused by the decision itself
	}
	return seat.Slot.Is(events.UID(uid))
}

// coming is every operation that is open or waits, in the order of execution.
func coming(e environment.State) []environment.Operation {
	var out []environment.Operation
	if e.Operation != nil {
		out = append(out, *e.Operation)
	}
	return append(out, e.Queue...)
}

// latest is the end of life that stands, or will when every extension that was
// asked for is done; nil if there is none.
func latest(e environment.State) *time.Time {
	at := e.Deadline
	if at == nil {
		at = e.ExpiresAt
	}
	for _, o := range coming(e) {
		for _, t := range []*time.Time{o.Arguments.ExtendTo, o.Arguments.Wanted} {
			if at != nil && t != nil && t.After(*at) {
				at = t
			}
		}
	}
	return at
}
