//go:build linux

package identity

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTreesAndMarks(t *testing.T) {
	c := exec.Command("/bin/sh", "-c", `trap : TERM; trap '' HUP; (read y) <&3 & echo ready; read x`)
	mark := "BERTH_TEST_MARK=" + t.TempDir()
	c.Env = append(os.Environ(), mark)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c.ExtraFiles = []*os.File{r}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	me, err := Of(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if d := Descendants(os.Getpid()); !slices.Contains(d, me) {
		t.Errorf("the child is not among %+v", d)
	}
	if d := Descendants(me.PID); len(d) != 1 || slices.Contains(d, me) {
		t.Errorf("the grandchild: %+v", d)
	}
	if m := WithEnvironment(mark); len(m) != 2 || !slices.Contains(m, me) {
		t.Errorf("marked: %+v", m)
	}
	if DiesByDefault(me.PID, unix.SIGTERM) || !DiesByDefault(me.PID, unix.SIGUSR1) {
		t.Error("the shell catches SIGTERM and not SIGUSR1")
	}
	if Ignores(me.PID, unix.SIGTERM) || !Ignores(me.PID, unix.SIGHUP) {
		t.Error("the shell ignores SIGHUP and not SIGTERM")
	}
	in.Close()
	w.Close()
	_ = c.Wait()
	if err := Signal(me, unix.SIGKILL); err == nil {
		t.Error("a signal to what has ended")
	}
}
