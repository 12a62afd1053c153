//go:build linux

package identity

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"berth/events"
)

// Descendants lists the processes below root, nearest first, each with its
// identity; zombies are left out.
func Descendants(root int) []events.Custody {
	children := map[int][]events.Custody{}
	boot, err := BootID()
	if err != nil {
		return nil
	}
	eachProcess(func(pid int) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
			return
		}
		ppid, _ := strconv.Atoi(f[1])
		start, _ := strconv.ParseUint(f[19], 10, 64)
		children[ppid] = append(children[ppid], events.Custody{BootID: boot, PID: pid, StartTime: start})
	})
	var out []events.Custody
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, c := range children[queue[0]] {
			out = append(out, c)
			queue = append(queue, c.PID)
		}
	}
	return out
}

// WithEnvironment lists the processes whose environment has the entry, such
// as what an unisolated seat left behind when its custodian was killed.
func WithEnvironment(entry string) []events.Custody {
	var out []events.Custody
	want := []byte("\x00" + entry + "\x00")
	eachProcess(func(pid int) {
		c, err := Of(pid)
		if err != nil {
			return
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(append([]byte{0}, b...), want) {
			out = append(out, c)
		}
	})
	return out
}

func eachProcess(fn func(pid int)) {
	d, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			fn(pid)
		}
	}
}

// DiesByDefault says that the process neither catches nor ignores the signal,
// so that its default action, the end, is what the process asked for. The
// first process of a pid namespace is spared that action by the kernel.
func DiesByDefault(pid int, s unix.Signal) bool {
	return !masked(pid, s, "SigCgt", "SigIgn")
}

// Ignores says that the process has asked not to hear of the signal.
func Ignores(pid int, s unix.Signal) bool { return masked(pid, s, "SigIgn") }

// masked says whether the signal is in one of the masks of those names. A
// process that can't be read has it in every mask.
func masked(pid int, s unix.Signal, names ...string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true
	}
	bit := uint64(1) << (uint(s) - 1)
	for _, line := range strings.Split(string(b), "\n") {
		name, value, _ := strings.Cut(line, ":")
		if slices.Contains(names, name) {
			mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if err != nil || mask&bit != 0 {
				return true
			}
		}
	}
	return false
}
