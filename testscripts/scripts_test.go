package testscripts

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"berth/events/fault"
	"berth/internal/cli"
	"berth/providers/process"
	"berth/providers/qemu"
)

// together is how many scripts run at once: each is a manager with a server.
const together = 2

var update = flag.Bool("update", false, "rewrite the expectations of scripts")

// The test binary is the program when it is called berth, and a custodian or a
// seat when a manager of a script starts one.
func TestMain(m *testing.M) {
	for _, role := range []func([]string) (bool, int){qemu.Main, process.Main, cli.Agent} {
		if handled, code := role(os.Args[1:]); handled {
			os.Exit(code)
		}
	}
	testscript.Main(m, map[string]func(){"berth": program})
}

// program is main of cmd/berth.
func program() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := cli.Run(ctx, cli.Program{Args: os.Args[1:], Env: os.Getenv, Unset: os.Unsetenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	if code != int(fault.ExitOK) {
		os.Exit(code)
	}
}

func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts managers and servers; -short leaves it out")
	}
	turns := make(chan struct{}, together)
	testscript.Run(t, testscript.Params{
		Dir:                 "scripts",
		RequireExplicitExec: false,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			turns <- struct{}{}
			e.Defer(func() { <-turns })
			return setup(e)
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"up": cmdUp, "down": cmdDown, "ended": cmdEnded, "kill9": cmdKill9, "restarts": cmdRestarts, "scribble": cmdScribble, "exits": cmdExits, "until": cmdUntil, "json": cmdJSON, "save": cmdSave, "load": cmdLoad,
			"http": cmdHTTP, "sha256": cmdSHA256, "glob": cmdGlob, "append-event": cmdAppendEvent, "newer-format": cmdNewerFormat, "canary": cmdCanary, "fill": cmdFill, "external": cmdExternal, "link": cmdLink, "context": cmdContext, "tmpfs": cmdTmpfs, "refused": cmdRefused, "race": cmdRace,
			"watch": cmdWatch, "seen": cmdSeen, "watched": cmdWatched, "on-terminal": cmdOnTerminal,
		},
	})
}

// setup gives a script a home of its own, so that it finds only its manager.
func setup(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	e.Setenv("HOME", home)
	e.Setenv("XDG_STATE_HOME", "")
	e.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	e.Setenv("BERTH_DATA", filepath.Join(e.WorkDir, "data"))
	e.Setenv("NATS_URL", "")
	e.Setenv("NATS_CREDS", "")
	_, limits := machine()
	e.Setenv("SEAT", "--option="+limits) // what a real seat needs on this host
	m := &manager{data: filepath.Join(e.WorkDir, "data")}
	e.Values[managerKey{}] = m
	e.Defer(m.clean)
	return nil
}
