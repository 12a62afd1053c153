package testscripts

import (
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// cmdOnTerminal runs a program on a terminal of its own, waits until it has
// made the terminal raw and shown a text, sends it a signal, and checks that the
// terminal is as it was: on-terminal SIGNAL TEXT program [args...].
func cmdOnTerminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: on-terminal SIGNAL TEXT program [args...]")
	}
	master, slave, err := pty.Open()
	ts.Check(err)
	defer master.Close()
	defer slave.Close()
	before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	ts.Check(err)
	var out lockedBuffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			_, _ = out.Write(buf[:n])
		}
	}()
	c := command(ts, args[2:])
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	deadline := time.Now().Add(patience)
	for raw := false; !raw || !strings.Contains(out.String(), args[1]); time.Sleep(pause) {
		now, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		ts.Check(err)
		if raw = now.Lflag&unix.ICANON == 0; time.Now().After(deadline) {
			_ = c.Process.Kill()
			ts.Fatalf("not raw with %q within %s: raw %t, %q", args[1], patience, raw, out.String())
		}
	}
	ts.Check(c.Process.Signal(unix.SignalNum(args[0])))
	select {
	case <-ended:
	case <-time.After(patience):
		_ = c.Process.Kill()
		ts.Fatalf("it did not end by %s within %s", args[0], patience)
	}
	after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	ts.Check(err)
	if *after != *before {
		ts.Fatalf("%s left the terminal as %+v, not %+v", args[0], after, before)
	}
	_ = slave.Close() // the reader then comes to the end
	<-read
	if !strings.Contains(out.String(), "\x1b[?1049l\x1b[?1l") {
		ts.Fatalf("%s left the modes of the terminal: %q", args[0], out.String())
	}
	_, _ = ts.Stdout().Write([]byte(out.String()))
}
