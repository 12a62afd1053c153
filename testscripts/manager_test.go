package testscripts

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"berth"
	"berth/internal/prove/link"
)

// patience is how long a script waits for anything; a condition that holds
// ends the wait, so only a failure takes this long.
const patience = 60 * time.Second

// pause is how often a condition is looked at.
const pause = 50 * time.Millisecond

type managerKey struct{}

// manager is the one background manager of a script.
type manager struct {
	data string

	cmd    *exec.Cmd
	ended  chan error
	output lockedBuffer
	args   []string

	watched *watched
	link    *link.Link
	unmount func()
}

// lockedBuffer is what a manager printed, readable while it runs.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func managerOf(ts *testscript.TestScript) *manager { return ts.Value(managerKey{}).(*manager) }

// cmdUp starts the manager and waits until it is ready: up [flags...].
func cmdUp(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: up [flags...]; a start that fails is `exits CODE berth up ...`")
	}
	m := managerOf(ts)
	if m.cmd != nil {
		ts.Fatalf("the manager is up already")
	}
	m.args = args
	ts.Check(m.start(ts))
	ts.Check(m.ready())
	e, err := berth.ReadEndpoint(m.data)
	ts.Check(err)
	ts.Setenv("NATS", e.NATS)
	ts.Setenv("ADDRESS", strings.TrimPrefix(e.NATS, "nats://"))
	ts.Setenv("HTTP", e.HTTP)
	ts.Setenv("INSTANCE", string(e.Instance))
}

func (m *manager) start(ts *testscript.TestScript) error {
	path := ts.Getenv("PROGRAM") // another build of the program
	if path == "" {
		var err error
		if path, err = exec.LookPath("berth"); err != nil {
			return err
		}
	}
	m.cmd = exec.Command(path, append([]string{"up", "--data", m.data, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"}, m.args...)...)
	m.cmd.Dir = ts.MkAbs(".")
	m.cmd.Stdout, m.cmd.Stderr = &m.output, &m.output
	for _, v := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "BERTH_CANARY"} {
		m.cmd.Env = append(m.cmd.Env, v+"="+ts.Getenv(v))
	}
	if err := m.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	m.ended = ended
	go func(c *exec.Cmd) { ended <- c.Wait() }(m.cmd)
	return nil
}

// ready waits for this process's endpoint file and for /readyz.
func (m *manager) ready() error {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		select {
		case err := <-m.ended:
			m.cmd = nil
			return fmt.Errorf("the manager ended: %v\n%s", err, m.output.String())
		case <-time.After(pause):
		}
		e, err := berth.ReadEndpoint(m.data)
		if err != nil || e.PID != m.cmd.Process.Pid {
			continue
		}
		if code, _, err := get(e.HTTP, "/readyz"); err == nil && code == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("the manager was not ready within %s\n%s", patience, m.output.String())
}

// stop sends a signal and waits for the end.
func (m *manager) stop(sig os.Signal) error {
	if m.cmd == nil {
		return fmt.Errorf("no manager is up")
	}
	cmd := m.cmd
	m.cmd = nil
	if err := cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("%w\n%s", err, m.output.String())
	}
	select {
	case err := <-m.ended:
		if sig == syscall.SIGKILL {
			return nil
		}
		return err
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		return fmt.Errorf("the manager did not end within %s of %s\n%s", patience, sig, m.output.String())
	}
}

// cmdDown ends the manager with SIGTERM and expects exit code 0.
func cmdDown(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: down")
	}
	m := managerOf(ts)
	if err := m.stop(syscall.SIGTERM); err != nil {
		ts.Fatalf("down: %v\n%s", err, m.output.String())
	}
}

// cmdEnded waits until the manager, which was told to end, has ended with a
// code: ended CODE.
func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	m := managerOf(ts)
	if neg || len(args) != 1 || m.cmd == nil {
		ts.Fatalf("usage: ended CODE, while a manager is up")
	}
	cmd := m.cmd
	select {
	case <-m.ended:
		m.cmd = nil
	case <-time.After(patience):
		ts.Fatalf("the manager did not end within %s\n%s", patience, m.output.String())
	}
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("the manager ended with %s, want %s\n%s", got, args[0], m.output.String())
	}
}

// cmdKill9 kills the manager.
func cmdKill9(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: kill9")
	}
	ts.Check(managerOf(ts).stop(syscall.SIGKILL))
}

// clean leaves nothing running, whatever the script did.
func (m *manager) clean() {
	if m.watched != nil {
		_ = m.watched.cmd.Process.Kill()
		<-m.watched.ended
	}
	if m.cmd != nil {
		_ = m.stop(syscall.SIGKILL)
	}
	if m.unmount != nil {
		defer m.unmount()
	}
	procs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range procs {
		line, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(line), m.data+"/") || !strings.Contains(string(line), "__custodian") {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(p, "/proc/%d/", &pid); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
