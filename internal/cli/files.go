package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/events"
)

// goalFlags is what checkpoint, restore and export take beside those of every verb.
type goalFlags struct {
	seatFlags
	goal string
}

func (f *goalFlags) flags(c *cobra.Command) {
	f.seatFlags.flags(c)
	c.Flags().StringVar(&f.goal, "goal", "", "id of the goal: the same id is the same goal for ever")
}

func (a *app) checkpointCommand() *cobra.Command {
	var f goalFlags
	c := &cobra.Command{
		Use: "checkpoint NAME", Short: short(commands.Checkpoint.Contract), Args: args("NAME"), ValidArgsFunction: a.completeNames,
		Example: "  berth checkpoint demo\n  berth export demo --to demo.tar",
		RunE: func(c *cobra.Command, in []string) error {
			x := commands.CheckpointInput{Named: f.named(in), Goal: f.goal}
			return runGoal(c, a, &f, commands.Checkpoint, x, func(_ context.Context, _ *link, r commands.OperationResult, g *commands.GoalResult) error {
				return a.sayCheckpoint(r, g, func(w io.Writer, cp events.Checkpoint) {
					fmt.Fprintf(w, "%s is captured: checkpoint %s, %s, %s\n", r.Name, cp.ID, cp.Kind, humanSize(cp.ByteLength))
					fmt.Fprintf(w, "next: berth export %s --to %s\n", r.Name, fileFor(r.Name, cp.Kind))
				})
			})
		},
	}
	f.flags(c)
	return c
}

// fileFor is a name for the file of a checkpoint: only a cold one is a tar.
func fileFor(name events.Alias, kind string) string {
	if kind == "memory" {
		return string(name) + ".memory"
	}
	return string(name) + ".tar"
}

// sayCheckpoint tells of the checkpoint that a goal made or used, or of its
// acceptance.
func (a *app) sayCheckpoint(r commands.OperationResult, g *commands.GoalResult, say func(io.Writer, events.Checkpoint)) error {
	if g == nil {
		return a.accepted(r)
	}
	var cp events.Checkpoint
	_ = json.Unmarshal(g.Result, &cp) // an end without one is shown without one
	return a.show(struct {
		commands.OperationResult
		Checkpoint events.Checkpoint `json:"checkpoint"`
	}{r, cp}, func(w io.Writer) { say(w, cp) })
}

func (a *app) restoreCommand() *cobra.Command {
	var f goalFlags
	c := &cobra.Command{
		Use: "restore NAME CHECKPOINT", Short: short(commands.Restore.Contract), Args: args("NAME", "CHECKPOINT"), ValidArgsFunction: a.completeNames,
		Long: `Put a seat back, in place, to a checkpoint of its own. It keeps its name, its environment
and its deadline, and runs again with the launch that it was started with; what it did
since the checkpoint is lost. A checkpoint that is not there or is damaged is refused
before anything is done.`,
		Example: "  berth checkpoint demo -o json\n  berth restore demo 01a22ed2-ff57-7000-8de2-5828de278000 --wait",
		RunE: func(c *cobra.Command, in []string) error {
			x := commands.RestoreInput{Named: f.named(in), Goal: f.goal, Checkpoint: in[1]}
			return runGoal(c, a, &f, commands.Restore, x, func(_ context.Context, _ *link, r commands.OperationResult, g *commands.GoalResult) error {
				return a.sayCheckpoint(r, g, func(w io.Writer, cp events.Checkpoint) {
					fmt.Fprintf(w, "%s is back at checkpoint %s, and runs\nnext: berth logs %s -f\n", r.Name, cp.ID, r.Name)
				})
			})
		},
	}
	f.flags(c)
	return c
}

func (a *app) accepted(r commands.OperationResult) error {
	return a.show(r, func(w io.Writer) {
		fmt.Fprintf(w, "%s of %s is accepted as goal %s\nnext: berth goal %s\n", r.Verb, r.Name, r.GoalID, r.GoalID)
	})
}

// runGoal gives a goal command, waits for its end, and hands over what it was;
// the goal is nil without a wait.
func runGoal[In commands.Input](c *cobra.Command, a *app, f *goalFlags, cmd commands.Command[In, commands.OperationResult], in In,
	done func(context.Context, *link, commands.OperationResult, *commands.GoalResult) error) error {
	return submit(c, a, cmd, in, f.dry, func(ctx context.Context, l *link, r commands.OperationResult) error {
		if wait, _ := f.wait.wanted(c, true); !wait {
			return done(ctx, l, r, nil)
		}
		a.say("accepted as goal %s; waiting for its end ...", r.GoalID)
		if r.Operation != "" && !r.State.Terminal() {
			w := commands.WriteResult{Name: r.Name, UID: r.UID, Operation: r.Operation, Sequence: r.Sequence}
			if _, err := a.awaitOperation(ctx, l, string(r.Verb), c.Flags().Changed("wait"), w); err != nil {
				return err
			}
		}
		got, err := ended(ctx, l, r.GoalID)
		if err != nil {
			return err
		}
		r.State, r.Fault = got.State, got.Fault
		return done(ctx, l, r, &got)
	})
}

// exported is what an export answers (R33, R34).
type exported struct {
	Kind string      `json:"kind"` // host-path: a file on this host
	File events.File `json:"file"`
}

func (a *app) exportCommand() *cobra.Command {
	var f goalFlags
	var to, limit, checkpoint string
	c := &cobra.Command{
		Use: "export NAME --to FILE", Short: "Export a checkpoint to a file, verified by length and digest", Args: args("NAME"), ValidArgsFunction: a.completeNames,
		Long: `Export a checkpoint to a file. The provider's file is copied, its length and SHA-256
are verified by the manager, and verified again here. What was cut short, grew or
changed is refused, and nothing of it is kept.`,
		Example: "  berth export demo --to demo.tar\n  berth export demo --to demo.tar --max-bytes 1GiB -o json",
		RunE: func(c *cobra.Command, in []string) error {
			x := commands.ExportInput{Named: f.named(in), Goal: f.goal, Checkpoint: checkpoint}
			if limit != "" {
				n, err := commands.ParseSize("--max-bytes", limit, 1, commands.MaxExport)
				if err != nil {
					return err
				}
				x.MaxBytes = n
			}
			path, err := target(to, f.dry)
			if err != nil {
				return err
			}
			return runGoal(c, a, &f, commands.Export, x, func(ctx context.Context, l *link, r commands.OperationResult, g *commands.GoalResult) error {
				if g == nil {
					return a.accepted(r)
				}
				return a.fetch(ctx, l, r, path)
			})
		},
	}
	f.flags(c)
	c.Flags().StringVar(&to, "to", "", "the file to write; one that is there is replaced only when the export is whole")
	c.Flags().StringVar(&limit, "max-bytes", "", "the longest file that is accepted, such as 1GiB (default 64GiB)")
	c.Flags().StringVar(&checkpoint, "checkpoint", "", "id of the checkpoint (default the newest)")
	return c
}

// target checks --to before anything is asked.
func target(to string, dry bool) (string, error) {
	if to == "" {
		if dry {
			return "", nil
		}
		return "", usage("--to is missing: say which file to write")
	}
	path, err := filepath.Abs(to)
	if err != nil {
		return "", usage("--to %s: %s", clip(to), err)
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return "", usage("--to %s is not a plain file", clip(path))
	}
	if st, err := os.Stat(filepath.Dir(path)); err != nil || !st.IsDir() {
		return "", usage("--to %s: its directory is not there", clip(path))
	}
	return path, nil
}

// fetch downloads an accepted file, verifies it again, and moves it to its
// place when it is whole; a failure leaves what was there.
func (a *app) fetch(ctx context.Context, l *link, r commands.OperationResult, path string) error {
	p := a.progress()
	file, err := l.Download(ctx, r.GoalID, path, p.at)
	p.end()
	if err != nil {
		return err
	}
	return a.show(exported{"host-path", file}, func(w io.Writer) {
		fmt.Fprintf(w, "%s is exported to %s: %s, sha256 %s\n", r.Name, file.Path, humanSize(file.ByteLength), file.SHA256)
	})
}
