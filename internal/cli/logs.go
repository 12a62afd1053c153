package cli

import (
	"context"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/events/fault"
)

func (a *app) logsCommand() *cobra.Command {
	var in commands.LogsInput
	var follow bool
	c := &cobra.Command{
		Use: "logs NAME", Short: "What a seat printed", Args: args("NAME"), ValidArgsFunction: a.completeNames, Example: "  berth logs demo\n  berth logs demo -f",
		Long: `What a seat printed, as bytes on standard output; with -o json as documents with
the bytes in base64. Output that is no longer kept is skipped, which is said.`,
		RunE: func(c *cobra.Command, names []string) error {
			in.Name = names[0]
			return a.logs(c.Context(), in, follow)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the seat ends")
	c.Flags().Int64Var(&in.From, "from", 0, "first byte")
	c.Flags().StringVar(&in.UID, "uid", "", "only if this is the name's current lifecycle uid")
	return c
}

func (a *app) logs(ctx context.Context, in commands.LogsInput, follow bool) error {
	if err := in.Check(); err != nil {
		return err
	}
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
	seen := false
	_, err = l.Logs(ctx, in, follow, func(page commands.LogsResult) error {
		if page.Dropped > 0 {
			a.say("%d bytes are no longer kept", page.Dropped)
		}
		seen = true
		return a.printOutput(page)
	})
	if gone := fault.CodeOf(err); follow && seen && (gone == fault.NotFound || gone == fault.Expired) {
		return nil // its life ended meanwhile, and with it what it prints
	}
	return err
}

// printOutput prints one page of a seat's output.
func (a *app) printOutput(page commands.LogsResult) error {
	if a.machine() {
		return a.document(page)
	}
	_, err := a.Stdout.Write(page.Data)
	return err
}
