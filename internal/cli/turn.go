package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"berth/aggregates/turns"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/events/fault"
)

// defaultTurn is how long a seat has for a turn if nobody says.
const defaultTurn = 10 * time.Minute

type turnFlags struct {
	goalFlags
	file     string
	deadline time.Duration
	from     string
}

func (a *app) turnCommand() *cobra.Command {
	var f turnFlags
	c := &cobra.Command{
		Use: "turn NAME PAYLOAD", Short: short(commands.Turn.Contract), ValidArgsFunction: a.completeNames,
		Args: func(c *cobra.Command, in []string) error {
			if f.file != "" {
				return args("NAME")(c, in)
			}
			return args("NAME", "PAYLOAD")(c, in)
		},
		Long: `Ask a running seat to take a turn. The seat reads the payload with ` + "`berth turn-pending`" + `
and gives the turn back with ` + "`berth turn-yield`" + `; one that it does not give back ends at
the deadline, and one of a seat that is retired ends with it. Turns of one seat wait in
the order of their acceptance, and only the oldest is shown. The payload is public text:
it is kept in the log.`,
		Example: "  berth turn demo 'Review the open changes.' --deadline 30m --wait\n  berth turn demo --file task.md --goal review-7\n  berth turn demo --file - < task.md",
		RunE: func(c *cobra.Command, in []string) error {
			payload, err := f.payload(a, in)
			if err != nil {
				return err
			}
			x := commands.TurnInput{Named: f.named(in), Goal: f.goal, Payload: payload, DeadlineMs: f.deadline.Milliseconds(), HandoffFrom: f.from}
			return runTurn(c, a, &f, x)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.uid, "uid", "", "only if this is the name's current lifecycle uid")
	fl.BoolVar(&f.dry, "dry-run", false, "print the events that would be appended, and append nothing")
	f.wait.flags(c, false)
	fl.StringVar(&f.goal, "goal", "", "id of the goal: the same id is the same goal for ever")
	fl.StringVar(&f.file, "file", "", "file that holds the payload instead of PAYLOAD; - is standard input")
	fl.DurationVar(&f.deadline, "deadline", defaultTurn, "how long the seat has from now")
	fl.StringVar(&f.from, "from", "", "who handed the turn off to this seat")
	return c
}

func (f *turnFlags) payload(a *app, in []string) (string, error) {
	if f.file == "" {
		return in[1], nil
	}
	return a.textOf("--file", f.file, commands.MaxPayload)
}

func runTurn(c *cobra.Command, a *app, f *turnFlags, in commands.TurnInput) error {
	return submit(c, a, commands.Turn, in, f.dry, func(ctx context.Context, l *link, r commands.TurnResult) error {
		if wait, _ := f.wait.wanted(c, false); !wait {
			return a.show(r, func(w io.Writer) {
				fmt.Fprintf(w, "%s has the turn %s until %s\nnext: berth goal %s --wait\n", r.Name, r.GoalID, r.DeadlineAt, r.GoalID)
			})
		}
		a.say("%s has the turn %s; waiting for its end ...", r.Name, r.GoalID)
		got, err := ended(ctx, l, r.GoalID)
		if err != nil {
			return err
		}
		r.State, r.Fault = got.State, got.Fault
		return a.sayGivenBack(r, got.Result)
	})
}

// sayGivenBack tells how a seat gave a turn back.
func (a *app) sayGivenBack(r commands.TurnResult, result json.RawMessage) error {
	var end turns.Result
	if err := json.Unmarshal(result, &end); err != nil {
		return fault.New(fault.ContractMismatch, "what the seat gave back can't be read; the manager may be of another version").WithOutcome(fault.Executed)
	}
	return a.show(struct {
		commands.TurnResult
		Yield turns.Result `json:"yield"`
	}{r, end}, func(w io.Writer) {
		fmt.Fprintln(w, oneLine(fmt.Sprintf("%s gave the turn back: %s %s", r.Name, end.Status, end.To)))
		if end.Note != "" {
			fmt.Fprintln(w, paragraphs(end.Note))
		}
	})
}

// selfFlags say which seat asks.
type selfFlags struct{ as, uid string }

func (f *selfFlags) flags(a *app, c *cobra.Command) {
	c.Flags().StringVar(&f.as, "as", "", "the seat that asks, by its name; in a seat, that one if absent")
	c.Flags().StringVar(&f.uid, "uid", "", "its lifecycle uid; the current one if absent")
	_ = c.RegisterFlagCompletionFunc("as", a.completeNames) // only fails for a flag that is not there
}

// askSelf calls one command as a seat.
func askSelf[In commands.Input, Out any](ctx context.Context, a *app, f *selfFlags, c commands.Command[In, Out], in In) (Out, error) {
	var none Out
	if err := in.Check(); err != nil {
		return none, err
	}
	if dir := a.Env(events.EnvDoor); f.as == "" && dir != "" {
		return askAtDoor(ctx, a, dir, c, in)
	}
	if f.as == "" {
		return none, usage("%s is asked by a seat: say which with --as NAME", c.Name)
	}
	l, err := a.open(ctx)
	if err != nil {
		return none, err
	}
	defer l.close()
	who := events.Caller{Owner: l.Caller().Owner, Actor: events.Actor(f.as), UID: events.UID(f.uid)}
	if f.uid == "" {
		r, err := client.Call(ctx, l.Client, commands.Inspect, commands.Named{Name: f.as})
		if err != nil {
			return none, err
		}
		who.UID = r.Slot.UID
	}
	if _, err := commands.ParseCaller(string(who.Owner), string(who.Actor), string(who.UID)); err != nil {
		return none, err
	}
	return client.Call(ctx, client.Connect(l.Conn(), l.Space(), who), c, in)
}

func (a *app) turnPendingCommand() *cobra.Command {
	var f selfFlags
	c := &cobra.Command{
		Use: "turn-pending", Short: short(commands.TurnPending.Contract), Args: args(),
		Example: "  berth turn-pending --as demo\n  berth turn-pending --as demo -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := askSelf(ctx, a, &f, commands.TurnPending, commands.Empty{})
			if err != nil {
				return err
			}
			return a.show(r, func(w io.Writer) {
				if len(r.Turns) == 0 {
					fmt.Fprintln(w, "no turn waits")
				}
				for _, t := range r.Turns {
					fmt.Fprintf(w, "turn %s, until %s\n%s\n", t.GoalID, t.DeadlineAt, paragraphs(t.Payload))
				}
			})
		},
	}
	f.flags(a, c)
	return c
}

func (a *app) turnYieldCommand() *cobra.Command {
	var f selfFlags
	var in commands.TurnYieldInput
	c := &cobra.Command{
		Use: "turn-yield GOAL", Short: short(commands.TurnYield.Contract), Args: args("GOAL"),
		Example: "  berth turn-yield review-7 --as demo --note 'All of it is reviewed.'\n  berth turn-yield review-7 --as demo --status handoff --to other",
		RunE: func(c *cobra.Command, words []string) error {
			in.GoalID = words[0]
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := askSelf(ctx, a, &f, commands.TurnYield, in)
			if err != nil {
				return err
			}
			return a.show(r, func(w io.Writer) { fmt.Fprintf(w, "turn %s is given back: %s\n", r.GoalID, r.State) })
		},
	}
	f.flags(a, c)
	c.Flags().StringVar((*string)(&in.Status), "status", string(events.TurnDone), "done, blocked or handoff")
	c.Flags().StringVar(&in.To, "to", "", "handoff: the name whose turn it is next")
	c.Flags().StringVar(&in.Note, "note", "", "what is to be said about it")
	return c
}

func (a *app) stopSelfCommand() *cobra.Command {
	var f selfFlags
	var in commands.StopInput
	c := &cobra.Command{
		Use: "stop-self", Short: short(commands.Stop.Contract), Args: args(),
		Long:    "End the life of the seat that asks. It is accepted, and the end follows; `berth retire NAME` is how a person ends it.",
		Example: "  berth stop-self --as demo --grace 10s",
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := askSelf(ctx, a, &f, commands.Stop, in)
			if err != nil {
				return err
			}
			return a.show(r, func(w io.Writer) { fmt.Fprintf(w, "the end of %s is accepted, at sequence %d\n", r.Name, r.Sequence) })
		},
	}
	f.flags(a, c)
	c.Flags().StringVar(&in.Grace, "grace", "", "how long the seat may take to stop before it is killed")
	return c
}
