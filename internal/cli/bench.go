package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/events/fault"
	"berth/internal/bench"
)

func (a *app) benchCommand() *cobra.Command {
	var o bench.Options
	full, size := false, ""
	c := &cobra.Command{
		Use: "bench [" + strings.Join(bench.Parts, "|") + "]...", Short: "Measure this program beside the raw JetStream server, on this machine",
		Long: `Measure this program beside the raw JetStream server, on this machine. It needs no
manager and touches none: it works in a temporary directory below --dir, which should
be on the disk that is to be measured. Both sides take turns in one run, and a ratio is
ours over raw. A bar that is missed is a row that says so, not a failure.`,
		Example:   "  berth bench\n  berth bench log commands -o json\n  berth bench replay --events 1000000\n  berth bench fleet --full --dir /var/lib/berth",
		ValidArgs: bench.Parts, Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, parts []string) error {
			if size != "" {
				n, err := commands.ParseSize("--size", size, 1, bench.MaxExport)
				if err != nil {
					return err
				}
				o.Export = n
			}
			if full {
				o.Events, o.Live, o.Export = bench.FullEvents, bench.FullLive, bench.FullExport
			}
			if c.Flags().Changed("events") && o.Events < 1 || c.Flags().Changed("live") && o.Live < 1 {
				return usage("--events and --live are above zero")
			}
			o.Progress = func(what string) { a.say("%s ...", what) }
			r, err := bench.Run(c.Context(), parts, o)
			if err != nil && len(r.Rows) == 0 {
				return err
			}
			if shown := list(a, r, r.Rows, func(w io.Writer) { a.sayBench(w, r) }); shown != nil {
				return shown
			}
			return err
		},
	}
	fl := c.Flags()
	fl.StringVar(&o.Dir, "dir", "", "where to work (default the system's temporary directory)")
	fl.IntVar(&o.Events, "events", 0, fmt.Sprintf("events in the log, of replay and fleet (default %d)", bench.DefaultEvents))
	fl.IntVar(&o.Live, "live", 0, fmt.Sprintf("live environments, of fleet (default %d)", bench.DefaultLive))
	fl.IntVar(&o.Samples, "samples", bench.DefaultSamples, "single operations of each side")
	fl.IntVar(&o.Rounds, "rounds", bench.DefaultRounds, "repetitions of what takes long")
	fl.DurationVar(&o.Idle, "idle", bench.DefaultIdle, "how long an idle manager is watched")
	fl.IntVar(&o.Uncertain, "uncertain", bench.DefaultUncertain, "operations that are left without an answer, of hosted")
	fl.StringVar(&size, "size", "", "size of the file, of export (default 512MiB)")
	fl.BoolVar(&full, "full", false, fmt.Sprintf("the sizes that the bars are set for: %d events, %d live environments, a file of 4GiB", bench.FullEvents, bench.FullLive))
	c.MarkFlagsMutuallyExclusive("full", "size")
	c.MarkFlagsMutuallyExclusive("full", "events")
	c.MarkFlagsMutuallyExclusive("full", "live")
	return c
}

func (a *app) sayBench(w io.Writer, r bench.Report) {
	t := a.table("WHAT", "VALUE", "UNIT", "RAW", "RATIO", "BAR", "REACHED", "NOTE")
	for _, x := range r.Rows {
		reached := ""
		if x.OK != nil {
			reached = map[bool]string{true: "ok", false: "missed"}[*x.OK]
		}
		t.add(x.Name, fmt.Sprintf("%g", x.Value), x.Unit, number(x.Raw), number(x.Ratio), x.Bar, reached, x.Note)
	}
	t.print(w)
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%g", *v)
}

// benchRole is the hidden verb by which a benchmark runs the program again.
func benchRole() *cobra.Command {
	return &cobra.Command{
		Use: bench.RoleArg, Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, in []string) error {
			if handled, code := bench.Main(append([]string{bench.RoleArg}, in...)); handled {
				return &exitError{fault.Exit(code)}
			}
			return usage("%s is for `berth bench`", bench.RoleArg)
		},
	}
}
