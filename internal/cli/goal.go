package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/commands/client"
	"berth/events"
)

func (a *app) goalCommand() *cobra.Command {
	var wait bool
	c := &cobra.Command{
		Use: "goal [ID]", Short: "How a long command stands: a goal by its id, or one of the commands below", Example: "  berth goal 019b...\n  berth goal ls --all\n  berth goal cancel 019b...",
		Args: func(c *cobra.Command, in []string) error {
			if len(in) == 0 {
				return nil
			}
			return args("ID")(c, in)
		},
		RunE: func(c *cobra.Command, in []string) error {
			if len(in) == 0 {
				return c.Help()
			}
			return a.goal(c.Context(), in[0], wait)
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait until it ended, and end with its exit code")
	get := &cobra.Command{Use: "get ID", Short: "A goal as it stands", Args: args("ID"), RunE: func(c *cobra.Command, in []string) error { return a.goal(c.Context(), in[0], wait) }}
	get.Flags().BoolVar(&wait, "wait", false, "wait until it ended, and end with its exit code")
	var ls commands.GoalsInput
	list := &cobra.Command{Use: "ls", Short: short(commands.Goals.Contract), Args: args(), RunE: func(c *cobra.Command, _ []string) error { return a.goals(c.Context(), ls) }}
	list.Flags().BoolVarP(&ls.Ended, "all", "a", false, "also the newest of those that ended")
	var cancel commands.GoalCancelInput
	end := &cobra.Command{Use: "cancel ID", Short: short(commands.GoalCancel.Contract), Args: args("ID"), RunE: func(c *cobra.Command, in []string) error {
		cancel.Goal = in[0]
		return a.showGoal(ask(c.Context(), a, commands.GoalCancel, cancel))
	}}
	end.Flags().StringVar(&cancel.Mode, "mode", "", "graceful (default) or terminate")
	c.AddCommand(get, list, end)
	return c
}

func (a *app) goal(ctx context.Context, id string, wait bool) error {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	in := commands.GoalRef{Goal: id}
	if !wait {
		return a.showGoal(ask(ctx, a, commands.GoalGet, in))
	}
	if err := in.Check(); err != nil {
		return err
	}
	l, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	got, err := l.WaitGoal(ctx, events.GoalID(id))
	if err != nil {
		return err
	}
	if err := a.showGoal(got, nil); err != nil {
		return err
	}
	return endOf(got.State, got.Fault)
}

func (a *app) showGoal(g commands.GoalResult, err error) error {
	if err != nil {
		return err
	}
	return a.show(g, func(w io.Writer) {
		by := "deadline"
		if g.Command == commands.Spawn.Name || g.Command == commands.Reserve.Name {
			by = "ready by"
		}
		kv := []string{"goal", string(g.GoalID), "command", g.Command, "state", string(g.State), "phase", g.Phase, "name", string(g.Allocated.Name),
			"environment", string(g.Allocated.Environment), "operation", string(g.Allocated.Operation), "accepted", g.AcceptedAt, by, g.ReadyBy, "offered till", g.OfferedTill, "instance", string(g.InstanceID), "ended", g.EndedAt, "result", string(g.Result)}
		for _, d := range g.Declined {
			kv = append(kv, "declined by", string(d.Instance)+": "+d.Reason)
		}
		if g.Fault != nil {
			kv = append(kv, "because", g.Fault.Message, "hint", g.Fault.Hint)
		}
		if g.Settled != nil {
			kv = append(kv, "settled later", string(g.Settled.State))
		}
		facts(w, kv...)
	})
}

func (a *app) goals(ctx context.Context, in commands.GoalsInput) error {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	l, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	all := commands.GoalsResult{Items: []commands.GoalResult{}}
	for {
		page, err := client.Call(ctx, l.Client, commands.Goals, in, a.callOptions()...)
		if err != nil {
			return err
		}
		all.Items, all.AsOf = append(all.Items, page.Items...), page.AsOf
		if page.Next == "" {
			break
		}
		in.After = page.Next
	}
	return list(a, all, all.Items, func(w io.Writer) {
		none := "No goal is open. Next: berth goal ls --all"
		if in.Ended {
			none = "This caller has no goal. Next: berth ls"
		}
		t := a.table("GOAL", "COMMAND", "NAME", "STATE", "ACCEPTED", "ENDED")
		for _, g := range all.Items {
			t.add(string(g.GoalID), g.Command, string(g.Allocated.Name), string(g.State), g.AcceptedAt, g.EndedAt)
		}
		t.printOr(w, none)
	})
}
