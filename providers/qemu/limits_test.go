//go:build linux

package qemu

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"berth/events"
	"berth/providers/process/cgroup"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/machine"
	"berth/providers/seat"
)

// groups are the control groups of an environment that are there.
func (r *rig) groups(id events.EnvironmentID) (out []string) {
	l := cgroup.Detect()
	seen := map[string]bool{}
	for _, p := range []string{l.CPU, l.Memory, l.PIDs, l.Freezer, l.Kill} {
		if p == "" {
			continue
		}
		found, _ := filepath.Glob(filepath.Join(p, seatdir.Dir{ID: id}.GroupName()+"*"))
		for _, f := range found {
			if !seen[f] {
				seen[f], out = true, append(out, f)
			}
		}
	}
	return out
}

// A machine is in a control group of its own, whose limits leave room for a
// guest that fills its memory; nothing of it is left when it has ended.
func TestMachinesAreLimited(t *testing.T) {
	needMachines(t)
	r := newRig(t)
	l := r.d.groups.Layout()
	if l.Memory == "" || l.CPU == "" || l.PIDs == "" {
		t.Skipf("NO MICROVM IS LIMITED BY THIS TEST: this host gives us no control groups: %+v", l)
	}
	facts, err := r.d.HostFacts(r.context())
	if err != nil || len(facts.Engines) != 1 || facts.Engines[0].Limits != "cpu, memory, pids" {
		t.Errorf("host facts: %+v, %v", facts, err)
	}
	// The guest's memory is filled with what it writes.
	id, _ := r.running(plan(`echo begins; mount -o remount,size=100% / 2>/dev/null; dd if=/dev/urandom of=/fill bs=1M count=150 2>/dev/null; echo "filled $(wc -c </fill) bytes"; read x`))
	r.untilLog(id, "filled ")
	who, err := seat.ReadIdent(r.d.Seat(id))
	if err != nil {
		t.Fatal(err)
	}
	if who.Group.Name == "" {
		t.Fatal("its group is not known of it")
	}
	h := machine.Hardware{MemoryMiB: DefaultMemory, CPUs: 1}
	limit, peak, failed := "memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.failcnt"
	if l.UnifiedLimits {
		limit, peak, failed = "memory.max", "memory.peak", ""
	}
	read := func(parent, file string) string {
		b, _ := os.ReadFile(filepath.Join(parent, who.Group.Name, file))
		return strings.TrimSpace(string(b))
	}
	want := (h.MemoryMiB + machine.OverheadMiB(h.MemoryMiB)) << 20
	if got := read(l.Memory, limit); got != strconv.FormatInt(want, 10) {
		t.Errorf("its memory is limited to %q, want %d", got, want)
	}
	if got := read(l.PIDs, "pids.max"); got != "128" {
		t.Errorf("its threads are limited to %q", got)
	}
	if !l.UnifiedLimits {
		if got := read(l.CPU, "cpu.cfs_quota_us"); got != strconv.Itoa(cgroup.Period) {
			t.Errorf("its processors are limited to %q", got)
		}
	}
	if procs := strings.Fields(read(l.Memory, "cgroup.procs")); len(procs) != 1 || procs[0] != strconv.Itoa(who.Seat.PID) {
		t.Errorf("in its group are %v, want QEMU, %d", procs, who.Seat.PID)
	}
	t.Logf("%s; at the most %s of %d bytes were used, refused %s times", r.logs(id), read(l.Memory, peak), want, read(l.Memory, failed))
	r.must(r.op(id, events.VerbStop))
	if left := r.groups(id); len(left) > 0 {
		t.Errorf("groups of a machine that was stopped: %v", left)
	}
}

// A group of a machine whose supervisor was killed goes when its end is seen,
// and one of a start that was cut off with the environment.
func TestGroupsOfTheLostAreRemoved(t *testing.T) {
	needMachines(t)
	r := newRig(t)
	if r.d.groups.Layout().Memory == "" {
		t.Skip("NO MICROVM IS LIMITED BY THIS TEST: this host gives us no control groups")
	}
	id, _ := r.running(plan("read x"))
	if len(r.groups(id)) == 0 {
		t.Fatal("it has no group")
	}
	r.isLost(id)
	if left := r.groups(id); len(left) > 0 {
		t.Errorf("groups of a machine that was lost: %v", left)
	}
	dir := r.d.Seat(id)
	cut := cgroup.Group{Layout: r.d.groups.Layout(), Name: machine.GroupName(dir, "operation-that-was-cut-off")}
	if err := cut.Create(cgroup.Limits{PIDs: 1}); err != nil {
		t.Fatal(err)
	}
	r.must(r.op(id, events.VerbDestroy))
	if left := r.groups(id); len(left) > 0 {
		t.Errorf("groups of an environment that was destroyed: %v", left)
	}
}

// Without control groups a machine runs without limits, and it is said so.
func TestWithoutControlGroups(t *testing.T) {
	needMachines(t)
	r := newRig(t)
	r.d.groups.Detect = func() cgroup.Layout { return cgroup.Layout{} }
	p, err := r.d.Preflight(r.context(), plan("true"))
	if err != nil {
		t.Fatal(err)
	}
	said := false
	for _, c := range p.Checks {
		said = said || c.Name == "limits" && c.OK && strings.Contains(c.Detail, "none")
	}
	if facts, err := r.d.HostFacts(r.context()); err != nil || facts.Engines[0].Limits != "none" || !said {
		t.Errorf("host facts %+v, %v; checks %+v", facts, err, p.Checks)
	}
	id, _ := r.running(plan("read x"))
	who, err := seat.ReadIdent(r.d.Seat(id))
	if err != nil || who.Group.Name != "" || len(r.groups(id)) > 0 {
		t.Errorf("it has a group: %+v, %v", who, err)
	}
	if h, err := identity.Open(who.Seat); err != nil {
		t.Errorf("it does not run: %v", err)
	} else {
		h.Close()
	}
}
