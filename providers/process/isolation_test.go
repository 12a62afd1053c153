//go:build linux

package process

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/events"
	"berth/providers"
	"berth/providers/process/cgroup"
	"berth/providers/process/seatdir"
	"berth/providers/seat"
)

// What a seat sees: its own processes, a read-only system, a private home and
// tmp, no privilege, and nothing of the manager (R91).
func TestAnIsolatedSeatSeesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	const hidden = "/usr/share"
	r := newRig(t, func(c *Config) { c.Hide = []string{hidden} })
	r.needIsolation()
	p := r.plan(`echo pid=$$; echo host=$(hostname); echo home=$HOME:$(pwd); id -u | sed s/^/uid=/
grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status | tr -d '\t '
touch /usr/x 2>/dev/null && echo WRITABLE; touch /x 2>/dev/null && echo WRITABLE
touch $HOME/a /tmp/b && echo private=yes; ls -A /home /root 2>/dev/null | tr '\n' ' ' | sed 's/^/homes=/'; echo
ls ` + hidden + ` ` + r.dir + ` 2>/dev/null && echo SEES; cat /etc/shadow 2>/dev/null && echo READS
mount -t tmpfs x /mnt 2>/dev/null && echo MOUNTS; kill -9 1 2>/dev/null; tty | sed s/^/tty=/
ls /sys/class/net 2>/dev/null; grep -c : /proc/net/dev | sed s/^/devices=/; env | grep -c . | sed s/^/env=/
stat -c %u:%g $HOME | sed s/^/own=/; cat $BERTH_MATERIAL/key | tr a-z A-Z | sed s/^/key=/; touch $BERTH_MATERIAL/y 2>/dev/null && echo WRITABLE; echo end`)
	none := "none"
	p.Network = &none
	id := r.provisioned(p)
	op := r.op(id, events.VerbStart)
	op.Material = providers.Material{"key": []byte("hush\n")}
	r.must(op)
	got := r.untilLog(id, "end\r\n")
	for _, want := range []string{"pid=1\r", "host=demo", "home=/home/seat:/home/seat", "uid=0", "CapEff:0000000000000000", "CapBnd:0000000000000000",
		"NoNewPrivs:1", "private=yes", "tty=/dev/console", "devices=1", "own=0:0", "key=HUSH"} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q", want)
		}
	}
	for _, bad := range []string{"WRITABLE", "SEES", "READS", "MOUNTS"} {
		if strings.Contains(got, bad) {
			t.Errorf("the seat %s", bad)
		}
	}
	if t.Failed() {
		t.Logf("%s", got)
	}
	// R54, R55: the bytes are in no file but the staged one.
	_ = filepath.WalkDir(r.d.Seat(id).Path, func(q string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || filepath.Base(filepath.Dir(q)) == seatdir.DirMaterial {
			return nil
		}
		if b, _ := os.ReadFile(q); strings.Contains(string(b), "hush") {
			t.Errorf("material is in %s", q)
		}
		return nil
	})
}

func TestLimitsHold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := r.d.probeHost(r.context()).Groups
	if g.Memory == "" || g.CPU == "" {
		t.Skipf("this host gives us no control groups: %+v", g)
	}
	p := r.plan("sleep 600")
	p.Resources = events.Resources{CPUs: events.MustQuantity("0.25"), MemoryMiB: 64}
	id, _ := r.running(p)
	file := "memory.limit_in_bytes"
	if g.UnifiedLimits {
		file = "memory.max"
	}
	b, err := os.ReadFile(filepath.Join(g.Memory, "berth-"+string(id), file))
	if err != nil || strings.TrimSpace(string(b)) != "67108864" {
		t.Fatalf("the memory limit is %q, %v", b, err)
	}
	procs, err := os.ReadFile(filepath.Join(g.Memory, "berth-"+string(id), "cgroup.procs"))
	if err != nil || len(strings.Fields(string(procs))) == 0 {
		t.Fatalf("nobody is in the group: %v", err)
	}
}

// The operator names it: no namespaces, and no groups.
func TestWithoutIsolation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.plan("echo pid=$$ home=$HOME; sleep 600")
	p.Options = map[string]string{OptionIsolation: "none", OptionLimits: "none"}
	id, _ := r.running(p)
	got := r.untilLog(id, "home=")
	if strings.Contains(got, "pid=1 ") || !strings.Contains(got, r.d.Seat(id).File(seatdir.DirHome)) {
		t.Fatalf("the seat says %q", got)
	}
	r.must(r.op(id, events.VerbPause)) // without a freezer
	if s := r.inspect(id).State; s != events.StatePaused {
		t.Fatalf("paused: %s", s)
	}
	r.must(r.op(id, events.VerbResume))
	if f := r.must(r.op(id, events.VerbStop)); f.ExitCode == nil || *f.ExitCode != 143 {
		t.Fatalf("stopped: %+v", f)
	}
}

// R7, R8: every shortfall is a failed check, before anything is made.
func TestPreflightRefuses(t *testing.T) {
	t.Parallel()
	all := cgroup.Layout{CPU: "/c", Memory: "/m", PIDs: "/p", Freezer: "/f"}
	none, other := "none", "bridge"
	quantity := events.MustQuantity
	self, err := os.Executable() // below a directory that no seat is shown
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		host  Host
		plan  func(*events.Plan)
		fails string
	}{
		"all is well":               {Host{Groups: all}, func(*events.Plan) {}, ""},
		"no user namespaces":        {Host{"making namespaces: operation not permitted", all}, func(*events.Plan) {}, "isolation"},
		"named away":                {Host{"making namespaces: operation not permitted", all}, func(p *events.Plan) { p.Options[OptionIsolation] = "none" }, ""},
		"no network without them":   {Host{Groups: all}, func(p *events.Plan) { p.Options[OptionIsolation] = "none"; p.Network = &none }, "isolation"},
		"no groups":                 {Host{}, func(*events.Plan) {}, "limits"},
		"no groups, named away":     {Host{}, func(p *events.Plan) { p.Options[OptionLimits] = "none" }, ""},
		"no memory group":           {Host{Groups: cgroup.Layout{PIDs: "/p"}}, func(p *events.Plan) { p.Resources.MemoryMiB = 1 }, "limits"},
		"no cpu group":              {Host{Groups: cgroup.Layout{PIDs: "/p"}}, func(p *events.Plan) { p.Resources.CPUs = quantity("0.25") }, "limits"},
		"the least cpu":             {Host{Groups: all}, func(p *events.Plan) { p.Resources.CPUs = quantity("0.01") }, ""},
		"less than the least cpu":   {Host{Groups: all}, func(p *events.Plan) { p.Resources.CPUs = quantity("0.001") }, "limits"},
		"a disk":                    {Host{Groups: all}, func(p *events.Plan) { p.Resources.DiskGiB = 1 }, "disk"},
		"another network":           {Host{Groups: all}, func(p *events.Plan) { p.Network = &other }, "options"},
		"an unknown option":         {Host{Groups: all}, func(p *events.Plan) { p.Options["x"] = "y" }, "options"},
		"another template":          {Host{Groups: all}, func(p *events.Plan) { p.Image.Reference = "debian" }, "image"},
		"an image that is missing":  {Host{Groups: all}, func(p *events.Plan) { p.Image = events.Image{Kind: "oci", Reference: "/no/such"} }, "image"},
		"an unknown kind of image":  {Host{Groups: all}, func(p *events.Plan) { p.Image.Kind = "vm" }, "image"},
		"no command":                {Host{Groups: all}, func(p *events.Plan) { p.Command = nil }, "command"},
		"a command that is missing": {Host{Groups: all}, func(p *events.Plan) { p.Command = []string{"no-such-command"} }, "command"},
		"a command that is hidden":  {Host{Groups: all}, func(p *events.Plan) { p.Command = []string{self} }, "command"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(cfg *Config) { cfg.Probe = func(context.Context) Host { return c.host } })
			p := events.Plan{Image: events.Image{Kind: "template", Reference: "host"}, Command: []string{"sh"}, Options: map[string]string{}}
			c.plan(&p)
			got, err := r.d.Preflight(r.context(), p)
			if err == nil {
				err = providers.CheckPreflight(got)
			}
			if err != nil {
				t.Fatal(err)
			}
			f, failed := got.Failed()
			if failed != (c.fails != "") || f.Name != c.fails {
				t.Fatalf("failed check %+v, want %q", f, c.fails)
			}
			if !failed && (!got.Capabilities.Custody || got.Capabilities.MemoryCheckpoint || got.Capabilities.Extend.StepMs != seat.ExtendStep.Milliseconds()) {
				t.Fatalf("capabilities: %+v", got.Capabilities)
			}
		})
	}
}

func TestHostFacts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f, err := r.d.HostFacts(r.context())
	if err != nil || f.Host == "" || f.KVM.Usable || f.Allocatable.MemoryMiB <= 0 || f.Allocatable.CPUs.IsZero() || len(f.Engines) != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
}

func TestListNamesWhatLives(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, _ := r.running(r.plan("sleep 600"))
	b := r.provisioned(r.plan("sleep 600"))
	r.must(r.op(b, events.VerbDestroy))
	if f := r.d.Exclude(r.context(), r.op(newID(), events.VerbReserve)); f.Verdict != providers.Excluded {
		t.Fatal(f)
	}
	got, err := r.d.List(r.context())
	if err != nil || len(got) != 1 || got[0].Environment != a || got[0].State != events.StateRunning {
		t.Fatalf("%+v, %v", got, err)
	}
}
