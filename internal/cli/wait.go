package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/commands/client"
)

// waitFlags is --wait and --no-wait.
type waitFlags struct {
	wait, noWait bool
	usual        bool // waits unless told otherwise
}

func (f *waitFlags) flags(c *cobra.Command, usual bool) {
	f.usual = usual
	what := "wait until it ended"
	if !usual {
		what += "; without it a script gets the acceptance at once, and a person a short look"
	}
	c.Flags().BoolVar(&f.wait, "wait", usual, what)
	c.Flags().BoolVar(&f.noWait, "no-wait", false, "answer as soon as it is accepted")
	c.MarkFlagsMutuallyExclusive("wait", "no-wait")
}

// wanted says whether to wait; explicit is false if nobody asked for it.
func (f *waitFlags) wanted(c *cobra.Command, person bool) (wait, explicit bool) {
	switch {
	case f.noWait:
		return false, true
	case c.Flags().Changed("wait"):
		return f.wait, true
	}
	return f.usual || person, f.usual
}

// callOptions are those of the global flags.
func (a *app) callOptions() []client.Option {
	var o []client.Option
	if a.seq > 0 {
		o = append(o, client.WithMinSequence(a.seq))
	}
	return o
}

// drafts is what a dry run would append.
type drafts struct {
	WouldAppend []commands.Draft `json:"wouldAppend"`
}

// dryRun prints the events that a command would append.
func dryRun[In commands.Input, Out any](ctx context.Context, a *app, l *link, c commands.Command[In, Out], in In, more ...client.Option) error {
	ds, err := client.DryRun(ctx, l.Client, c, in, append(a.callOptions(), more...)...)
	if err != nil {
		return err
	}
	if ds == nil {
		ds = []commands.Draft{}
	}
	return a.show(drafts{ds}, func(w io.Writer) {
		n := 0
		for _, d := range ds {
			fmt.Fprintf(w, "on %s, after sequence %d:\n", d.Boundary, d.Expect)
			for _, e := range d.Events {
				fmt.Fprintf(w, "  %s %s\n", e.Type, oneLine(string(e.Data)))
				n++
			}
		}
		fmt.Fprintf(w, "%d events would be appended; nothing was.\n", n)
	})
}
