package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/commands"
	"berth/events/fault"
)

// seatFlags is what every verb on one name takes.
type seatFlags struct {
	uid  string
	dry  bool
	wait waitFlags
}

func (f *seatFlags) flags(c *cobra.Command) {
	c.Flags().StringVar(&f.uid, "uid", "", "only if this is the name's current lifecycle uid")
	c.Flags().BoolVar(&f.dry, "dry-run", false, "print the events that would be appended, and append nothing")
	f.wait.flags(c, true)
}

func (f *seatFlags) named(in []string) commands.Named { return commands.Named{Name: in[0], UID: f.uid} }

// verb describes a write on one name.
type verb[In commands.Input] struct {
	use, short, long, example string
	command                   commands.Command[In, commands.WriteResult]
	input                     func(f *seatFlags, in []string) (In, error)
	flags                     func(c *cobra.Command)
	// until are the statuses that end the wait; empty: the operation's end.
	until []aggregates.Status
	said  func(r commands.WriteResult) string
	next  string // with %s for the name
}

func verbCommand[In commands.Input](a *app, v verb[In]) *cobra.Command {
	var f seatFlags
	c := &cobra.Command{
		Use: v.use + " NAME", Short: v.short, Long: v.long, Example: v.example, Args: args("NAME"), ValidArgsFunction: a.completeNames,
		RunE: func(c *cobra.Command, in []string) error {
			input, err := v.input(&f, in)
			if err != nil {
				return err
			}
			return runVerb(c, a, v, &f, input)
		},
	}
	f.flags(c)
	if v.flags != nil {
		v.flags(c)
	}
	return c
}

func runVerb[In commands.Input](c *cobra.Command, a *app, v verb[In], f *seatFlags, in In) error {
	return submit(c, a, v.command, in, f.dry, func(ctx context.Context, l *link, r commands.WriteResult) error {
		waited, _ := f.wait.wanted(c, true)
		if waited {
			a.say("accepted; waiting for %s of %s to end ...", v.use, r.Name)
			if err := a.awaitWrite(ctx, l, v.use, v.until, c.Flags().Changed("wait"), &r); err != nil {
				return err
			}
		}
		return a.show(r, func(w io.Writer) {
			if !waited {
				fmt.Fprintf(w, "%s of %s is accepted, at sequence %d\nnext: berth inspect %s\n", v.use, r.Name, r.Sequence, r.Name)
				return
			}
			fmt.Fprintln(w, oneLine(v.said(r)))
			if v.next != "" {
				fmt.Fprintf(w, "next: "+v.next+"\n", r.Name)
			}
		})
	})
}

// awaitWrite waits for the end of what was accepted, and puts into r how the
// name stands then. An operation that was refused is an error, and so is one
// whose answer was lost: it is held, and the wait would have no end.
func (a *app) awaitWrite(ctx context.Context, l *link, what string, until []aggregates.Status, explicit bool, r *commands.WriteResult) error {
	var got commands.WaitResult
	var err error
	switch {
	case len(until) > 0:
		got, err = awaitStatus(ctx, l, until, explicit, r)
	case r.Operation == "":
		return nil
	default:
		got, err = a.awaitOperation(ctx, l, what, explicit, *r)
	}
	if err != nil {
		return err
	}
	if got.Status != "" {
		r.Status = got.Status
	}
	if got.Deadline != "" && r.Deadline != "" {
		r.Deadline = got.Deadline // what is, not what was asked for
	}
	op := got.Operation
	switch {
	case op == nil || op.ID != r.Operation:
		return stopped(what, until, r)
	case (op.State == environment.Refused || op.State == environment.Excluded) && op.Fault != nil:
		return op.Fault
	case op.State == environment.Excluded:
		return fault.New(fault.FailedPrecondition, "%s of %s was not done: it is proved that it never will be", what, r.Name).WithHint("you may ask again")
	}
	return stopped(what, until, r)
}

// awaitOperation waits for the end of one operation. While one of its name is
// uncertain the wait may have no end: without an explicit --wait it lasts a
// glance more and ends as uncertain; with it a person is told what it waits for.
func (a *app) awaitOperation(ctx context.Context, l *link, what string, explicit bool, r commands.WriteResult) (commands.WaitResult, error) {
	got, err := l.WaitOperation(ctx, r.Name, r.UID, r.Operation, r.Sequence, aggregates.StatusUncertain)
	if err != nil || got.Status != aggregates.StatusUncertain || got.Operation == nil {
		return got, err
	}
	held := queued(what, r)
	switch got.Operation.State {
	case environment.Uncertain, environment.Dispatched:
		held = uncertain(what, &r)
	case environment.Planned:
	default:
		return got, nil
	}
	if explicit {
		a.say("%s", oneLine(fault.From(held).Message))
		return l.WaitOperation(ctx, r.Name, r.UID, r.Operation, r.Sequence)
	}
	short, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	settled, err := l.WaitOperation(short, r.Name, r.UID, r.Operation, r.Sequence)
	if err != nil && short.Err() == context.DeadlineExceeded {
		return got, held // also where --timeout is shorter than a glance
	}
	return settled, err
}

// awaitStatus waits for one of the statuses. While an operation is uncertain
// the wait may have no end: without an explicit --wait it lasts a glance more.
func awaitStatus(ctx context.Context, l *link, until []aggregates.Status, explicit bool, r *commands.WriteResult) (commands.WaitResult, error) {
	if explicit || slices.Contains(until, aggregates.StatusUncertain) {
		return l.WaitStatus(ctx, r.Name, r.UID, r.Sequence, until...)
	}
	got, err := l.WaitStatus(ctx, r.Name, r.UID, r.Sequence, append(slices.Clone(until), aggregates.StatusUncertain)...)
	if err != nil || got.Status != aggregates.StatusUncertain {
		return got, err
	}
	short, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	settled, err := l.WaitStatus(short, r.Name, r.UID, r.Sequence, until...)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		return got, queued("its end", *r)
	}
	return settled, err
}

// queued is the error of a wait for what has to wait itself, behind an
// operation that is uncertain.
func queued(what string, r commands.WriteResult) error {
	return &uncertainError{fault.New(fault.Unavailable, "an operation of %s is uncertain: %s is accepted, and queued until it is proved what became of that", r.Name, what).
		WithOutcome(fault.Unknown).WithDetail("berth.operation-uncertain", "name", string(r.Name)).
		WithHint("`berth inspect %s --explain` shows what is known; --wait waits on", r.Name)}
}

// stopped is the error of a wait that ended somewhere else than was asked for.
func stopped(what string, until []aggregates.Status, r *commands.WriteResult) error {
	if len(until) == 0 || r.Status == until[0] {
		return nil
	}
	switch r.Status {
	case aggregates.StatusUncertain:
		return uncertain(what, r)
	case aggregates.StatusWrittenOff:
		return nil
	}
	return fault.New(fault.FailedPrecondition, "%s of %s did not come to its end: it is %s", what, r.Name, r.Status).
		WithOutcome(fault.Executed).WithHint("berth history %s", r.Name)
}

func uncertain(what string, r *commands.WriteResult) error {
	return &uncertainError{fault.New(fault.Unavailable, "the answer to %s of %s was lost: it is uncertain and held until it is proved what became of it", what, r.Name).
		WithOutcome(fault.Unknown).WithDetail("berth.operation-uncertain", "name", string(r.Name), "operation", string(r.Operation)).
		WithHint("do not do it again under another name; `berth inspect %s --explain` shows what is known", r.Name)}
}

func (a *app) plainVerb(c commands.Command[commands.SeatInput, commands.WriteResult], said, next string, until ...aggregates.Status) *cobra.Command {
	return verbCommand(a, verb[commands.SeatInput]{
		use: c.Name, short: short(c.Contract), example: "  berth " + c.Name + " demo", command: c, until: until, next: next,
		input: func(f *seatFlags, in []string) (commands.SeatInput, error) {
			return commands.SeatInput{Named: f.named(in)}, nil
		},
		said: func(r commands.WriteResult) string {
			if !r.Changed {
				return string(r.Name) + " " + said + " already"
			}
			return string(r.Name) + " " + said
		},
	})
}

func (a *app) provisionCommand() *cobra.Command {
	return a.plainVerb(commands.Provision, "is provisioned", "berth start %s")
}

func (a *app) startCommand() *cobra.Command {
	return a.plainVerb(commands.Start, "is running", "berth logs %s -f", aggregates.StatusRunning, aggregates.StatusStopped, aggregates.StatusFailed,
		aggregates.StatusUncertain, aggregates.StatusRetired)
}

func (a *app) pauseCommand() *cobra.Command {
	return a.plainVerb(commands.Pause, "is paused; its lifetime runs on", "berth resume %s")
}

func (a *app) resumeCommand() *cobra.Command {
	return a.plainVerb(commands.Resume, "is running", "berth logs %s -f")
}

func (a *app) extendCommand() *cobra.Command {
	var by, until string
	return verbCommand(a, verb[commands.ExtendInput]{
		use: "extend", short: short(commands.Extend.Contract), example: "  berth extend demo --by 30m\n  berth extend demo --until 2026-12-31T18:00:00Z", command: commands.Extend,
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&by, "by", "", "how much longer, such as 30m")
			c.Flags().StringVar(&until, "until", "", "until when: RFC 3339, or a duration from now")
		},
		input: func(f *seatFlags, in []string) (commands.ExtendInput, error) {
			x := commands.ExtendInput{Named: f.named(in), By: by}
			if until != "" {
				t, err := parseTime("--until", until, time.Now())
				if err != nil {
					return x, err
				}
				x.Until = t.Format(time.RFC3339)
			}
			return x, nil
		},
		said: func(r commands.WriteResult) string { return fmt.Sprintf("%s lives until %s", r.Name, r.Deadline) },
		next: "berth inspect %s",
	})
}

func (a *app) retireCommand() *cobra.Command {
	var grace string
	return verbCommand(a, verb[commands.RetireInput]{
		use: "retire", short: short(commands.Retire.Contract), example: "  berth retire demo\n  berth retire demo --grace 30s", command: commands.Retire,
		long: `End a life: stop the seat, prove that it exited, revoke its credentials, destroy the
environment, and only then free the name. While an operation is uncertain, the end
is queued behind it.`,
		flags: func(c *cobra.Command) {
			c.Flags().StringVar(&grace, "grace", "", "how long the seat may take to stop before it is killed (default 10s)")
		},
		input: func(f *seatFlags, in []string) (commands.RetireInput, error) {
			return commands.RetireInput{Named: f.named(in), Grace: grace}, nil
		},
		until: []aggregates.Status{aggregates.StatusRetired, aggregates.StatusWrittenOff, aggregates.StatusHeld},
		said: func(r commands.WriteResult) string {
			return string(r.Name) + " is retired; its name is free, its history stays"
		},
		next: "berth history %s",
	})
}

func (a *app) writeOffCommand() *cobra.Command {
	var reason string
	return verbCommand(a, verb[commands.WriteOffInput]{
		use: "write-off", short: short(commands.WriteOff.Contract), example: "  berth write-off demo --reason 'the provider account was closed'", command: commands.WriteOff,
		long: `Give up an environment whose operation stays uncertain. Its name and reservation are
freed without proof; it goes on being looked for, and is destroyed when it is found.
History, usage and doctor show it for ever. Be sure that two of it would do no harm.`,
		flags: func(c *cobra.Command) { c.Flags().StringVar(&reason, "reason", "", "why; history shows it for ever") },
		input: func(f *seatFlags, in []string) (commands.WriteOffInput, error) {
			return commands.WriteOffInput{Named: f.named(in), Reason: reason}, nil
		},
		said: func(r commands.WriteResult) string {
			return fmt.Sprintf("%s is written off: environment %s goes on being looked for", r.Name, r.Environment)
		},
		next: "berth history %s",
	})
}
