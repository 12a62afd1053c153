package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/events/fault"
)

func (a *app) takeOverCommand() *cobra.Command {
	var in commands.TakeOverInput
	var on string
	var dry bool
	c := &cobra.Command{
		Use: "takeover INSTANCE", Short: short(commands.TakeOver.Contract), Args: args("INSTANCE"),
		Example: "  berth takeover 0plqtc2vttp0xtqgq4ubfgls98\n  berth takeover 0plqtc2vttp0xtqgq4ubfgls98 --seat demo --yes",
		Long: `Hold the seats of an instance that does not serve any more, and go on with them: what
is open is reconciled, what was asked for is done. It is for environments that are
reached from here too: at a hosted provider, at a Docker Engine, at Fly. Those on the
host of the instance itself are refused; they wait for it.

An instance that ended in order has recorded that. One that did not is asked, and
where nobody answers in its place --yes is your word that it does not run. An event
on every seat fences it: if it goes on after all, it can decide nothing about it.`,
		RunE: func(c *cobra.Command, given []string) error {
			in.Instance = given[0]
			return submit(c, a, commands.TakeOver, in, dry, func(_ context.Context, _ *link, r commands.TakeOverResult) error {
				return a.sayTakenOver(r)
			}, client.WithInstance(events.InstanceID(on)))
		},
	}
	c.Flags().StringVar(&in.Seat, "seat", "", "the one name to take over; all that the instance holds if absent")
	c.Flags().StringVar(&on, "on", "", "id of the instance that takes over; any that answers if absent")
	c.Flags().BoolVar(&in.Confirmed, "yes", false, "the instance does not run, although it did not record its end")
	c.Flags().BoolVar(&dry, "dry-run", false, "print the events that would be appended, and append nothing")
	return c
}

// sayTakenOver prints what was taken over. What was not is an error, after the rest.
func (a *app) sayTakenOver(r commands.TakeOverResult) error {
	err := list(a, r, r.Taken, func(w io.Writer) {
		t := a.table("NAME", "PROVIDER", "ENVIRONMENT", "SEQUENCE")
		for _, s := range r.Taken {
			t.add(string(s.Name), s.Provider, string(s.Environment), strconv.FormatUint(s.Sequence, 10))
		}
		t.print(w)
		for _, s := range r.Refused {
			fmt.Fprintf(w, "%s stays with instance %s: %s\n", s.Name, r.From, oneLine(s.Fault.Message))
		}
		if r.Left > 0 {
			fmt.Fprintf(w, "%d are left: ask again\n", r.Left)
		}
		if len(r.Taken) > 0 {
			fmt.Fprintf(w, "next: berth ls, berth history %s\n", r.Taken[0].Name)
		}
	})
	if err != nil || len(r.Refused) == 0 {
		return err
	}
	return &exitError{fault.ExitOf(r.Refused[0].Fault)}
}
