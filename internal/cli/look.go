package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/commands/client"
	"berth/projections"
)

func (a *app) lsCommand() *cobra.Command {
	var in commands.LsInput
	c := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: short(commands.Ls.Contract), Args: args(), Example: "  berth ls\n  berth ls --all -o wide\n  berth ls --status uncertain -o json",
		RunE: func(c *cobra.Command, _ []string) error { return a.ls(c.Context(), in) },
	}
	c.Flags().StringVar(&in.Provider, "provider", "", "only of this provider")
	c.Flags().StringVar(&in.Status, "status", "", "only with this status")
	c.Flags().BoolVarP(&in.All, "all", "a", false, "also lives that have ended")
	return c
}

// ls reads every page; the rows of a script and of a person are the same.
func (a *app) ls(ctx context.Context, in commands.LsInput) error {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	all, err := a.fleet(ctx, in)
	if err != nil {
		return err
	}
	return list(a, all, all.Items, func(w io.Writer) {
		none := "There is no environment. Next: berth spawn demo --ttl 1h -- sh -c 'while :; do date; sleep 1; done'"
		if in.Provider != "" || in.Status != "" {
			none = "There is no environment like that. Next: berth ls --all"
		}
		a.fleetTable(all.Items).printOr(w, none)
	})
}

func (a *app) fleet(ctx context.Context, in commands.LsInput) (commands.LsResult, error) {
	all := commands.LsResult{Items: []projections.Row{}}
	if err := in.Check(); err != nil {
		return all, err
	}
	l, err := a.open(ctx)
	if err != nil {
		return all, err
	}
	defer l.close()
	err = l.Ls(ctx, in, func(page commands.LsResult) error {
		all.Items, all.AsOf = append(all.Items, page.Items...), page.AsOf
		return nil
	}, a.callOptions()...)
	return all, err
}

func (a *app) fleetTable(rows []projections.Row) *table {
	now := time.Now()
	head := []string{"NAME", "STATUS", "PROVIDER", "CPUS", "MEMORY", "AGE", "ENDS", "OPERATION"}
	wide := a.output == formatWide
	if wide {
		head = append(head, "ENVIRONMENT", "UID", "REFERENCE", "HOLDER")
	}
	t := a.table(head...)
	for _, r := range rows {
		created := r.Environment.CreatedAt
		cells := []string{string(r.Alias), string(r.Status), r.Environment.Provider, r.Resources.CPUs.String(), strconv.FormatInt(r.Resources.MemoryMiB, 10) + "MiB",
			shortDuration(now.Sub(time.UnixMilli(created))), ends(r, now), operationWords(r.Operation)}
		if wide {
			cells = append(cells, string(r.Environment.ID), string(r.UID), r.Environment.ProviderRef, string(r.Holder))
		}
		t.add(cells...)
	}
	return t
}

func ends(r projections.Row, now time.Time) string {
	at := fromMillis(r.Deadline)
	switch {
	case r.RetiredAt != nil:
		return "ended"
	case at.IsZero():
		return "never"
	case at.Before(now):
		return "due"
	}
	return "in " + shortDuration(at.Sub(now))
}

func operationWords(o *projections.OperationView) string {
	if o == nil {
		return ""
	}
	s := string(o.Verb) + " " + string(o.State)
	if o.Stuck {
		s += ", stuck"
	}
	if o.Waiting > 0 {
		s += ", " + strconv.Itoa(o.Waiting) + " waiting"
	}
	return s
}

func (a *app) inspectCommand() *cobra.Command {
	var uid string
	var explain bool
	c := &cobra.Command{
		Use: "inspect NAME", Short: short(commands.Inspect.Contract), Args: args("NAME"), ValidArgsFunction: a.completeNames, Example: "  berth inspect demo\n  berth inspect demo -o json\n  berth inspect demo --explain",
		RunE: func(c *cobra.Command, in []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := ask(ctx, a, commands.Inspect, commands.Named{Name: in[0], UID: uid})
			if err != nil {
				return err
			}
			if explain {
				told := explained{r, r.Explain(time.Now())}
				return a.show(told, func(w io.Writer) { sayExplanation(w, told) })
			}
			return a.show(r, func(w io.Writer) { sayInspection(w, r, time.Now()) })
		},
	}
	c.Flags().StringVar(&uid, "uid", "", "only if this is the name's current lifecycle uid")
	c.Flags().BoolVar(&explain, "explain", false, "say in words why it is as it is, and what may be done next")
	return c
}

// explained is an inspection with what it means.
type explained struct {
	commands.InspectResult
	Explanation projections.Explanation `json:"explanation"`
}

func sayExplanation(w io.Writer, r explained) {
	fmt.Fprintf(w, "%s is %s, as of sequence %d\n", r.Alias, r.Status, r.AsOf)
	for _, l := range r.Explanation.Why {
		fmt.Fprintf(w, "- %s\n", l)
	}
	for _, l := range r.Explanation.Next {
		fmt.Fprintf(w, "next: %s\n", l)
	}
}

func sayInspection(w io.Writer, r commands.InspectResult, now time.Time) {
	kv := []string{"name", string(r.Alias), "status", string(r.Status), "slot", string(r.Slot.Phase), "head", string(r.Head.State) + ", gate " + string(r.Head.Gate),
		"target", string(r.Target), "lifecycle", string(r.Slot.UID), "holder", string(r.Slot.Holder)}
	if e := r.Environment; e != nil {
		kv = append(kv, "environment", string(e.ID), "provider", e.Provider, "reference", e.ProviderRef, "record", string(e.State), "image", e.Image.Kind+" "+e.Image.Reference,
			"host", e.Host, "created", humanTime(time.UnixMilli(e.CreatedAt), now))
		if e.StoppedAt == nil { // what has stopped is not ended once more
			kv = append(kv, "provider ends it", humanTime(fromMillis(e.ExpiresAt), now))
		}
		kv = append(kv, "stopped", humanTime(fromMillis(e.StoppedAt), now))
	}
	kv = append(kv, "resources", r.Plan.Resources.CPUs.String()+" CPUs, "+strconv.FormatInt(r.Plan.Resources.MemoryMiB, 10)+" MiB", "ends", humanTime(fromMillis(r.Deadline), now))
	if len(r.Plan.Command) > 0 {
		kv = append(kv, "command", quoteAll(r.Plan.Command))
	}
	for _, k := range slices.Sorted(maps.Keys(r.Plan.Options)) {
		kv = append(kv, "option", k+"="+r.Plan.Options[k])
	}
	if r.ExitCode != nil {
		kv = append(kv, "exit code", strconv.Itoa(*r.ExitCode))
	}
	switch sign := r.Plan.Sign(); {
	case r.Ready != nil:
		kv = append(kv, "ready", humanTime(r.Ready.Since, now)+", "+r.Ready.Evidence)
	case sign != nil:
		kv = append(kv, "ready when", sign.String())
	}
	if r.Drift != "" {
		kv = append(kv, "network", "planned "+r.Environment.Network+", observed "+r.Drift)
	}
	if c := r.Custody; c != nil {
		kv = append(kv, "process", strconv.Itoa(c.PID))
	}
	if o := r.Operation; o != nil {
		kv = append(kv, "operation", operationWords(o)+", "+string(o.ID), "since", humanTime(time.UnixMilli(o.At), now))
		if o.Fault != nil {
			kv = append(kv, "because", o.Fault.Message)
		}
	}
	for _, q := range r.Queue {
		kv = append(kv, "queued", string(q.Verb)+", "+string(q.ID))
	}
	for _, cp := range r.Checkpoints {
		kv = append(kv, "checkpoint", cp.ID+", "+cp.Kind+", "+humanSize(cp.ByteLength))
	}
	if r.Fault != nil {
		kv = append(kv, "fault", r.Fault.Message)
	}
	kv = append(kv, "earlier lives", strconv.Itoa(r.Lives), "as of", strconv.FormatUint(r.AsOf, 10))
	facts(w, kv...)
}

func (a *app) slotsCommand() *cobra.Command {
	var in commands.SlotsInput
	c := &cobra.Command{
		Use: "slots [NAME...]", Short: short(commands.Slots.Contract), Example: "  berth slots\n  berth slots demo --all", ValidArgsFunction: a.completeNames,
		RunE: func(c *cobra.Command, names []string) error {
			in.Names = names
			return a.slots(c.Context(), in)
		},
	}
	c.Flags().BoolVarP(&in.IncludeRetired, "all", "a", false, "also names that nobody holds any more")
	return c
}

func (a *app) slots(ctx context.Context, in commands.SlotsInput) error {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	all := commands.SlotsResult{Items: []commands.SlotRow{}}
	if err := in.Check(); err != nil {
		return err
	}
	l, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	for {
		page, err := client.Call(ctx, l.Client, commands.Slots, in, a.callOptions()...)
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
		t := a.table("NAME", "PHASE", "STATUS", "HOLDER", "CLAIMED", "GATE", "REASON")
		for _, s := range all.Items {
			t.add(string(s.Alias), string(s.Phase), string(s.Status), string(s.Holder), time.UnixMilli(s.ClaimedAt).UTC().Format(time.RFC3339), string(s.Head.Gate), s.Reason)
		}
		t.printOr(w, "No name is held. Next: berth slots --all")
	})
}

// completeNames completes the name of an environment, for shells.
func (a *app) completeNames(c *cobra.Command, in []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), 2*time.Second)
	defer cancel()
	page, err := a.fleet(ctx, commands.LsInput{})
	if err != nil || len(in) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, r := range page.Items {
		names = append(names, string(r.Alias)+"\t"+string(r.Status))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
