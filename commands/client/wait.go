package client

import (
	"context"
	"time"

	"berth/aggregates"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
)

// waitStep is how long one request waits at the manager; the client asks again
// until its context ends.
const waitStep = 30 * time.Second

// WaitGoal waits until a goal of the caller ended, and returns it however it
// ended. It outlives a restart of the manager. When ctx ends before, the error
// is deadline-exceeded (or cancelled) and the goal goes on.
func (c *Client) WaitGoal(ctx context.Context, id events.GoalID) (commands.GoalResult, error) {
	r, err := c.wait(ctx, "goal "+string(id), commands.WaitInput{Goal: string(id)}, 0)
	if err != nil || r.Goal == nil {
		return commands.GoalResult{}, err
	}
	return *r.Goal, nil
}

// WaitStatus waits until a name has one of the statuses, from a fold of at
// least sequence since. With uid, another lifecycle of the name counts as the
// end of that one.
func (c *Client) WaitStatus(ctx context.Context, name events.Alias, uid events.UID, since uint64, until ...aggregates.Status) (commands.WaitResult, error) {
	in := commands.WaitInput{Name: string(name), UID: string(uid)}
	for _, s := range until {
		in.Until = append(in.Until, string(s))
	}
	return c.wait(ctx, string(name), in, since)
}

// WaitOperation waits until an operation of a name ended, or the name has one
// of the statuses. Operation is null in the result if its life ended or the
// journal dropped it.
func (c *Client) WaitOperation(ctx context.Context, name events.Alias, uid events.UID, op events.OperationID, since uint64, until ...aggregates.Status) (commands.WaitResult, error) {
	in := commands.WaitInput{Name: string(name), UID: string(uid), Operation: string(op)}
	for _, s := range until {
		in.Until = append(in.Until, string(s))
	}
	return c.wait(ctx, "operation "+string(op), in, since)
}

func (c *Client) wait(ctx context.Context, what string, in commands.WaitInput, since uint64) (commands.WaitResult, error) {
	var last commands.WaitResult
	for n := 0; ; {
		asked := time.Now()
		step := waitStep
		if d, ok := ctx.Deadline(); ok {
			step = max(min(step, time.Until(d)), 0)
		}
		in.Wait = step.Round(time.Millisecond).String()
		r, err := Call(ctx, c, commands.Wait, in, WithMinSequence(since), WithTimeout(step+commands.DefaultTimeout))
		switch {
		case err == nil && r.Met:
			return r, nil
		case err == nil:
			last = r
		case !fault.From(err).Retryable:
			return last, over(ctx, what, last, err)
		}
		if err != nil || time.Since(asked) < step/2 {
			// The manager did not wait: it is stopping, or not there. The pause
			// grows, so that this is no polling.
			n++
			pause(ctx, n)
		}
		if ctx.Err() != nil {
			return last, over(ctx, what, last, err)
		}
	}
}

// over is the error of a wait that was given up: what was waited for goes on.
func over(ctx context.Context, what string, last commands.WaitResult, err error) error {
	if ctx.Err() == nil {
		return err
	}
	at := string(last.Status)
	if last.Goal != nil {
		at = string(last.Goal.State)
	}
	if at == "" {
		at = "not known"
	}
	code := fault.DeadlineExceeded
	if ctx.Err() == context.Canceled {
		code = fault.Cancelled
	}
	return fault.New(code, "the wait for %s ended before it did; it is %s", what, at).WithOutcome(fault.NotExecuted).WithHint("what was asked for is kept: wait again, or see with `berth inspect NAME --explain` what it waits for")
}
