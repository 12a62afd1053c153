package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/events/eventlog/verify"
	"berth/events/fault"
)

func (a *app) replayCommand() *cobra.Command {
	var in commands.ReplayInput
	c := &cobra.Command{
		Use: "replay", Short: short(commands.Replay.Contract), Args: args(), Example: "  berth replay --verify\n  berth replay --at 2026-01-31T12:00:00Z\n  berth replay --at 1000 -o json\n  berth replay --verify --data DIR   # also when the manager is down",
		Long: `Rebuild everything from the log. --at shows the fleet as it was at a sequence or a
time; --verify compares what was rebuilt with what is served, and ends with 1 if
anything differs. With --data it also works when the manager is down: then the log of
the directory is read, and compared with the snapshot there.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := in.Check(); err != nil {
				return err
			}
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := a.replay(ctx, in)
			if err != nil {
				return err
			}
			if err := list(a, r, r.Items, func(w io.Writer) { a.sayReplay(w, r) }); err != nil {
				return err
			}
			if len(r.Mismatches) > 0 {
				return &exitError{fault.ExitFailure}
			}
			return nil
		},
	}
	c.Flags().StringVar(&in.At, "at", "", "the last sequence, or an RFC 3339 time")
	c.Flags().BoolVar(&in.Verify, "verify", false, "compare with what is served")
	return c
}

// replay asks the manager, or reads the directory of one that is down.
func (a *app) replay(ctx context.Context, in commands.ReplayInput) (commands.ReplayResult, error) {
	r, err := ask(ctx, a, commands.Replay, in)
	if err == nil || !a.down(err) {
		return r, err
	}
	return a.replayOffline(ctx, in)
}

// down says that the manager of a data directory here does not run.
func (a *app) down(err error) bool {
	e := fault.From(err)
	return a.local && e.Code == fault.Unavailable && e.Outcome == fault.NotExecuted
}

func (a *app) sayReplay(w io.Writer, r commands.ReplayResult) {
	fmt.Fprintf(w, "%d events on %d boundaries, as of sequence %d: %d records rebuilt\n", r.Events, r.Aggregates, r.AsOf, r.Records)
	for _, q := range r.Quarantined {
		fmt.Fprintf(w, "quarantined: %s since sequence %d: %s\n", q.Boundary, q.Sequence, oneLine(q.Fault.Message))
	}
	if r.Verified && len(r.Mismatches) == 0 {
		fmt.Fprintln(w, "What is served is what the log says.")
	}
	if len(r.Mismatches) > 0 {
		t := a.table("RECORD", "FIELD", "SERVED", "LOG")
		for _, m := range r.Mismatches {
			t.add(m.Record, m.Field, m.Served, m.Log)
		}
		t.print(w)
	}
	if len(r.Items) > 0 {
		a.fleetTable(r.Items).print(w)
	}
}

func (a *app) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: short(commands.VerifyLog.Contract), Args: args(), Example: "  berth verify\n  berth verify --data DIR   # also when the manager is down",
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := ask(ctx, a, commands.VerifyLog, commands.VerifyInput{})
			if err != nil && a.down(err) {
				r, err = a.verifyOffline(ctx, verify.Options{})
			}
			if err != nil {
				return err
			}
			return a.sayVerified(r)
		},
	}
}

func (a *app) sayVerified(r verify.Report) error {
	err := list(a, r, r.Problems, func(w io.Writer) {
		signed := "nothing is signed yet"
		if r.Signatures > 0 {
			signed = fmt.Sprintf("%d signatures hold, the last through %d", r.Signatures, r.Signed)
		}
		fmt.Fprintf(w, "%d events on %d boundaries, through sequence %d; %s\n", r.Events, r.Boundaries, r.Tip, signed)
		if r.OK() {
			fmt.Fprintln(w, "Nothing was changed, removed or put in between.")
			return
		}
		t := a.table("SEQ", "BOUNDARY", "WHAT IS WRONG")
		for _, p := range r.Problems {
			t.add(strconv.FormatUint(p.Sequence, 10), string(p.Boundary), p.Text)
		}
		t.print(w)
	})
	if err != nil || r.OK() {
		return err
	}
	return &exitError{fault.ExitFailure}
}
