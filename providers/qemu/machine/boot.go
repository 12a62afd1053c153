//go:build linux

package machine

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/identity"
	"berth/providers/qemu/qmp"
	"berth/providers/qemu/wire"
)

// Boots is how many machines of one manager boot at a time: a queue is as
// fast as a stampede, and the first of it is sooner there.
const Boots = 2

// takeSlot waits for a turn to boot; the kernel frees it when we die.
func takeSlot(ctx context.Context, dir string) (free func(), err error) {
	for {
		for i := range Boots {
			f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("slot-%d", i)), os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				return nil, err
			}
			if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
				return func() { _ = f.Close() }, nil
			}
			_ = f.Close()
		}
		select {
		case <-ctx.Done():
			return nil, fault.New(fault.DeadlineExceeded, "other machines are booting, %d at a time, and no turn came", Boots)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// tries are how long each attempt may take until the agent is there. A kernel
// under emulation sometimes hangs in its first second, and then for ever; until
// its agent has spoken a guest was given nothing, so that it can begin anew.
var tries = []time.Duration{40 * time.Second, 60 * time.Second, bootPatience}

// lastWordsPatience is how long a QEMU that closed its sockets may take to end.
const lastWordsPatience = time.Second

// errSilent says that the agent of a guest that boots did not speak in time.
var errSilent = errors.New("the guest's agent is not there in time")

// boot starts QEMU and brings the guest to where one step makes the seat's
// command run: it has its home and its material, or its memory.
func (s *supervisor) boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootPatience)
	defer cancel()
	err := s.fromGolden(ctx)
	if err == nil || s.given {
		return err
	}
	for _, patience := range tries {
		if err = s.attempt(ctx, s.forks(), func(ctx context.Context) error { return s.furnish(ctx, patience) }); !errors.Is(err, errSilent) || ctx.Err() != nil {
			break
		}
		s.Clear()
	}
	return err
}

func (s *supervisor) bootFault(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.FailedPrecondition, "starting the machine: %s", events.Scrub(err.Error()))
}

// attempt starts QEMU once and brings it on by way of then.
func (s *supervisor) attempt(ctx context.Context, incoming bool, then func(context.Context) error) error {
	if err := s.run(incoming); err != nil {
		return err
	}
	return s.during(ctx, func(ctx context.Context) error {
		if err := s.connect(ctx); err != nil {
			return err
		}
		return then(ctx)
	})
}

// during does something with a QEMU that runs, as long as it does.
func (s *supervisor) during(ctx context.Context, do func(context.Context) error) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	gone := s.gone
	defer func() { // the end of QEMU says more than what it broke
		if err == nil || errors.Is(err, errSilent) && ctx.Err() == nil {
			return
		}
		select {
		case <-gone:
			err = fmt.Errorf("QEMU ended: %s", s.lastWords())
		case <-time.After(lastWordsPatience):
		}
	}()
	go func() { // a QEMU that ends ends every wait for it
		select {
		case <-gone:
			stop()
		case <-ctx.Done():
		}
	}()
	return do(ctx)
}

// furnish goes on from a started QEMU: with the memory of a checkpoint, or when
// the agent of a guest that boots has spoken, which patience bounds.
func (s *supervisor) furnish(ctx context.Context, patience time.Duration) error {
	if s.forks() {
		return s.restore(ctx, *s.start.Restore)
	}
	select {
	case <-s.peer.ready:
		if err := s.keepGolden(ctx); err != nil {
			return err
		}
		if err := s.hello(ctx); err != nil {
			return err
		}
		return s.equip(ctx)
	case <-s.peer.broken:
		return s.peer.err
	case <-ctx.Done():
		return errSilent
	case <-time.After(patience):
		return errSilent
	}
}

// forks says that the machine begins from a memory checkpoint.
func (s *supervisor) forks() bool {
	return s.start.Restore != nil && s.start.Restore.Kind == "memory"
}

func (s *supervisor) run(incoming bool) error {
	log, err := os.OpenFile(s.Dir.File(s.start.name(fileLog)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.start.QEMU, s.start.Args(incoming)...)
	cmd.Dir = s.Dir.Path
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", events.EnvEnvironment + "=" + string(s.Dir.ID)}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	g := s.start.Group
	if g.Name != "" {
		if err := g.Create(s.start.Limits); err != nil {
			return fault.New(fault.FailedPrecondition, "limits: %s", err)
		}
	}
	if err := cmd.Start(); err != nil {
		return fault.New(fault.FailedPrecondition, "starting QEMU: %s", err)
	}
	gone := make(chan struct{})
	s.cmd, s.gone = cmd, gone
	var ierr error
	s.who, ierr = identity.Of(cmd.Process.Pid)
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	if ierr == nil && g.Name != "" {
		ierr = g.Add(cmd.Process.Pid) // it has not touched the guest's memory yet
	}
	return ierr
}

// endPatience bounds how long removing an emptied control group may take.
const endPatience = 10 * time.Second

// lastWords are the end of what QEMU said.
func (s *supervisor) lastWords() string {
	b, _ := os.ReadFile(s.Dir.File(s.start.name(fileLog)))
	b = bytes.TrimSpace(b[max(0, len(b)-1000):])
	if len(b) == 0 {
		return "without a word"
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// connect opens the only connections to the monitor and to the agent.
func (s *supervisor) connect(ctx context.Context) error {
	c, err := dial(ctx, s.start.name(FileMonitor))
	if err != nil {
		return err
	}
	if s.mon, err = qmp.New(ctx, c); err != nil {
		return err
	}
	if v := s.start.Hardware.Version; s.mon.Version != v {
		return fmt.Errorf("this is QEMU %s, and %s was probed", s.mon.Version, v)
	}
	if c, err = dial(ctx, s.start.name(FileAgent)); err != nil {
		return err
	}
	s.peer = newPeer(c, uint64(time.Now().UnixNano()), s.said.output, s.said.sign, s.doors)
	return s.Drop(s.start.name(FileMonitor), s.start.name(FileAgent)) // nobody else ever connects
}

// dial waits for a socket that QEMU is about to make.
func dial(ctx context.Context, name string) (net.Conn, error) {
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", name)
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("socket %s: %w", name, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// goes is the one step: the command is launched, or goes on where its memory
// was, with the time, the entropy and the name of now.
func (s *supervisor) goes(ctx context.Context) error {
	defer func() { s.small = nil }()
	if !s.forks() {
		return s.peer.call(ctx, wire.Frame{Do: wire.DoLaunch, Launch: &s.start.Launch, Files: s.small}, nil, nil)
	}
	if err := s.mon.Do(ctx, "cont", nil, nil); err != nil {
		return err
	}
	if err := s.hello(ctx); err != nil { // also what the agent waits for before it says anything
		return err
	}
	if err := s.peer.send(ctx, wire.Frame{Do: wire.Door}, nil); err != nil { // whom its programs spoke with is not there
		return err
	}
	return s.putMaterial(ctx)
}

func (s *supervisor) hello(ctx context.Context) error {
	f, err := s.greeting()
	if err != nil {
		return err
	}
	return s.peer.call(ctx, f, nil, nil)
}

// greeting gives a guest its name, the time of now and fresh entropy.
func (s *supervisor) greeting() (wire.Frame, error) {
	entropy := make([]byte, 64)
	if _, err := rand.Read(entropy); err != nil {
		return wire.Frame{}, err
	}
	return wire.Hello(s.start.Hostname, time.Now(), entropy), nil
}

// restore streams a memory checkpoint into the machine, which stands still. A
// damaged one never runs.
func (s *supervisor) restore(ctx context.Context, want Restore) error {
	f, err := os.Open(s.Dir.File(want.file()))
	if err != nil {
		return err
	}
	defer f.Close()
	return s.load(ctx, func(c io.Writer) error {
		h := sha256.New()
		if _, err := io.Copy(io.MultiWriter(c, h), f); err != nil {
			return err
		}
		return same(want, hex.EncodeToString(h.Sum(nil)))
	})
}

// load has stream write a memory to the machine, which stands still with it if
// it was whole.
func (s *supervisor) load(ctx context.Context, stream func(io.Writer) error) error {
	c, err := dial(ctx, s.start.name(FileMigration))
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = s.Drop(s.start.name(FileMigration))
	err = stream(c)
	_ = c.Close()
	if err != nil {
		return err
	}
	for {
		status, err := s.mon.Status(ctx)
		switch {
		case err != nil:
			return err
		case status == "paused" || status == "postmigrate": // as it was when it was saved
			return nil
		case status != "inmigrate":
			return fmt.Errorf("QEMU could not load the checkpoint: it is %s", status)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
