//go:build linux

package kill

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"berth/internal/cli"
	"berth/providers/process"
)

// What makes the test binary the program, and where that program dies. Only
// this main reads them: the program that is shipped knows neither.
const (
	envRole   = "BERTH_PROVE_ROLE"
	envCrash  = "BERTH_PROVE_CRASH"  // POINT:N, or *:N for the Nth of any name
	envSignal = "BERTH_PROVE_SIGNAL" // stop: freezes there instead of dying
	envPoints = "BERTH_PROVE_POINTS" // a file that takes the points passed
)

func TestMain(m *testing.M) {
	if handled, code := process.Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	if os.Getenv(envRole) == "program" {
		os.Exit(program())
	}
	os.Exit(m.Run())
}

// program is main of cmd/berth with a trap. It ends with its parent, so that
// a test that is cut leaves no manager behind.
func program() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	t, err := newTrap(os.Getenv(envCrash), os.Getenv(envPoints))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return cli.Run(ctx, cli.Program{Args: os.Args[1:], Env: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Hook: t.pass})
}

// trap kills the process at the nth time that it passes a point, or freezes it
// there until somebody lets it go on.
type trap struct {
	point string
	nth   int
	stop  bool
	out   *os.File

	mu     sync.Mutex
	passed int
}

func newTrap(at, points string) (*trap, error) {
	t := &trap{stop: os.Getenv(envSignal) == "stop"}
	if at != "" {
		i := strings.LastIndexByte(at, ':')
		n, err := strconv.Atoi(at[i+1:])
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", envCrash, at, err)
		}
		t.point, t.nth = at[:i], n
	}
	var err error
	if points != "" {
		t.out, err = os.OpenFile(points, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	return t, err
}

func (t *trap) pass(point string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.out != nil {
		if _, err := t.out.WriteString(point + "\n"); err != nil {
			return err
		}
	}
	if t.point == point || t.point == "*" {
		switch t.passed++; {
		case t.passed != t.nth:
		case t.stop:
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		default:
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal ends us here
		}
	}
	return nil
}
