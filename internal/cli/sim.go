package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"berth/events/fault"
	"berth/internal/durable"
	"berth/internal/steady"
	"berth/sagas/sim"
)

// simCommand is the hidden verb of the seeded simulation (docs/proof.md).
func (a *app) simCommand() *cobra.Command {
	var from uint64
	var seeds, workers int
	var file string
	c := &cobra.Command{
		Use: "sim", Short: "Play seeded histories of the sagas, each twice, and hold them against the laws", Args: args(), Hidden: true,
		Example: "  berth sim --seeds 100000 --report sim.json\n  berth sim --from 31 --seeds 1",
		RunE: func(c *cobra.Command, _ []string) error {
			if seeds < 1 || workers < 1 {
				return usage("--seeds and --workers are above zero")
			}
			used := steady.ProcessorTime()
			r := sim.Sweep(c.Context(), from, seeds, workers, func(done int) {
				if done%1000 == 0 {
					a.say("%d of %d seeds", done, seeds)
				}
			})
			r.Processor(steady.ProcessorTime() - used)
			if file != "" {
				if err := writeReport(file, r); err != nil {
					return err
				}
			}
			if err := a.show(r, func(w io.Writer) { saySim(w, r) }); err != nil {
				return err
			}
			if n := len(r.Failures); n > 0 {
				return fault.New(fault.Internal, "%d of %d seeds broke a law; the first is %d", n, r.Seeds, r.Failures[0].Seed).
					WithHint("`berth sim --from %d --seeds 1 -o json` tells its story", r.Failures[0].Seed)
			}
			return c.Context().Err()
		},
	}
	fl := c.Flags()
	fl.Uint64Var(&from, "from", 0, "the first seed")
	fl.IntVar(&seeds, "seeds", 1000, "how many seeds are played, from --from on")
	fl.IntVar(&workers, "workers", runtime.GOMAXPROCS(0), "how many are played side by side")
	fl.StringVar(&file, "report", "", "also write the report to this file, as JSON")
	return c
}

func writeReport(file string, r sim.Report) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fault.New(fault.Internal, "the report can't be written as JSON: %s", err)
	}
	if err := durable.WriteFile(file, append(b, '\n'), os.FileMode(0o644)); err != nil {
		return fault.New(fault.Unavailable, "the report %s can't be written: %s", file, err)
	}
	return nil
}

func saySim(w io.Writer, r sim.Report) {
	fmt.Fprintf(w, "%d seeds from %d, each twice: %d lifetimes, %d records, %d steps, %d crashes, %d seats taken over, %d written off, %d files exported, %d spawns offered, %d handed over, %d clocks set, %d starts from an old snapshot\n",
		r.Seeds, r.From, r.Lifetimes, r.Records, r.Steps, r.Crashes, r.Takeovers, r.WriteOffs, r.Exports, r.Offers, r.HandOvers, r.ClockSteps, r.StaleStarts)
	fmt.Fprintf(w, "%.1f s on %d workers: %.0f lifetimes per second and core, %.0f per second of processor time\n", r.Seconds, r.Workers, r.PerCore, r.PerProcessor)
	for _, f := range r.Failures {
		fmt.Fprintf(w, "\n%s\n", f.Laws)
		for _, l := range f.Story {
			fmt.Fprintln(w, l)
		}
	}
}
