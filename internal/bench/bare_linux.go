package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"berth/events/fault"
	"berth/providers/qemu/machine"
	"berth/providers/qemu/qmp"
	"berth/providers/qemu/wire"
)

// barePatience bounds the life of one bare machine.
const barePatience = 5 * time.Minute

// bare is QEMU with a guest and nothing of ours around it: the raw side.
type bare struct {
	dir   *os.File // sockets are reached through it, since its path may be too long for them
	cmd   *exec.Cmd
	agent net.Conn
	words *bufio.Reader
	mon   *qmp.Client
}

// newBare starts QEMU as a supervisor does.
func newBare(ctx context.Context, parent string, s machine.Start, incoming bool) (_ *bare, err error) {
	path, err := os.MkdirTemp(parent, "bare-")
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b := &bare{dir: dir, cmd: exec.CommandContext(ctx, s.QEMU, s.Args(incoming)...)}
	b.cmd.Dir = path
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.cmd.Start(); err != nil {
		_ = dir.Close()
		return nil, err
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.agent, err = b.dial(ctx, machine.FileAgent); err != nil {
		return nil, err
	}
	b.words = bufio.NewReader(b.agent)
	return b, nil
}

func (b *bare) dial(ctx context.Context, name string) (net.Conn, error) {
	path := filepath.Join(fmt.Sprintf("/proc/self/fd/%d", b.dir.Fd()), name)
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, fault.New(fault.DeadlineExceeded, "a bare machine has no socket %s", name)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// hears reads what the agent says until want; a guest that hangs is not
// waited for longer than ctx.
func (b *bare) hears(ctx context.Context, want func(wire.Frame) bool) error {
	stop := context.AfterFunc(ctx, func() { _ = b.agent.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	for {
		f, err := wire.Read(b.words)
		if err != nil {
			return fmt.Errorf("a bare machine's agent: %w", err)
		}
		if want(f) {
			return nil
		}
	}
}

// boots waits for the line that our supervisor waits for.
func (b *bare) boots(ctx context.Context) error {
	return b.hears(ctx, func(f wire.Frame) bool { return f.Do == wire.SayReady })
}

// restores loads a state, without a look at its digest, and waits for the
// agent's answer to its greeting.
func (b *bare) restores(ctx context.Context, state string) error {
	f, err := os.Open(state)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := b.monitors(ctx); err != nil {
		return err
	}
	c, err := b.dial(ctx, machine.FileMigration)
	if err != nil {
		return err
	}
	_, err = io.Copy(c, f)
	_ = c.Close()
	for err == nil {
		var status string
		if status, err = b.mon.Status(ctx); status == "paused" || status == "running" {
			break
		}
		if status == "internal-error" {
			return fault.New(fault.Internal, "QEMU could not load the golden state")
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err == nil {
		err = b.mon.Do(ctx, "cont", nil, nil)
	}
	if err != nil {
		return err
	}
	hello := wire.Hello("bare", time.Now(), []byte("entropy of a machine that is thrown away"))
	hello.N = uint64(time.Now().UnixNano())
	if err := wire.NewWriter(b.agent).Send(hello); err != nil {
		return err
	}
	return b.hears(ctx, func(f wire.Frame) bool { return f.N == hello.N })
}

func (b *bare) monitors(ctx context.Context) error {
	c, err := b.dial(ctx, machine.FileMonitor)
	if err == nil {
		b.mon, err = qmp.New(ctx, c)
	}
	return err
}

func (b *bare) close() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
	if b.agent != nil {
		_ = b.agent.Close()
	}
	if b.mon != nil {
		_ = b.mon.Close()
	}
	_ = b.dir.Close()
}
