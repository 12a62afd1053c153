// Package acp keeps an agent that speaks the Agent Client Protocol, version 1
// (agentclientprotocol.com), in a seat. It is the program's hidden role
// `berth __acp AGENT [ARG...]`: it starts the agent, opens a session with it,
// says on the seat's descriptor that it is ready, and from then on turns what is
// typed at the seat's terminal into prompts, and what the agent answers into
// text. It decides nothing: whoever sits at the terminal answers the agent's
// questions, and the agent is offered neither files nor terminals of its client.
package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"berth/events"
)

// Role is the first argument that makes the program the client of an agent.
const Role = "__acp"

// Program is how a seat finds this program: as what its first process was
// before. A seat that sees another root than the host's needs no copy of it.
const Program = "/proc/self/exe"

// endPatience is how long an agent may take to end when nobody talks to it any
// more.
const endPatience = 5 * time.Second

// outPatience is how long the last words of an agent that has ended may take.
const outPatience = time.Second

// The exit codes of the role, by which a seat says why it did not become ready
// where nobody reads its terminal any more. 0 is the end of the input.
const (
	ExitNoSession = 1 // none came about, or the agent ended
	ExitVersion   = 76
	ExitLogin     = 77
	ExitNoAgent   = 127
)

// exitError is an error with the code that says it.
type exitError struct {
	code int
	error
}

// Main runs the role. args are the arguments without the program's name;
// handled says that this was the role, and code is its exit code. turns
// are what the manager asks of the seat; nil: nothing can be.
func Main(args []string, turns Turns) (handled bool, code int) {
	if len(args) < 2 || args[0] != Role {
		return false, 0
	}
	err := run(args[1:], turns)
	if err == nil {
		return true, 0
	}
	fmt.Fprintf(os.Stderr, "berth: %s\n", err)
	var e exitError
	if errors.As(err, &e) {
		return true, e.code
	}
	return true, ExitNoSession
}

func run(command []string, turns Turns) error {
	a, err := start(command)
	if err != nil {
		return exitError{ExitNoAgent, err}
	}
	defer a.end()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("the working directory: %w", err)
	}
	shown := newSpool(os.Stdout)
	defer shown.close()
	tellPastes(shown, os.Stdout)
	t := New(Seat{
		In: os.Stdin, Out: shown, Interrupts: interrupts, Dir: cwd, Home: os.Getenv("HOME"),
		Material: os.Getenv(events.EnvMaterial), Ready: sayReady, Turns: turns, TurnCheck: TurnCheck,
	}, a.in, a.out)
	if err = t.Open(context.Background()); err == nil {
		err = t.Talk(context.Background())
	}
	var said exitError
	if err == nil || errors.As(err, &said) {
		return err
	}
	return a.explain(err)
}

// sayReady writes the sign of the connector, and gives the descriptor back.
func sayReady() {
	f := os.NewFile(events.ReadyFD, "ready")
	if f == nil {
		return
	}
	_, _ = f.WriteString("ready\n") // a seat without a sign has no such descriptor
	_ = f.Close()
}

// agent is the process that is talked to.
type agent struct {
	cmd  *exec.Cmd
	in   *os.File
	out  *os.File
	gone chan struct{} // closed when it has ended
	err  error         // of its end
}

// start starts the agent in a process group of its own, so that an interrupt at
// the terminal is ours to tell it of. What it says on standard error is shown as
// it is.
func start(command []string) (*agent, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	hisIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, hisOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = hisIn, hisOut
	err = cmd.Start()
	_, _ = hisIn.Close(), hisOut.Close()
	if err != nil {
		return nil, fmt.Errorf("starting the agent: %w", err)
	}
	a := &agent{cmd: cmd, in: in, out: out, gone: make(chan struct{})}
	go func() {
		a.err = cmd.Wait()
		close(a.gone)
		// What it left behind may hold its output open for ever.
		time.AfterFunc(outPatience, func() { _ = out.Close() })
	}()
	return a, nil
}

// explain adds to an error how the agent ended, if it did: its connection is
// closed a moment before its end is known.
func (a *agent) explain(err error) error {
	select {
	case <-a.gone:
		if a.err != nil {
			return fmt.Errorf("%w: the agent ended with %w", err, a.err)
		}
		return fmt.Errorf("%w: the agent ended", err)
	case <-time.After(outPatience):
		return err
	}
}

// end closes the agent's input, by which it may know that it is over, and kills
// what does not end then.
func (a *agent) end() {
	_ = a.in.Close()
	select {
	case <-a.gone:
	case <-time.After(endPatience):
	}
	_ = syscall.Kill(-a.cmd.Process.Pid, syscall.SIGKILL)
	<-a.gone
}
