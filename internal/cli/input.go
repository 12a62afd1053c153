package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/events/fault"
)

func (a *app) inputCommand() *cobra.Command {
	var in commands.InputInput
	c := &cobra.Command{
		Use: "input NAME TEXT", Short: short(commands.Type.Contract), Args: args("NAME", "TEXT"), ValidArgsFunction: a.completeNames,
		Example: "  berth input demo 'ls -l'\n  berth input demo y --no-enter\n  berth input demo - < message",
		Long: `Type a text into the terminal of a running seat, as if it came from a keyboard, and
press Enter. It says how many bytes the terminal took; what the seat does with them is
in its output. With - the text is read from standard input, so that a secret is in no
argument list. Exit code 7: delivery had begun and it is not known how far it came.`,
		RunE: func(c *cobra.Command, words []string) error {
			in.Name, in.Text = words[0], words[1]
			if in.Text == "-" {
				b, err := io.ReadAll(io.LimitReader(a.Stdin, commands.MaxText+1))
				if err != nil {
					return fault.New(fault.BadRequest, "standard input can't be read: %s", err)
				}
				in.Text = string(b)
			}
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := ask(ctx, a, commands.Type, in)
			if err != nil {
				return err
			}
			return a.show(r, func(w io.Writer) {
				fmt.Fprintf(w, "%d bytes are typed into %s\nnext: berth logs %s -f\n", r.Bytes, r.Name, r.Name)
			})
		},
	}
	c.Flags().BoolVar(&in.NoEnter, "no-enter", false, "do not press Enter after it")
	c.Flags().StringVar(&in.UID, "uid", "", "only if this is the name's current lifecycle uid")
	return c
}
