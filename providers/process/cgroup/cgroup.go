//go:build linux

package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Layout is where groups can be made: a parent directory per ability. An
// empty path says that the host does not offer it to us.
type Layout struct {
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
	PIDs   string `json:"pids,omitempty"`
	// Freezer is the parent for freezing; UnifiedFreezer says of which version.
	Freezer        string `json:"freezer,omitempty"`
	UnifiedFreezer bool   `json:"unifiedFreezer,omitempty"`
	// Kill is the version 2 parent whose children have cgroup.kill.
	Kill string `json:"kill,omitempty"`
	// UnifiedLimits says that CPU, Memory and PIDs are version 2 directories.
	UnifiedLimits bool `json:"unifiedLimits,omitempty"`
}

// Limits of one group; zero means not limited.
type Limits struct {
	CPUMicros   int64 `json:"cpuMicros,omitempty"` // per Period of CPU time
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	PIDs        int64 `json:"pids,omitempty"`
}

// Period is the time over which CPUMicros is counted, in microseconds.
const Period = 100_000

// MinCPUMicros is the least quota that the kernel accepts: a hundredth of a CPU.
const MinCPUMicros = 1000

// Detect finds by trial what this process may use.
func Detect() Layout {
	mounts, unified := mountPoints()
	own := ownPaths()
	var l Layout
	for name, slot := range map[string]*string{"cpu": &l.CPU, "memory": &l.Memory, "pids": &l.PIDs, "freezer": &l.Freezer} {
		if m := mounts[name]; m != "" {
			*slot = usable(m, own[name], v1Files[name])
		}
	}
	if unified == "" {
		return l
	}
	l.Kill = usable(unified, own[""], "cgroup.kill")
	if p := usable(unified, own[""], "cgroup.freeze"); p != "" {
		l.Freezer, l.UnifiedFreezer = p, true
	}
	if l.CPU == "" && l.Memory == "" && l.PIDs == "" {
		l.CPU = usable(unified, own[""], "cpu.max")
		l.Memory = usable(unified, own[""], "memory.max")
		l.PIDs = usable(unified, own[""], "pids.max")
		l.UnifiedLimits = l.CPU != "" || l.Memory != "" || l.PIDs != ""
	}
	return l
}

var v1Files = map[string]string{"cpu": "cpu.cfs_quota_us", "memory": "memory.limit_in_bytes", "pids": "pids.max", "freezer": "freezer.state"}

// usable returns the first of our own group and the root in which a child
// group with the file can be made.
func usable(mount, own, file string) string {
	for _, parent := range []string{filepath.Join(mount, own), mount} {
		probe, err := os.MkdirTemp(parent, "berth-probe-")
		if err != nil {
			continue
		}
		f, err := os.OpenFile(filepath.Join(probe, file), os.O_WRONLY, 0)
		if err == nil {
			_ = f.Close()
		}
		_ = os.Remove(probe)
		if err == nil {
			return parent
		}
	}
	return ""
}

func mountPoints() (v1 map[string]string, unified string) {
	v1 = map[string]string{}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return v1, ""
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(make([]byte, 64<<10), 1<<20)
	for s.Scan() {
		head, tail, ok := strings.Cut(s.Text(), " - ")
		h, t := strings.Fields(head), strings.Fields(tail)
		if !ok || len(h) < 5 || len(t) < 3 {
			continue
		}
		switch t[0] {
		case "cgroup2":
			unified = h[4]
		case "cgroup":
			for _, o := range strings.Split(t[2], ",") {
				if _, known := v1Files[o]; known {
					v1[o] = h[4]
				}
			}
		}
	}
	return v1, unified
}

// ownPaths maps a version 1 controller, and "" for version 2, to our group.
func ownPaths() map[string]string {
	own := map[string]string{}
	b, _ := os.ReadFile("/proc/self/cgroup")
	for _, line := range strings.Split(string(b), "\n") {
		p := strings.SplitN(line, ":", 3)
		if len(p) != 3 {
			continue
		}
		for _, c := range strings.Split(p[1], ",") {
			own[c] = p[2]
		}
	}
	return own
}

// Group is one seat's control groups: one directory per parent in use.
type Group struct {
	Layout Layout `json:"layout"`
	Name   string `json:"name"`
}

func (g Group) dirs() []string {
	var out []string
	seen := map[string]bool{}
	for _, p := range []string{g.Layout.CPU, g.Layout.Memory, g.Layout.PIDs, g.Layout.Freezer, g.Layout.Kill} {
		if p != "" && !seen[p] {
			seen[p] = true
			out = append(out, filepath.Join(p, g.Name))
		}
	}
	return out
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
