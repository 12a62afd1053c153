package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write generated documents again")

const cliDoc = "../../docs/cli.md"

// docs/cli.md is every verb's help, so that it can be read without the program.
func TestDocsGenerated(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The program\n\nGenerated from the program's help (`go test ./internal/cli -run Generated -update`); do not edit.\n")
	root := (&app{Program: Program{Env: func(string) string { return "" }}}).root()
	fmt.Fprintf(&b, "\n%s\n\nFlags of every command:\n\n    %s\n", root.Long, indent(root.PersistentFlags().FlagUsages()))
	var write func(c *cobra.Command)
	write = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
				continue
			}
			section(&b, sub)
			write(sub)
		}
	}
	write(root)
	if *update {
		if err := os.WriteFile(cliDoc, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(cliDoc)
	if err != nil || string(got) != b.String() {
		t.Errorf("docs/cli.md is not what the program says (%v): go test ./internal/cli -run Generated -update", err)
	}
}

func section(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", strings.TrimPrefix(c.CommandPath(), "berth "))
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	if c.Name() == "exit-codes" {
		fmt.Fprintf(b, "    %s\n", indent(text))
		return
	}
	fmt.Fprintf(b, "%s\n\n    %s\n", text, c.UseLine())
	if f := c.LocalNonPersistentFlags().FlagUsages(); f != "" {
		fmt.Fprintf(b, "\n    %s\n", indent(f))
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\nFor example:\n\n    %s\n", indent(c.Example))
	}
}

func indent(s string) string {
	var lines []string
	for _, l := range strings.Split(strings.TrimSpace(s), "\n") {
		lines = append(lines, strings.TrimRight("    "+strings.TrimSpace(l), " "))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
