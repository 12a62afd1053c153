package cli

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/projections"
)

func (a *app) historyCommand() *cobra.Command {
	var goal string
	c := &cobra.Command{
		Use: "history NAME", Short: short(commands.History.Contract), ValidArgsFunction: a.completeNames, Example: "  berth history demo\n  berth history --goal 019b...",
		Args: func(c *cobra.Command, in []string) error {
			if goal != "" {
				return args()(c, in)
			}
			return args("NAME")(c, in)
		},
		RunE: func(c *cobra.Command, in []string) error {
			x := commands.HistoryInput{Goal: goal}
			if len(in) > 0 {
				x.Name = in[0]
			}
			return a.history(c.Context(), x)
		},
	}
	c.Flags().StringVar(&goal, "goal", "", "the story of this goal instead of a name's")
	return c
}

func (a *app) history(ctx context.Context, in commands.HistoryInput) error {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	if err := in.Check(); err != nil {
		return err
	}
	l, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	all := commands.HistoryResult{Items: []projections.Line{}}
	for {
		page, err := client.Call(ctx, l.Client, commands.History, in, a.callOptions()...)
		if err != nil {
			return err
		}
		all.Items = append(all.Items, page.Items...)
		if page.Next == 0 {
			break
		}
		in.After = page.Next
	}
	return list(a, all, all.Items, func(w io.Writer) { a.storyTable(all.Items).print(w) })
}

// cause is the goal's id where the cause is a goal, since its boundary is long.
func (a *app) cause(s string) string {
	if _, id, ok := events.Boundary(s).Goal(); ok && a.output != formatWide {
		return "goal " + string(id)
	}
	return s
}

func (a *app) storyTable(lines []projections.Line) *table {
	head := []string{"SEQ", "TIME", "WHO", "WHAT", "CAUSE"}
	wide := a.output == formatWide
	if wide {
		head = append(head, "TYPE", "OPERATION", "EPOCH")
	}
	t := a.table(head...)
	for _, l := range lines {
		cells := []string{strconv.FormatUint(l.Sequence, 10), l.Time.UTC().Format("2006-01-02T15:04:05.000Z"), l.Who, l.What, a.cause(l.Cause)}
		if wide {
			cells = append(cells, l.Type, string(l.Operation), strconv.FormatUint(l.Epoch, 10))
		}
		t.add(cells...)
	}
	return t
}
