// Command berth is the program: a manager of agent environments, and the
// client that talks to one. `berth help` says what it can do.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"berth/events/fault"
	"berth/internal/cli"
	"berth/providers/process"
	"berth/providers/qemu"
)

func main() {
	// The program is also the custodian of an environment, the first process
	// inside it, and the client of an agent there; those roles know nothing of
	// what follows.
	for _, role := range []func([]string) (bool, int){qemu.Main, process.Main, cli.Agent} {
		if handled, code := role(os.Args[1:]); handled {
			os.Exit(code)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals // a second one: at once
		os.Exit(int(fault.ExitInterrupted))
	}()
	os.Exit(cli.Run(ctx, cli.Program{Args: os.Args[1:], Env: os.Getenv, Unset: os.Unsetenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}))
}
