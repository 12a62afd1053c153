package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/commands/client"
)

func (a *app) eventsCommand() *cobra.Command {
	var from, count uint64
	var follow bool
	c := &cobra.Command{
		Use: "events", Short: "The log, event by event", Args: args(), Example: "  berth events --from 1 -o json | head\n  berth events -f",
		Long: `The log, event by event. With -o json (or jsonl) each line is one structured
CloudEvent, which any CloudEvents tool reads. -f goes on with what happens next, from
now if --from does not say otherwise.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.events(c.Context(), from, count, follow, c.Flags().Changed("from"))
		},
	}
	c.Flags().Uint64Var(&from, "from", 1, "first sequence")
	c.Flags().Uint64Var(&count, "count", 0, "end after so many events")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens next")
	return c
}

func (a *app) events(ctx context.Context, from, count uint64, follow, fromGiven bool) error {
	if !follow {
		var cancel context.CancelFunc
		ctx, cancel = a.bounded(ctx)
		defer cancel()
	}
	l, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	if follow && !fromGiven {
		st, err := client.Call(ctx, l.Client, commands.Status, commands.Empty{})
		if err != nil {
			return err
		}
		from = st.Tip + 1
	}
	n := uint64(0)
	_, err = l.Events(ctx, from, follow, func(e commands.CloudEvent) error {
		if err := a.event(e); err != nil {
			return err
		}
		if n++; n == count {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// errEnough ends a stream after --count events.
var errEnough = errors.New("enough")

func (a *app) event(e commands.CloudEvent) error {
	if a.machine() {
		return a.document(e)
	}
	data := oneLine(string(e.Data))
	if a.output != formatWide && len(data) > 120 {
		data = string([]rune(data)[:min(120, len([]rune(data)))]) + "…"
	}
	_, err := fmt.Fprintf(a.Stdout, "%6s  %s  %-45s %s  %s\n", e.Sequence, e.Time, e.Type, e.Subject, data)
	return err
}
