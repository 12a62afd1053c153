package testscripts

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// command is a program with the script's environment.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	path, err := exec.LookPath(args[0])
	ts.Check(err)
	c := exec.Command(path, args[1:]...)
	c.Dir = ts.MkAbs(".")
	for _, v := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "BERTH_DATA", "TMPDIR"} {
		c.Env = append(c.Env, v+"="+ts.Getenv(v))
	}
	return c
}

// cmdRace runs a program N times at once, with {} in its arguments replaced by
// a number, and prints what each printed and how it ended: race N program args...
func cmdRace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: race N program [args...]")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	cmds, outs := make([]*exec.Cmd, n), make([]lockedBuffer, n)
	var all sync.WaitGroup
	for i := range n {
		words := make([]string, 0, len(args))
		for _, w := range args[1:] {
			words = append(words, strings.ReplaceAll(w, "{}", strconv.Itoa(i)))
		}
		cmds[i] = command(ts, words)
		cmds[i].Stdout, cmds[i].Stderr = &outs[i], &outs[i]
		all.Go(func() { _ = cmds[i].Run() })
	}
	all.Wait()
	for i := range n {
		_, _ = io.WriteString(ts.Stdout(), fmt.Sprintf("%sexit %d\n", outs[i].String(), cmds[i].ProcessState.ExitCode()))
	}
}

// cmdContext writes a NATS context: context FILE URL.
func cmdContext(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: context FILE URL")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(fmt.Sprintf("{\"url\": %q}\n", args[1])), 0o600))
}

// watched is a program in the background, of `watch`.
type watched struct {
	cmd   *exec.Cmd
	out   lockedBuffer
	ended chan error
}

// cmdWatch starts a program in the background and waits until it has printed
// something: watch REGEXP program [args...].
func cmdWatch(ts *testscript.TestScript, neg bool, args []string) {
	m := managerOf(ts)
	if neg || len(args) < 2 || m.watched != nil {
		ts.Fatalf("usage: watch REGEXP program [args...], one at a time")
	}
	re, err := regexp.Compile(args[0])
	ts.Check(err)
	w := &watched{cmd: command(ts, args[1:]), ended: make(chan error, 1)}
	w.cmd.Stdout, w.cmd.Stderr = &w.out, &w.out
	ts.Check(w.cmd.Start())
	m.watched = w
	go func() { w.ended <- w.cmd.Wait() }()
	deadline := time.Now().Add(patience)
	for !re.MatchString(w.out.String()) {
		select {
		case err := <-w.ended:
			w.ended <- err
			if re.MatchString(w.out.String()) {
				return
			}
			ts.Fatalf("it ended: %v\n%s", err, w.out.String())
		case <-time.After(pause):
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%q was not printed within %s\n%s", args[0], patience, w.out.String())
		}
	}
}

// cmdSeen waits until the watched program has printed something: seen REGEXP.
func cmdSeen(ts *testscript.TestScript, neg bool, args []string) {
	m := managerOf(ts)
	if neg || len(args) != 1 || m.watched == nil {
		ts.Fatalf("usage: seen REGEXP, after watch")
	}
	re, err := regexp.Compile(args[0])
	ts.Check(err)
	for deadline := time.Now().Add(patience); !re.MatchString(m.watched.out.String()); time.Sleep(pause) {
		if time.Now().After(deadline) {
			ts.Fatalf("%q was not printed within %s\n%s", args[0], patience, m.watched.out.String())
		}
	}
}

// cmdWatched waits for the end of the watched program and its exit code, and
// gives what it printed to `stdout`: watched CODE.
func cmdWatched(ts *testscript.TestScript, neg bool, args []string) {
	m := managerOf(ts)
	if neg || len(args) != 1 || m.watched == nil {
		ts.Fatalf("usage: watched CODE, after watch")
	}
	w := m.watched
	m.watched = nil
	select {
	case <-w.ended:
	case <-time.After(patience):
		_ = w.cmd.Process.Kill()
		ts.Fatalf("it did not end within %s\n%s", patience, w.out.String())
	}
	_, _ = io.WriteString(ts.Stdout(), w.out.String())
	if got := strconv.Itoa(w.cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("it ended with %s, want %s\n%s", got, args[0], w.out.String())
	}
}
