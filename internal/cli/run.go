package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"berth/events/fault"
	"berth/sagas"
)

// Program is one run of the program: what main has, made explicit, so that a
// test can run it too.
type Program struct {
	Args []string // without the program's name
	Env  func(string) string
	// Unset drops a variable of the environment; nil where there is none to drop.
	Unset  func(string) error
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Hook is given to a manager (berth.Options.Hook): tests kill the program
	// with it. The program itself has none.
	Hook sagas.Hook
}

// app is the state of one run: global flags and where output goes.
type app struct {
	Program
	output   string // -o
	server   string
	creds    string
	context  string
	data     string
	space    string
	timeout  time.Duration
	seq      uint64 // --min-seq
	taken    bootstrap
	personal bool // a person reads standard error
	local    bool // the manager is that of a data directory here
	giveUp   context.CancelCauseFunc
	colour   bool // standard output takes colour
}

// DefaultTimeout bounds a command and the wait for its end (--timeout).
const DefaultTimeout = 5 * time.Minute

// Run runs the program once and returns its exit code. Ending ctx drains a
// manager and interrupts anything else.
func Run(ctx context.Context, p Program) int {
	a := &app{Program: p, taken: takeHandoff(p)}
	a.personal = isTerminal(p.Stderr) && p.Env("TERM") != "dumb"
	a.colour = isTerminal(p.Stdout) && p.Env("TERM") != "dumb" && p.Env("NO_COLOR") == ""
	ctx, a.giveUp = context.WithCancelCause(ctx)
	defer a.giveUp(nil)
	if a.taken.err != nil {
		return a.fail(ctx, a.taken.err)
	}
	root := a.root()
	root.SetArgs(p.Args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return int(fault.ExitOK)
	}
	return a.fail(ctx, err)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// fail prints an error and tells its exit code.
func (a *app) fail(ctx context.Context, err error) int {
	var x *exitError
	if errors.As(err, &x) {
		return int(x.code)
	}
	var refused *fault.Error
	if errors.As(context.Cause(ctx), &refused) {
		err = refused
	} else if ctx.Err() != nil {
		e := fault.New(fault.Cancelled, "interrupted").WithOutcome(fault.Unknown).
			WithHint("what was accepted goes on; `berth ls` and `berth goal ls` show it")
		a.printError(e, fault.ExitInterrupted)
		return int(fault.ExitInterrupted)
	}
	e := asFault(err)
	code := fault.ExitOf(e)
	var u *uncertainError
	if errors.As(err, &u) {
		code = fault.ExitUncertain
	}
	a.printError(e, code)
	return int(code)
}

// exitError ends the program with a code when all was said already, such as a
// verification that printed what differs.
type exitError struct{ code fault.Exit }

// Error implements error.
func (e *exitError) Error() string { return "failed" }

// uncertainError is the end of something that was waited for, which is that
// nobody knows: whatever the code of its cause, the program ends with 7.
type uncertainError struct{ cause *fault.Error }

// Error implements error.
func (u *uncertainError) Error() string { return u.cause.Error() }

// Unwrap gives the cause.
func (u *uncertainError) Unwrap() error { return u.cause }

// asFault makes anything that the argument parser says a bad request.
func asFault(err error) *fault.Error {
	var e *fault.Error
	if errors.As(err, &e) {
		return e
	}
	if isUsage(err) {
		return usage("%s", err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.DeadlineExceeded, "not answered in time").WithHint("the work may go on: `berth ls` shows it; --timeout waits longer")
	}
	return fault.From(err)
}

// isUsage tells the messages of the argument parser, which have no type.
func isUsage(err error) bool {
	for _, p := range []string{"unknown command", "unknown flag", "unknown shorthand", "required flag", "accepts ", "requires at least", "invalid argument", "flag needs an argument", "bad flag syntax", "if any flags in the group"} {
		if strings.HasPrefix(err.Error(), p) {
			return true
		}
	}
	return false
}

// usage is a refusal of the command line itself.
func usage(format string, args ...any) *fault.Error {
	return fault.New(fault.BadRequest, format, args...)
}

// args is cobra's check of positional arguments with a message that names
// what is missing.
func args(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, got []string) error {
		n := len(got)
		if d := c.ArgsLenAtDash(); d >= 0 {
			n = d
		}
		if n < len(names) {
			return usage("%s: %s is missing", c.CommandPath(), names[n]).WithHint("%s", c.UseLine())
		}
		if n > len(names) || c.ArgsLenAtDash() >= 0 {
			return usage("%s: %q is one argument too many", c.CommandPath(), strings.Join(got[len(names):], " ")).WithHint("%s", c.UseLine())
		}
		return nil
	}
}
