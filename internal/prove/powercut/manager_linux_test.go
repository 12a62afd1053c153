package powercut

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"berth"
	"berth/commands/client"
	"berth/internal/cli"
	"berth/internal/prove/loopdisk"
	"berth/providers/process"
)

// envProgram makes this test's program be berth.
const envProgram = "BERTH_POWERCUT_PROGRAM"

func TestMain(m *testing.M) {
	if handled, code := process.Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	if os.Getenv(envProgram) != "" {
		ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := cli.Run(ctx, cli.Program{Args: os.Args[1:], Env: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
		cancel()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// place is where a manager keeps its things: data on the disk, and the drill
// provider's truth elsewhere, as that of a remote provider is.
type place struct {
	*testing.T
	disk        *loopdisk.Disk
	data, truth string
	home        string
	flags       []string
}

func newPlace(t *testing.T, flags ...string) *place {
	t.Helper()
	d := loopdisk.New(t)
	p := &place{T: t, disk: d, data: filepath.Join(d.Mount, "data"), truth: t.TempDir(), home: t.TempDir()}
	script := filepath.Join(p.home, "drill.json")
	p.must(os.WriteFile(script, []byte(`{"rules":[]}`), 0o600))
	p.flags = append([]string{"up", "--drill", script, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"}, flags...)
	p.must(os.Mkdir(p.data, 0o700))
	p.must(os.Symlink(p.truth, filepath.Join(p.data, "drill")))
	d.Sync()
	return p
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) program(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0], append(args, "--data", p.data)...)
	c.Env = []string{envProgram + "=1", "HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + p.home}
	c.Dir = p.home
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	c.WaitDelay = time.Second
	return c
}

// up is a manager that runs, with a client.
type up struct {
	p      *place
	cmd    *exec.Cmd
	ended  chan struct{}
	out    bytes.Buffer // to be read once it ended
	nc     *nats.Conn
	client *client.Client
	once   sync.Once
}

// start runs a manager and waits until it answers.
func (p *place) start() *up {
	p.Helper()
	u := &up{p: p, ended: make(chan struct{}), cmd: p.program(context.Background(), p.flags...)}
	u.cmd.Stdout, u.cmd.Stderr = &u.out, &u.out
	p.must(u.cmd.Start())
	go func() {
		_ = u.cmd.Wait()
		close(u.ended)
	}()
	p.Cleanup(u.kill)
	for end := time.Now().Add(loopdisk.Within); ; {
		if e, err := berth.ReadEndpoint(p.data); err == nil && e.PID == u.cmd.Process.Pid {
			u.nc, err = nats.Connect(e.NATS, nats.NoReconnect())
			p.must(err)
			u.client = client.Connect(u.nc, e.Space, e.Caller)
			return u
		}
		select {
		case <-u.ended:
			p.Fatalf("the manager ended: %s", u.out.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			u.kill()
			p.Fatalf("the manager was not ready within %s: %s", loopdisk.Within, u.out.String())
		}
	}
}

// freeze stops the manager where it is: a machine without power does nothing
// more. Without it a sync that meets the shutdown of its file system halfway may
// report success, and the manager goes on for the milliseconds until it is
// killed. A thread that the kernel keeps busy, as in the middle of a sync, stops
// before it comes back, so that it is cut there.
func (u *up) freeze() {
	p := u.p
	p.Helper()
	p.must(unix.Kill(-u.cmd.Process.Pid, unix.SIGSTOP))
	for end := time.Now().Add(loopdisk.Within); ; time.Sleep(time.Millisecond) {
		states, err := threads(u.cmd.Process.Pid)
		p.must(err)
		if strings.Trim(states, "TD") == "" {
			return
		}
		if time.Now().After(end) {
			p.Fatalf("the manager does not stop: its threads are %s", states)
		}
	}
}

// threads are the states of a process's threads, one letter each.
func threads(pid int) (states string, err error) {
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("process %d has no threads", pid)
	}
	if err != nil {
		return "", err
	}
	for _, f := range all {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it ended meanwhile
		}
		// The name before it, in parentheses, may hold anything.
		if _, rest, ok := strings.Cut(string(b[bytes.LastIndexByte(b, ')')+1:]), " "); ok && rest != "" {
			states += rest[:1]
		}
	}
	return states, nil
}

// kill ends the manager's whole process group at once and waits for it.
func (u *up) kill() {
	u.once.Do(func() {
		_ = unix.Kill(-u.cmd.Process.Pid, unix.SIGKILL)
		select {
		case <-u.ended:
		case <-time.After(loopdisk.Within):
			u.p.Errorf("the manager can't be killed")
		}
		if u.nc != nil {
			u.nc.Close()
		}
	})
}

// berth runs one command of the program and reads its JSON.
func (p *place) berth(into any, args ...string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), loopdisk.Within)
	defer cancel()
	var out, talk bytes.Buffer
	c := p.program(ctx, append(args, "-o", "json")...)
	c.Stdout, c.Stderr = &out, &talk
	if err := c.Run(); err != nil {
		p.Fatalf("berth %v: %v\n%s%s", args, err, out.String(), talk.String())
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		p.Fatalf("berth %v: %v\n%s", args, err, out.String())
	}
}
