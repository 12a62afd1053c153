//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Group is one seat's control groups: one directory per parent in use.
type Group struct {
	Layout Layout `json:"layout"`
	Name   string `json:"name"`
}

func (g Group) dirs() []string {
	out := g.Layout.parents()
	for i, p := range out {
		out[i] = filepath.Join(p, g.Name)
	}
	return out
}

func (l Layout) parents() []string {
	var out []string
	for _, p := range []string{l.CPU, l.Memory, l.PIDs, l.Freezer, l.Kill} {
		if p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// Sweep removes every group whose name begins with prefix, and ends what is in
// it, but for keep. What is left of it after d is an error.
func (l Layout) Sweep(prefix, keep string, d time.Duration) error {
	names := map[string]bool{}
	for _, p := range l.parents() {
		found, err := filepath.Glob(filepath.Join(p, prefix) + "*")
		if err != nil {
			return err
		}
		for _, f := range found {
			names[filepath.Base(f)] = true
		}
	}
	delete(names, keep)
	var errs []error
	for name := range names {
		errs = append(errs, Group{Layout: l, Name: name}.Remove(d))
	}
	return errors.Join(errs...)
}

// Create makes the group's directories and sets the limits. On an error what
// was made is removed again.
func (g Group) Create(l Limits) (err error) {
	defer func() {
		if err != nil {
			_ = g.Remove(0)
		}
	}()
	for _, d := range g.dirs() {
		if err := os.Mkdir(d, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("making control group: %w", err)
		}
	}
	type set struct{ parent, file, value string }
	var sets []set
	if l.CPUMicros > 0 {
		if g.Layout.UnifiedLimits {
			sets = append(sets, set{g.Layout.CPU, "cpu.max", fmt.Sprintf("%d %d", l.CPUMicros, Period)})
		} else {
			sets = append(sets, set{g.Layout.CPU, "cpu.cfs_period_us", strconv.Itoa(Period)},
				set{g.Layout.CPU, "cpu.cfs_quota_us", strconv.FormatInt(l.CPUMicros, 10)})
		}
	}
	if l.MemoryBytes > 0 {
		file := "memory.limit_in_bytes"
		if g.Layout.UnifiedLimits {
			file = "memory.max"
		}
		sets = append(sets, set{g.Layout.Memory, file, strconv.FormatInt(l.MemoryBytes, 10)})
	}
	if l.PIDs > 0 {
		sets = append(sets, set{g.Layout.PIDs, "pids.max", strconv.FormatInt(l.PIDs, 10)})
	}
	for _, s := range sets {
		if s.parent == "" {
			return fmt.Errorf("this host offers no control group with %s", s.file)
		}
		if err := os.WriteFile(filepath.Join(s.parent, g.Name, s.file), []byte(s.value), 0); err != nil {
			return fmt.Errorf("setting %s: %w", s.file, err)
		}
	}
	return nil
}

// Add moves a process, and what it will fork, into the group.
func (g Group) Add(pid int) error {
	for _, d := range g.dirs() {
		if err := os.WriteFile(filepath.Join(d, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("joining control group: %w", err)
		}
	}
	return nil
}

// CanFreeze says whether Freeze works here.
func (g Group) CanFreeze() bool { return g.Name != "" && g.Layout.Freezer != "" }

// freezeDeadline bounds the wait for the kernel's report of a freeze.
const freezeDeadline = 30 * time.Second

// Freeze stops (or goes on with) every process of the group at once, and
// returns when the kernel reports it done.
func (g Group) Freeze(frozen bool) error {
	dir := filepath.Join(g.Layout.Freezer, g.Name)
	file, value := "freezer.state", map[bool]string{true: "FROZEN", false: "THAWED"}[frozen]
	if g.Layout.UnifiedFreezer {
		file, value = "cgroup.freeze", map[bool]string{true: "1", false: "0"}[frozen]
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
		return fmt.Errorf("freezing the control group: %w", err)
	}
	for end := time.Now().Add(freezeDeadline); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if now, err := g.frozen(); err != nil || now == frozen {
			return err
		}
	}
	return fmt.Errorf("the kernel did not finish freezing the control group in %s", freezeDeadline)
}

func (g Group) frozen() (bool, error) {
	dir := filepath.Join(g.Layout.Freezer, g.Name)
	if g.Layout.UnifiedFreezer {
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
		return strings.Contains(string(b), "frozen 1"), err
	}
	b, err := os.ReadFile(filepath.Join(dir, "freezer.state"))
	return strings.TrimSpace(string(b)) == "FROZEN", err
}

// Processes lists the pids in the group.
func (g Group) Processes() []int {
	seen := map[int]bool{}
	var out []int
	for _, d := range g.dirs() {
		b, _ := os.ReadFile(filepath.Join(d, "cgroup.procs"))
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 && !seen[pid] {
				seen[pid] = true
				out = append(out, pid)
			}
		}
	}
	return out
}

// KillAll ends every process of the group, frozen ones too.
func (g Group) KillAll() {
	if g.Name == "" {
		return
	}
	if g.Layout.Kill != "" {
		_ = os.WriteFile(filepath.Join(g.Layout.Kill, g.Name, "cgroup.kill"), []byte("1"), 0)
	}
	for _, pid := range g.Processes() {
		g.kill(pid)
	}
	// A version 1 freezer holds even SIGKILL back until it is thawed.
	if g.CanFreeze() && !g.Layout.UnifiedFreezer {
		_ = os.WriteFile(filepath.Join(g.Layout.Freezer, g.Name, "freezer.state"), []byte("THAWED"), 0)
	}
}

// kill ends one member. The pidfd is opened before the membership is read
// again, so that a pid that was reused in between is not hit.
func (g Group) kill(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if strings.Contains(string(b), "/"+g.Name) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// Remove deletes the group's directories, waiting at most d for the last
// processes to leave them. Removing what is not there is no error.
func (g Group) Remove(d time.Duration) error {
	if g.Name == "" {
		return nil
	}
	end := time.Now().Add(d)
	for {
		var last error
		for _, dir := range g.dirs() {
			if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				last = err
			}
		}
		if last == nil || !time.Now().Before(end) {
			return last
		}
		g.KillAll()
		time.Sleep(2 * time.Millisecond)
	}
}
