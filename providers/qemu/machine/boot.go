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
	"berth/internal/tree"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/guest"
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

// boot starts QEMU and brings the guest to where the seat's command runs.
func (s *supervisor) boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootPatience)
	defer cancel()
	err := s.fromGolden(ctx)
	if err == nil || s.given {
		return s.bootFault(err)
	}
	for _, patience := range tries {
		if err = s.attempt(ctx, s.forks(), func(ctx context.Context) error { return s.begin(ctx, patience) }); !errors.Is(err, errSilent) || ctx.Err() != nil {
			break
		}
		s.Clear()
	}
	return s.bootFault(err)
}

func (s *supervisor) bootFault(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.FailedPrecondition, "starting the machine: %s", events.Scrub(err.Error()))
}

// attempt starts QEMU once and brings it to its command by way of then.
func (s *supervisor) attempt(ctx context.Context, incoming bool, then func(context.Context) error) (err error) {
	if err := s.run(incoming); err != nil {
		return err
	}
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
	if err := s.connect(ctx); err != nil {
		return err
	}
	return then(ctx)
}

// begin goes on from a started QEMU: with the memory of a checkpoint, or when
// the agent of a guest that boots has spoken, which patience bounds.
func (s *supervisor) begin(ctx context.Context, patience time.Duration) error {
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
	log, err := os.OpenFile(s.Dir.File(fileLog), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.start.QEMU, s.start.Args(incoming)...)
	cmd.Dir = s.Dir.Path
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "BERTH_ENVIRONMENT=" + string(s.Dir.ID)}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
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
	return ierr
}

// lastWords are the end of what QEMU said.
func (s *supervisor) lastWords() string {
	b, _ := os.ReadFile(s.Dir.File(fileLog))
	b = bytes.TrimSpace(b[max(0, len(b)-1000):])
	if len(b) == 0 {
		return "without a word"
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// connect opens the only connections to the monitor and to the agent.
func (s *supervisor) connect(ctx context.Context) error {
	c, err := dial(ctx, FileMonitor)
	if err != nil {
		return err
	}
	if s.mon, err = qmp.New(ctx, c); err != nil {
		return err
	}
	if v := s.start.Hardware.Version; s.mon.Version != v {
		return fmt.Errorf("this is QEMU %s, and %s was probed", s.mon.Version, v)
	}
	if c, err = dial(ctx, FileAgent); err != nil {
		return err
	}
	s.peer = newPeer(c, uint64(time.Now().UnixNano()), func(b []byte) { _, _ = s.Output().Write(b) }, s.signed)
	return nil
}

// signed is called when the agent has seen the seat's sign. A trial has none.
func (s *supervisor) signed() {
	if s.Sign != nil {
		s.Sign.Give()
	}
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

// equip brings a guest whose agent was greeted to the seat's command. From
// here on the machine is this seat's and no other may begin in its place.
func (s *supervisor) equip(ctx context.Context) error {
	s.given = true
	files, err := s.smallMaterial()
	if err == nil && files == nil {
		err = s.putMaterial(ctx)
	}
	if err != nil {
		return err
	}
	if r := s.start.Restore; r != nil {
		if err := s.putHome(ctx, *r); err != nil {
			return err
		}
	}
	return s.peer.call(ctx, wire.Frame{Do: wire.DoLaunch, Launch: &s.start.Launch, Files: files}, nil, nil)
}

// smallMaterial is what can go along with the launch, by name; nil: there is
// none, or too much for that. An archive of its own costs a guest that has just
// been loaded a tenth of a second, because it has never run that code before.
func (s *supervisor) smallMaterial() (map[string][]byte, error) {
	entries, err := os.ReadDir(s.Dir.File(seatdir.DirMaterial))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	files, total := map[string][]byte{}, int64(0)
	for _, e := range entries {
		st, err := e.Info()
		if err != nil {
			return nil, err
		}
		if total += st.Size(); !st.Mode().IsRegular() || total > wire.MaxFiles {
			return nil, nil
		}
		if files[e.Name()], err = os.ReadFile(s.Dir.File(seatdir.DirMaterial, e.Name())); err != nil {
			return nil, err
		}
		if s.start.Handoff {
			if err := os.Remove(s.Dir.File(seatdir.DirMaterial, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	return files, err
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

// putMaterial gives the guest its secrets (R54, R55); they are on no command
// line and in no journal.
func (s *supervisor) putMaterial(ctx context.Context) error {
	if ok, err := exists(s.Dir.File(seatdir.DirMaterial)); err != nil || !ok {
		return err
	}
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(tree.Pack(context.Background(), w, s.Dir.File(seatdir.DirMaterial), 0)) }()
	defer r.Close()
	return s.peer.call(ctx, wire.Frame{Do: wire.DoPut, Path: guest.MaterialDir}, r, nil)
}

func exists(p string) (bool, error) {
	_, err := os.Lstat(p)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (s *supervisor) putHome(ctx context.Context, want Restore) error {
	f, err := os.Open(s.Dir.File(want.file()))
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if err := s.peer.call(ctx, wire.Frame{Do: wire.DoPut, Path: guest.Home}, io.TeeReader(f, h), nil); err != nil {
		return err
	}
	return same(want, hex.EncodeToString(h.Sum(nil)))
}

func same(want Restore, sum string) error {
	if sum != want.SHA256 {
		return fmt.Errorf("the checkpoint is damaged: its SHA-256 is %s and should be %s", sum, want.SHA256)
	}
	return nil
}

// restore streams a memory checkpoint in and lets the machine go on, with the
// time, the entropy and the name of now. A damaged one never runs.
func (s *supervisor) restore(ctx context.Context, want Restore) error {
	f, err := os.Open(s.Dir.File(want.file()))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.load(ctx, func(c io.Writer) error {
		h := sha256.New()
		if _, err := io.Copy(io.MultiWriter(c, h), f); err != nil {
			return err
		}
		return same(want, hex.EncodeToString(h.Sum(nil)))
	}); err != nil {
		return err
	}
	if err := s.hello(ctx); err != nil { // also what the agent waits for before it says anything
		return err
	}
	return s.putMaterial(ctx)
}

// load has stream write a memory to the machine, which goes on if it was whole.
func (s *supervisor) load(ctx context.Context, stream func(io.Writer) error) error {
	c, err := dial(ctx, FileMigration)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err = stream(c)
	_ = c.Close()
	for err == nil {
		var status string
		if status, err = s.mon.Status(ctx); err != nil || status == "paused" || status == "running" {
			break
		}
		if status == "internal-error" {
			return errors.New("QEMU could not load the checkpoint")
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	return s.mon.Do(ctx, "cont", nil, nil)
}
