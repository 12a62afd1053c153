//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newGroup(t *testing.T) Group {
	t.Helper()
	l := Detect()
	if l.Memory == "" || l.PIDs == "" || l.CPU == "" {
		t.Skipf("this host offers us no control groups: %+v", l)
	}
	g := Group{Layout: l, Name: fmt.Sprintf("berth-test-%d-%s", os.Getpid(), t.Name())}
	t.Cleanup(func() {
		if err := g.Remove(60 * time.Second); err != nil {
			t.Errorf("a control group was left behind: %v", err)
		}
		for _, d := range g.dirs() {
			if _, err := os.Stat(d); err == nil {
				t.Errorf("%s is still there", d)
			}
		}
	})
	return g
}

func TestLimitsAreSet(t *testing.T) {
	g := newGroup(t)
	if err := g.Create(Limits{CPUMicros: MinCPUMicros, MemoryBytes: 64 << 20, PIDs: 7}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(g.Layout.PIDs, g.Name, "pids.max"))
	if err != nil || strings.TrimSpace(string(b)) != "7" {
		t.Fatalf("pids.max is %q, %v", b, err)
	}
}

func TestALimitThatTheHostCannotSetIsAnError(t *testing.T) {
	g := Group{Name: "berth-test-none"}
	if err := g.Create(Limits{MemoryBytes: 1 << 20}); err == nil {
		t.Fatal("a limit was taken that nothing enforces")
	}
}

func TestFreezeKillRemove(t *testing.T) {
	g := newGroup(t)
	if !g.CanFreeze() {
		t.Skip("no freezer on this host")
	}
	if err := g.Create(Limits{PIDs: 100}); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/bin/sh", "-c", "read x; sleep 1000 & wait")
	in, _ := c.StdinPipe()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.Add(c.Process.Pid); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "go")
	for end := time.Now().Add(60 * time.Second); len(g.Processes()) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the child did not join its parent's group")
		}
	}
	for _, frozen := range []bool{true, false, true} {
		if err := g.Freeze(frozen); err != nil {
			t.Fatal(err)
		}
	}
	// A frozen tree dies all the same.
	g.KillAll()
	if err := c.Wait(); err == nil {
		t.Fatal("the process ended by itself")
	}
}
