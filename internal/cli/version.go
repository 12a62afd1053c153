package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"berth/events"
	"berth/events/fault"
)

// Build is what `berth version` tells.
type Build struct {
	Version string   `json:"version"`
	Commit  string   `json:"commit,omitempty"`
	Dirty   bool     `json:"dirty,omitempty"` // built from a changed tree
	Go      string   `json:"go"`
	OS      string   `json:"os"`
	Arch    string   `json:"arch"`
	Server  string   `json:"natsServer,omitempty"`
	Events  []string `json:"eventTypes"`
}

// ReadBuild reads what the Go tool wrote into the program.
func ReadBuild() Build {
	b := Build{Version: "dev", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Events: events.Types()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Dirty = s.Value == "true"
		}
	}
	for _, d := range info.Deps {
		if d.Path == "github.com/nats-io/nats-server/v2" {
			b.Server = d.Version
		}
	}
	return b
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Tell which program this is", Args: args(), Example: "  berth version -o json",
		RunE: func(*cobra.Command, []string) error {
			b := ReadBuild()
			return a.show(b, func(w io.Writer) {
				facts(w, "berth", b.Version, "commit", b.Commit, "go", b.Go, "nats-server", b.Server, "platform", b.OS+"/"+b.Arch,
					"event types", fmt.Sprint(len(b.Events)))
			})
		},
	}
}

// exits says what each exit code means, in the order of the codes.
var exits = []struct {
	code    fault.Exit
	meaning string
}{
	{fault.ExitOK, "done"},
	{fault.ExitFailure, "failed"},
	{fault.ExitUsage, "the command line or an input is not valid; the message names the field"},
	{fault.ExitNotFound, "nothing of that name or id"},
	{fault.ExitAuth, "not allowed, or not known who is asking"},
	{fault.ExitConflict, "refused: taken, changed by somebody else, in another state, expired, or at a limit"},
	{fault.ExitTimeout, "the wait ran out; the work goes on"},
	{fault.ExitUncertain, "the outcome is uncertain and held: do not try again blindly"},
	{fault.ExitUnavailable, "nobody answers, or a source of truth can't be read"},
	{fault.ExitBadConfig, "up: the configuration is not valid"},
	{fault.ExitNewerFormat, "up: the log was written by a newer version; nothing was touched"},
	{fault.ExitLogLost, "up: the log is missing, shorter or replaced; nothing was written"},
	{fault.ExitDataInUse, "up: another manager uses the data directory"},
	{fault.ExitPortInUse, "up: a port is taken"},
	{fault.ExitInterrupted, "interrupted; what was accepted goes on"},
}

// exitCodesTopic is `berth help exit-codes`.
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesText()}
}

func exitCodesText() string {
	s := "Exit codes:\n\n"
	for _, e := range exits {
		s += fmt.Sprintf("  %3d  %s\n", e.code, e.meaning)
	}
	s += "\nError codes, with the exit code of each where the outcome is known. An error whose\noutcome is unknown ends with 7, unless nobody answered (8) or a wait ran out (6).\n\n"
	for _, r := range fault.Table {
		again := ""
		if r.Retryable {
			again = " (may succeed later)"
		}
		s += fmt.Sprintf("  %-20s %2d  %s%s\n", r.Code, r.Exit, r.Meaning, again)
	}
	return s
}
