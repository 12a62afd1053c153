//go:build linux

package guest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"berth/events"
	"berth/providers/process/sign"
	"berth/providers/qemu/wire"
)

// drainPatience bounds the wait for a terminal's last bytes.
const drainPatience = 10 * time.Second

// seat is the command under its terminal.
type seat struct {
	pid     int
	master  *os.File
	drained chan struct{}
	over    chan struct{} // closed when no process is left
	heard   chan struct{} // closed when no sign can come any more
}

// equip writes the material that comes with a launch, before the command runs.
func (a *agent) equip(f wire.Frame) error {
	if err := writeFiles(MaterialDir, f.Files); err != nil {
		return err
	}
	return a.launch(f.Launch)
}

// writeFiles writes files for the owner alone into a directory that is there.
func writeFiles(dir string, files map[string][]byte) error {
	for name, b := range files {
		if name != filepath.Base(name) || !filepath.IsLocal(name) {
			return fmt.Errorf("material %q: that is no name of a file", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// launch starts the seat's command, once in the life of a machine.
func (a *agent) launch(l *wire.Launch) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l == nil || len(l.Command) == 0 {
		return errors.New("there is no command to launch")
	}
	if a.seat != nil {
		return errors.New("the command runs already")
	}
	if l.Door {
		var err error
		if a.door, err = openDoor(DoorDir, a.out); err != nil {
			return fmt.Errorf("opening the door: %w", err)
		}
	}
	for k, v := range l.Env { // also where LookPath looks
		if err := os.Setenv(k, v); err != nil {
			return err
		}
	}
	path, err := exec.LookPath(l.Command[0])
	if err != nil {
		return fmt.Errorf("the guest has no program %q", l.Command[0])
	}
	cmd := &exec.Cmd{Path: path, Args: l.Command, Dir: l.Dir}
	for k, v := range l.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	s := &seat{drained: make(chan struct{}), over: make(chan struct{}), heard: make(chan struct{})}
	said, err := s.descriptor(cmd, l.Ready)
	if err != nil {
		return err
	}
	s.master, err = pty.StartWithSize(cmd, &pty.Winsize{Rows: l.Rows, Cols: l.Cols})
	for _, f := range cmd.ExtraFiles {
		_ = f.Close()
	}
	if err != nil {
		if said != nil {
			_ = said.Close()
		}
		return fmt.Errorf("starting %q: %w", l.Command[0], err)
	}
	s.pid = cmd.Process.Pid
	go a.seek(s, l.Ready, said)
	_ = cmd.Process.Release() // reaped below, with every orphan
	a.seat = s
	go a.pump(s)
	go a.reap(s)
	return nil
}

// descriptor gives the command its end of the descriptor on which it says that
// it is ready, and returns the other one, if that is its sign.
func (s *seat) descriptor(cmd *exec.Cmd, want *events.ReadySign) (said *os.File, err error) {
	if want == nil || want.Kind != events.SignFD {
		return nil, nil
	}
	said, says, err := os.Pipe()
	if err == nil {
		cmd.ExtraFiles = []*os.File{says} // the first of them is events.ReadyFD
	}
	return said, err
}

// seek tells of the seat's sign when it has seen it.
func (a *agent) seek(s *seat, want *events.ReadySign, said *os.File) {
	defer close(s.heard)
	seen := false
	switch {
	case said != nil:
		seen = sign.Line(said)
		_ = said.Close()
	case want != nil && want.Kind == events.SignPort:
		seen = sign.Port(s.pid, want.Port, s.over)
	}
	if seen {
		if err := a.out.Send(wire.Frame{Do: wire.SaySign}); err != nil {
			say("telling the sign: %s", err)
		}
	}
}

// pump sends what the terminal gives.
func (a *agent) pump(s *seat) {
	defer close(s.drained)
	buf := make([]byte, 32<<10)
	for {
		n, err := s.master.Read(buf)
		if n > 0 {
			if err := a.out.Send(wire.Frame{Do: wire.SayOutput, Data: buf[:n]}); err != nil {
				say("output: %s", err)
			}
		}
		if err != nil {
			return
		}
	}
}

// reap waits for every process of the guest, as its first process must. When
// the command has ended, what it left behind is killed, and then it is told.
func (a *agent) reap(s *seat) {
	code := -1
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil { // no process is left
			break
		}
		if pid == s.pid {
			if code = ws.ExitStatus(); ws.Signaled() {
				code = 128 + int(ws.Signal())
			}
			_ = unix.Kill(-1, unix.SIGKILL)
		}
	}
	close(s.over)
	patience := time.After(drainPatience)
	for _, last := range []chan struct{}{s.drained, s.heard} { // what it said before its end counts
		select {
		case <-last:
		case <-patience:
		}
	}
	if err := a.out.Send(wire.Frame{Do: wire.SayExit, Code: code}); err != nil {
		say("telling the end: %s", err)
	}
}

func (s *seat) input(b []byte) error {
	_, err := s.master.Write(b)
	return err
}

func (s *seat) resize(rows, cols uint16) error {
	return pty.Setsize(s.master, &pty.Winsize{Rows: rows, Cols: cols})
}
