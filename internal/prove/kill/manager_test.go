//go:build linux

package kill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"berth"
	"berth/commands/client"
	"berth/events"
	"berth/events/fault"
	"berth/internal/ids"
)

// patience is how long anything may take; a condition that holds ends the
// wait, so that only a failure takes this long.
const patience = 60 * time.Second

// pause is how often a condition is looked at.
const pause = 10 * time.Millisecond

// together is how many managers run at once.
const together = 2

var turns = make(chan struct{}, together)

// world is one data directory with its manager, which is started again
// whenever the trap killed it.
type world struct {
	*testing.T
	dir    string // of the data
	flags  []string
	crash  string // where the next start dies
	signal string // what the trap does; empty: it kills
	after  string // where the start after that dies
	list   string // file of the points that are passed

	cmd    *exec.Cmd
	stdin  io.Closer
	ended  chan struct{}
	out    output
	conn   *nats.Conn
	call   *client.Client
	ids    events.IDs
	kills  int    // deaths by the trap
	missed string // where the trap was set and never passed

	goals int    // that clients asked for
	ready func() // called once, when the life runs
	since uint64 // sequence that reads must have seen
}

// output is what managers printed, readable while they run.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func newWorld(t *testing.T, flags ...string) *world {
	t.Helper()
	turns <- struct{}{}
	w := &world{T: t, dir: filepath.Join(scratch(t), "data"), flags: flags, ids: ids.New()}
	t.Cleanup(func() {
		w.kill(syscall.SIGKILL)
		<-turns
	})
	return w
}

// scratch is a directory in memory where there is room: kill -9 loses nothing
// that was written, so that the disk's own speed says nothing here.
func scratch(t *testing.T) string {
	const shm, room = "/dev/shm", 1 << 30
	var fs unix.Statfs_t
	if err := unix.Statfs(shm, &fs); err != nil || fs.Bavail*uint64(fs.Bsize) < room {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(shm, "berth-kill-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// up starts the manager and waits until it serves; one that the trap kills
// while it starts is started again.
func (w *world) up() {
	w.Helper()
	for {
		w.start()
		end := time.Now().Add(patience)
		for !w.serving() && !w.dead() {
			if time.Now().After(end) {
				w.Fatalf("the manager was not ready within %s\n%s", patience, w.out.String())
			}
			time.Sleep(pause)
		}
		if !w.dead() {
			return
		}
		w.bury()
	}
}

func (w *world) start() {
	w.Helper()
	self, err := os.Executable()
	w.must(err)
	w.cmd = exec.Command(self, append([]string{"up", "--data", w.dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "-o", "json"}, w.flags...)...)
	w.cmd.Env = []string{envRole + "=program", envCrash + "=" + w.crash, envPoints + "=" + w.list, envSignal + "=" + w.signal, "HOME=" + filepath.Dir(w.dir)}
	for _, v := range []string{"PATH", "TMPDIR"} {
		w.cmd.Env = append(w.cmd.Env, v+"="+os.Getenv(v))
	}
	w.cmd.Stdout, w.cmd.Stderr = &w.out, &w.out
	w.stdin, err = w.cmd.StdinPipe()
	w.must(err)
	w.must(w.cmd.Start())
	ended := make(chan struct{})
	w.ended = ended
	go func(c *exec.Cmd) { _ = c.Wait(); close(ended) }(w.cmd)
}

// serving says that this process answers commands.
func (w *world) serving() bool {
	e, err := berth.ReadEndpoint(w.dir)
	if err != nil || e.PID != w.cmd.Process.Pid {
		return false
	}
	if w.conn, err = nats.Connect(e.NATS, nats.NoReconnect()); err != nil {
		return false
	}
	w.call = client.Connect(w.conn, e.Space, e.Caller)
	return true
}

func (w *world) dead() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// bury takes note of a death, which must be that of the trap.
func (w *world) bury() {
	w.Helper()
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
	s := w.cmd.ProcessState.Sys().(syscall.WaitStatus)
	w.cmd = nil
	if w.crash == "" || !s.Signaled() || s.Signal() != syscall.SIGKILL {
		w.Fatalf("the manager ended by itself: %v\n%s", s, w.out.String())
	}
	w.kills++
	w.crash, w.after = w.after, ""
}

// kill ends the manager as the test wants it to, not the trap.
func (w *world) kill(s syscall.Signal) syscall.WaitStatus {
	w.Helper()
	if w.cmd == nil {
		return 0
	}
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
	_ = w.cmd.Process.Signal(s)
	select {
	case <-w.ended:
	case <-time.After(patience):
		_ = w.cmd.Process.Kill()
		<-w.ended
		w.Errorf("the manager did not end within %s of %s\n%s", patience, s, w.out.String())
	}
	state := w.cmd.ProcessState.Sys().(syscall.WaitStatus)
	_ = w.stdin.Close()
	w.cmd = nil
	return state
}

// down ends the manager cleanly; the trap may kill it on its way.
func (w *world) down() {
	w.Helper()
	for {
		if w.cmd == nil {
			w.up()
		}
		armed := w.crash
		s := w.kill(syscall.SIGTERM)
		if s.Exited() && s.ExitStatus() == 0 {
			return
		}
		if armed == "" || !s.Signaled() {
			w.Fatalf("a clean stop ended with %v\n%s", s, w.out.String())
		}
		w.kills++
		w.crash, w.after = w.after, ""
	}
}

var errNotYet = errors.New("not yet")

// do asks until there is an answer, of whichever manager; a refusal that asking
// again can't change fails the test.
func (w *world) do(what string, f func(ctx context.Context, c *client.Client) error) {
	w.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(pause) {
		if w.cmd == nil {
			w.up()
		}
		err = w.try(f)
		if err == nil {
			return
		}
		if w.dead() {
			w.bury()
			continue
		}
		if e := fault.From(err); !errors.Is(err, errNotYet) && final(e.Code) {
			w.Fatalf("%s: %s, %s: %s\n%s", what, e.Code, e.Outcome, e.Message, w.out.String())
		}
	}
	w.Fatalf("%s: not within %s: %v\n%s", what, patience, err, w.out.String())
}

// try asks once; the death of the manager ends it.
func (w *world) try(f func(ctx context.Context, c *client.Client) error) error {
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	go func(ended chan struct{}) {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}(w.ended)
	return f(ctx, w.call)
}

func final(c fault.Code) bool {
	switch c {
	case fault.BadRequest, fault.Conflict, fault.FailedPrecondition, fault.NotFound, fault.Expired, fault.PermissionDenied, fault.Unimplemented, fault.Internal, fault.ContractMismatch:
		return true
	}
	return false
}

// command is a fresh id for a request that is repeated until it is answered.
func (w *world) command() client.Option { return client.WithID(events.CommandID(w.ids.UUID())) }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// notYet is why a condition does not hold.
func notYet(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errNotYet, fmt.Sprintf(format, args...))
}
