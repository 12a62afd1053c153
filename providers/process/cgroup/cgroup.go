//go:build linux

package cgroup

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"berth/events"
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

// Limit is the part of what is wanted that this host can enforce.
func (l Layout) Limit(want Limits) Limits {
	if l.CPU == "" {
		want.CPUMicros = 0
	}
	if l.Memory == "" {
		want.MemoryBytes = 0
	}
	if l.PIDs == "" {
		want.PIDs = 0
	}
	return want
}

// Enforced names in words what this host can limit; none.
func (l Layout) Enforced() string {
	var out []string
	for _, one := range []struct{ name, parent string }{{"cpu", l.CPU}, {"memory", l.Memory}, {"pids", l.PIDs}} {
		if one.parent != "" {
			out = append(out, one.name)
		}
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}

// CPUMicros is the quota of a number of CPUs, zero for none.
func CPUMicros(cpus events.Quantity) int64 {
	f, err := strconv.ParseFloat(cpus.String(), 64)
	if err != nil || f <= 0 {
		return 0
	}
	return int64(math.Ceil(f * Period))
}

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
