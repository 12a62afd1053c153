package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"berth/events/fault"
	"berth/providers/drill"
)

func (a *app) drillCommand() *cobra.Command {
	c := &cobra.Command{Use: "drill", Short: "Look at the drill provider, which misbehaves on purpose", Args: group, RunE: showHelp}
	c.AddCommand(&cobra.Command{
		Use: "status", Short: "What the drill provider really holds, and every call that it received", Args: args(),
		Long: `What the drill provider really holds, and every call that it received: the truth,
beside which you can lay what the manager believes. It reads the provider's own
directory, so it also works when the manager is down.`,
		Example: "  berth drill status -o json",
		RunE:    func(*cobra.Command, []string) error { return a.drillStatus() },
	}, &cobra.Command{
		Use: "check FILE", Short: "Say whether a script of faults is valid", Args: args("FILE"),
		RunE: func(_ *cobra.Command, in []string) error { return a.drillCheck(in[0]) },
	})
	return c
}

func (a *app) drillStatus() error {
	dir, err := a.dataDir()
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, "drill")
	if _, err := os.Stat(dir); err != nil {
		return fault.New(fault.NotFound, "there is no drill provider in %s", dir).
			WithHint("`berth up --drill FILE` makes one; --data says where another manager keeps its data")
	}
	s, err := drill.ReadStatus(dir, time.Now())
	if err != nil {
		return err
	}
	return a.show(s, func(w io.Writer) {
		t := a.table("ID", "NAME", "STATE", "INCARNATION", "OPERATIONS")
		for _, e := range s.Environments {
			t.add(string(e.ID), string(e.Alias), e.State, strconv.Itoa(e.Incarnation), strconv.Itoa(len(e.Operations)))
		}
		t.printOr(w, "The provider holds nothing.")
		fmt.Fprintln(w)
		t = a.table("AT", "VERB", "NAME", "OPERATION", "FAULT", "ANSWERED")
		for _, c := range s.Calls {
			t.add(c.At.UTC().Format(time.RFC3339), string(c.Verb), string(c.Alias), string(c.Operation), string(c.Fault), strconv.FormatBool(c.Answered))
		}
		t.printOr(w, "It was not called.")
	})
}

func (a *app) drillCheck(file string) error {
	raw, err := readInput(file, drill.MaxScriptBytes)
	if err != nil {
		return err
	}
	s, err := drill.ParseScript(raw)
	if err != nil {
		return err
	}
	return a.show(s, func(w io.Writer) {
		fmt.Fprintf(w, "%d rules, all valid. Next: berth up --drill %s\n", len(s.Rules), quote(file))
	})
}

// readInput reads a small input file; a longer one is refused.
func readInput(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usage("%s", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, usage("reading %s: %s", file, err)
	}
	if int64(len(raw)) > limit {
		return nil, usage("%s has more than %d bytes", file, limit)
	}
	return raw, nil
}
