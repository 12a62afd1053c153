//go:build linux

package qemu

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"berth/events"
	"berth/providers"
	"berth/providers/qemu/machine"
	"berth/providers/seat"
)

var upRE = regexp.MustCompile(`up (\S+) ([0-9a-f-]{36}) ([0-9a-f]{16}) ([0-9]+)\.`)

// The first start of a size boots and leaves a golden state; later ones load
// it, each with a name, a boot id, randomness and the time of its own (R54:
// nothing of a seat is in it). A damaged one never runs: that start boots.
func TestGoldenStarts(t *testing.T) {
	needMachines(t)
	r := newRig(t)
	p := plan(`echo "up $(uname -n) $(cat /proc/sys/kernel/random/boot_id) $(od -An -tx1 -N8 /dev/urandom | tr -d ' ') $(date +%s)."; sleep 600`)
	p.Resources.MemoryMiB = 224 // as another test's, which may have left a state
	seen := map[string]bool{}
	start := func(name string, p events.Plan) (loaded bool) {
		id, _ := r.running(p, func(op *providers.Operation) { op.Alias = events.Alias(name) })
		r.until("the first line", func() bool { return upRE.MatchString(r.logs(id)) })
		m := upRE.FindStringSubmatch(r.logs(id))
		if m[1] != name || seen[m[2]] || seen[m[3]] {
			t.Errorf("%s is not itself: %v, %v", name, m, seen)
		}
		seen[m[2]], seen[m[3]] = true, true
		if off := time.Now().Unix() - number(m[4]); off < -5 || off > int64(patience.Seconds()) {
			t.Errorf("%s has a clock that is off by %d s", name, off)
		}
		who, err := seat.ReadIdent(r.d.Seat(id))
		if err != nil {
			t.Fatal(err)
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", who.Seat.PID))
		if err != nil {
			t.Fatal(err)
		}
		r.must(r.op(id, events.VerbDestroy))
		return bytes.Contains(line, []byte("\x00-incoming\x00"))
	}
	if len(r.golden(224)) == 0 && start("first", p) {
		t.Error("the first start of a size has nothing to load")
	}
	states := r.golden(224)
	if len(states) != 1 {
		t.Fatalf("no golden state was kept: %v", states)
	}
	if !start("second", p) {
		t.Error("the second start booted, though there is a golden state")
	}
	if os.Getenv("BERTH_PROVE") == "" {
		return // another boot is dear
	}
	b, err := os.ReadFile(states[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(states[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if start("damaged", p) {
		t.Error("a damaged golden state ran")
	}
}

func number(s string) (n int64) {
	_, _ = fmt.Sscan(s, &n)
	return n
}

// golden are the states that were kept of a machine with so much memory.
func (r *rig) golden(mib int64) []string {
	r.Helper()
	f, err := r.d.packed(r.context())
	if err != nil {
		r.Fatal(err)
	}
	c := choice{network: "none", memory: mib, cpus: 1}
	found, _ := filepath.Glob(machine.GoldenFile(boots, hardware(f, c), machine.StateExt))
	return found
}
