package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

func (a *app) intentCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "intent", Short: "What a manager may do once, in your name", Args: args(),
		Long: `Let one manager launch one environment, or retire it, once and within five minutes, in
your name: what it launches is yours. It is used up by one append that pins who does it,
and holds the name until there is an outcome. The environment does not outlive the run
of the manager that launched it.`,
		Example: "  berth intent admit demo launch-1 --on abcdefghijklmnopqrstuvwxyz -- sh -c 'date; sleep 60'\n  berth intent use demo launch-1\n  berth intent ls demo",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.intentAdmit(), a.intentUse(), a.intentRelease(), a.intentList())
	return c
}

func (a *app) intentAdmit() *cobra.Command {
	var f spawnFlags
	var in commands.IntentAdmitInput
	var retire bool
	c := &cobra.Command{
		Use: "admit NAME INTENT --on INSTANCE [flags] [-- COMMAND...]", Short: short(commands.IntentAdmit.Contract), Args: intentAndCommand,
		Example: "  berth intent admit demo launch-1 --on abcdefghijklmnopqrstuvwxyz --ttl 1h -- sh -c date\n  berth intent admit demo retire-1 --on abcdefghijklmnopqrstuvwxyz --retire",
		RunE: func(c *cobra.Command, given []string) error {
			if err := f.readPlan(a); err != nil {
				return err
			}
			in.Name, in.Intent, in.Instance, in.Kind = given[0], given[1], f.on, string(events.IntentLaunch)
			f.in.Command = given[2:]
			switch in.Launch = &f.in; {
			case f.on == "":
				return usage("--on is missing").WithHint("`berth hosts` lists the instances")
			case retire && len(f.in.Command) > 0:
				return usage("--retire launches no command")
			case retire:
				in.Kind, in.Launch = string(events.IntentRetire), nil
			}
			return askIntent(a, c, commands.IntentAdmit, in, func(w io.Writer, r commands.IntentResult) {
				fmt.Fprintf(w, "instance %s may %s %s once, until %s\nnext: berth intent use %s %s\n", r.InstanceID, r.Kind, r.Name, time.UnixMilli(r.ExpiresAt).UTC().Format(time.RFC3339), r.Name, r.ID)
			})
		},
	}
	f.planFlags(c)
	c.Flags().StringVar(&in.UID, "uid", "", "with --retire: only this lifecycle; the current one if absent")
	c.Flags().StringVar(&in.Within, "within", "", "how long it may be used (default and most 5m)")
	c.Flags().BoolVar(&retire, "retire", false, "it may retire what was launched so, instead of launching")
	return c
}

// intentAndCommand accepts NAME INTENT [-- COMMAND...].
func intentAndCommand(c *cobra.Command, in []string) error {
	n := len(in)
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		n = dash
	}
	if n != 2 {
		return usage("%s: NAME and INTENT are needed, and -- before a command", c.CommandPath())
	}
	return nil
}

func (a *app) intentUse() *cobra.Command {
	var in commands.IntentUseInput
	var request string
	c := &cobra.Command{
		Use: "use NAME INTENT", Short: short(commands.IntentUse.Contract), Args: args("NAME", "INTENT"), ValidArgsFunction: a.completeNames,
		Long: `Do what an intent allows, once. Instance, epoch and kind are compared with what was
admitted; those that are left out are read from it. The same request id reads what
became of the use; another one is a conflict.`,
		Example: "  berth intent use demo launch-1 --request-id use-1",
		RunE: func(c *cobra.Command, given []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			in.Name, in.Intent = given[0], given[1]
			l, err := a.open(ctx)
			if err != nil {
				return err
			}
			defer l.close()
			i, err := a.intentOf(ctx, l, given[0], given[1])
			if err != nil {
				return err
			}
			if in.Kind == "" {
				in.Kind = string(i.Kind)
			}
			if in.Instance == "" {
				in.Instance = string(i.InstanceID)
			}
			if in.Epoch == 0 {
				in.Epoch = i.Epoch
			}
			r, err := client.Call(ctx, l.Client, commands.IntentUse, in, append(a.callOptions(), client.WithID(events.CommandID(request)))...)
			if err != nil {
				return err
			}
			return a.show(r, func(w io.Writer) {
				fmt.Fprintf(w, "intent %s of %s is %s\nnext: berth inspect %s\n", r.ID, r.Name, stands(r.Intent), r.Name)
			})
		},
	}
	c.Flags().StringVar(&in.Kind, "kind", "", "launch or retire")
	c.Flags().StringVar(&in.Instance, "instance", "", "id of the instance that does it")
	c.Flags().Uint64Var(&in.Epoch, "epoch", 0, "the run that the instance is in")
	c.Flags().StringVar(&in.Grace, "grace", "", "retire: how long the seat may take to stop before it is killed (default 10s)")
	c.Flags().StringVar(&request, "request-id", "", "id of the request, to repeat it; a fresh one if absent")
	return c
}

// intentOf is one intent of a name as it stands.
func (a *app) intentOf(ctx context.Context, l *link, name, id string) (projections.Intent, error) {
	r, err := client.Call(ctx, l.Client, commands.Intents, commands.Named{Name: name}, a.callOptions()...)
	if err != nil {
		return projections.Intent{}, err
	}
	for _, i := range r.Items {
		if string(i.ID) == id {
			return i, nil
		}
	}
	return projections.Intent{}, fault.New(fault.NotFound, "%s has no intent %s", name, clip(id)).WithHint("`berth intent ls %s` lists them", name)
}

func (a *app) intentRelease() *cobra.Command {
	var in commands.IntentReleaseInput
	c := &cobra.Command{
		Use: "release NAME INTENT --reason REASON", Short: short(commands.IntentRelease.Contract), Args: args("NAME", "INTENT"), ValidArgsFunction: a.completeNames,
		Example: "  berth intent release demo launch-1 --reason 'its host was switched off'",
		RunE: func(c *cobra.Command, given []string) error {
			in.Name, in.Intent = given[0], given[1]
			return askIntent(a, c, commands.IntentRelease, in, func(w io.Writer, r commands.IntentResult) {
				fmt.Fprintf(w, "intent %s holds %s no longer\nnext: berth history %s\n", r.ID, r.Name, r.Name)
			})
		},
	}
	c.Flags().StringVar(&in.Reason, "reason", "", "why its executor is known to be over; history shows it for ever")
	return c
}

func (a *app) intentList() *cobra.Command {
	return &cobra.Command{
		Use: "ls NAME", Short: short(commands.Intents.Contract), Args: args("NAME"), ValidArgsFunction: a.completeNames,
		RunE: func(c *cobra.Command, given []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := ask(ctx, a, commands.Intents, commands.Named{Name: given[0]})
			if err != nil {
				return err
			}
			return list(a, r, r.Items, func(w io.Writer) {
				t := a.table("INTENT", "KIND", "STANDS", "INSTANCE", "EPOCH", "LIFECYCLE", "EXPIRES")
				for _, i := range r.Items {
					t.add(string(i.ID), string(i.Kind), stands(i), string(i.InstanceID), fmt.Sprint(i.Epoch), string(i.UID), time.UnixMilli(i.ExpiresAt).UTC().Format(time.RFC3339))
				}
				t.printOr(w, oneLine("There is no intent about "+given[0]+". Next: berth help intent"))
			})
		},
	}
}

// stands is where an intent stands, with its outcome.
func stands(i projections.Intent) string {
	if i.Outcome == "" {
		return string(i.Phase)
	}
	return string(i.Phase) + ", " + string(i.Outcome)
}

// askIntent asks for a change of an intent and says how it stands.
func askIntent[In commands.Input](a *app, c *cobra.Command, cmd commands.Command[In, commands.IntentResult], in In, say func(io.Writer, commands.IntentResult)) error {
	ctx, cancel := a.bounded(c.Context())
	defer cancel()
	r, err := ask(ctx, a, cmd, in)
	if err != nil {
		return err
	}
	return a.show(r, func(w io.Writer) { say(w, r) })
}
