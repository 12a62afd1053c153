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

// What is wanted is cut to what a host can enforce, and that is named.
func TestWhatAHostEnforces(t *testing.T) {
	want := Limits{CPUMicros: 1, MemoryBytes: 2, PIDs: 3}
	for _, c := range []struct {
		l    Layout
		want Limits
		says string
	}{
		{Layout{}, Limits{}, "none"},
		{Layout{Freezer: "/f", Kill: "/k"}, Limits{}, "none"},
		{Layout{Memory: "/m"}, Limits{MemoryBytes: 2}, "memory"},
		{Layout{CPU: "/c", PIDs: "/p"}, Limits{CPUMicros: 1, PIDs: 3}, "cpu, pids"},
		{Layout{CPU: "/c", Memory: "/m", PIDs: "/p"}, want, "cpu, memory, pids"},
	} {
		if got := c.l.Limit(want); got != c.want || c.l.Enforced() != c.says {
			t.Errorf("%+v: %+v, %q", c.l, got, c.l.Enforced())
		}
	}
}

// A sweep takes every group of a prefix but the one that is kept, with what is
// in it.
func TestSweep(t *testing.T) {
	g := newGroup(t)
	l := g.Layout
	all := map[string]Group{}
	for _, name := range []string{"-kept", "-left", "-full"} {
		all[name] = Group{Layout: l, Name: g.Name + name}
		if err := all[name].Create(Limits{PIDs: 10}); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := all["-full"].Add(c.Process.Pid); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	if err := l.Sweep(g.Name, all["-kept"].Name, 60*time.Second); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("what was in a group ended by itself")
	}
	for name, group := range all {
		if _, err := os.Stat(group.dirs()[0]); (err == nil) != (name == "-kept") {
			t.Errorf("group %s: %v", name, err)
		}
	}
	if err := l.Sweep(g.Name, "", 60*time.Second); err != nil {
		t.Error(err)
	}
}

// What was found is believed for a while: a trial makes directories.
func TestFinderAsksOnce(t *testing.T) {
	n := 0
	f := Finder{Detect: func() Layout { n++; return Layout{Memory: "/m"} }}
	for range 3 {
		if f.Layout().Memory != "/m" {
			t.Error("it is not what was found")
		}
	}
	if n != 1 {
		t.Errorf("%d trials", n)
	}
}

// The least room counts of the limits above a group, with what can be taken back.
func TestRoomBelowLimits(t *testing.T) {
	top := t.TempDir()
	own := filepath.Join(top, "own")
	files := func(dir string, all map[string]string) {
		t.Helper()
		_ = os.MkdirAll(dir, 0o755)
		for name, text := range all {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	one, two := Layout{Memory: own}, Layout{Memory: own, UnifiedLimits: true}
	files(top, map[string]string{"memory.limit_in_bytes": "9223372036854771712", "memory.usage_in_bytes": "1", "memory.max": "max", "memory.current": "1"})
	files(own, map[string]string{"memory.limit_in_bytes": "9223372036854771712", "memory.usage_in_bytes": "1", "memory.max": "max", "memory.current": "1"})
	for name, l := range map[string]Layout{"version 1": one, "version 2": two, "none": {}} {
		if n, limited := l.Room(); limited {
			t.Errorf("%s without a limit: %d", name, n)
		}
	}
	files(top, map[string]string{"memory.limit_in_bytes": "1000", "memory.usage_in_bytes": "700", "memory.max": "1000", "memory.current": "700"})
	files(own, map[string]string{"memory.limit_in_bytes": "600", "memory.usage_in_bytes": "550", "memory.max": "600", "memory.current": "550"})
	files(own, map[string]string{"memory.stat": "cache 1\ninactive_file 20"})
	for name, l := range map[string]Layout{"version 1": one, "version 2": two} {
		if n, limited := l.Room(); !limited || n != 70 {
			t.Errorf("%s: %d %t, want 70", name, n, limited)
		}
	}
	files(own, map[string]string{"memory.stat": "inactive_file 20\ntotal_inactive_file 900"})
	if n, _ := one.Room(); n != 300 {
		t.Errorf("the limit further up: %d, want 300", n)
	}
}
