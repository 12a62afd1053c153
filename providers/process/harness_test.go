//go:build linux

package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/events"
	"berth/providers"
	"berth/providers/process/cgroup"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// TestMain lets the test binary be custodian and stage, as the program is.
func TestMain(m *testing.M) {
	if handled, code := Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	if len(os.Args) == 2 && os.Args[1] == standInRole {
		standIn()
	}
	os.Exit(m.Run())
}

// patience is for real processes on a busy machine.
const patience = 60 * time.Second

// rig is a driver over a temporary seats directory, and what it made.
type rig struct {
	*testing.T
	d   *Driver
	dir string
	ids []events.EnvironmentID
}

func newRig(t *testing.T, change ...func(*Config)) *rig {
	t.Helper()
	// Closed to others, as a manager's data directory is, and deeper than a
	// socket's path may be long.
	data := filepath.Join(t.TempDir(), strings.Repeat("deep-", 20))
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: filepath.Join(data, "seats")}
	for _, c := range change {
		c(&cfg)
	}
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, d: d, dir: cfg.Dir}
	t.Cleanup(r.cleanup)
	return r
}

// cleanup destroys what is left and proves that nothing stays behind.
func (r *rig) cleanup() {
	for _, id := range r.ids {
		if said, _ := os.ReadFile(r.d.Seat(id).File(seatdir.FileStderr)); len(said) > 0 {
			r.Errorf("a custodian complained: %s", said) // a panic, a data race
		}
		r.do(r.op(id, events.VerbDestroy))
	}
	if err := r.d.Close(); err != nil {
		r.Errorf("closing: %v", err)
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	if strings.Contains(string(mounts), r.dir) {
		r.Errorf("a mount was left behind below %s", r.dir)
	}
	l := cgroup.Detect()
	for _, id := range r.ids {
		if left := identity.WithEnvironment(events.EnvEnvironment + "=" + string(id)); len(left) > 0 {
			r.Errorf("processes were left behind: %+v", left)
		}
		for _, p := range []string{l.CPU, l.Memory, l.PIDs, l.Freezer, l.Kill} {
			if _, err := os.Stat(filepath.Join(p, "berth-"+string(id))); p != "" && err == nil {
				r.Errorf("a control group was left behind below %s", p)
			}
		}
	}
}

func (r *rig) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.T.Cleanup(cancel)
	return ctx
}

var serial atomic.Uint64

func newID() events.EnvironmentID { return events.EnvironmentID(uuid.Must(uuid.NewV7()).String()) }

func (r *rig) op(id events.EnvironmentID, v events.Verb) providers.Operation {
	return providers.Operation{
		ID: events.OperationID(fmt.Sprintf("operation-%08d", serial.Add(1))), Environment: id, Alias: "demo", Verb: v,
		Writer: events.Writer{Instance: "abcdefghijklmnopqrstuvwxyz", Epoch: 1},
	}
}

func (r *rig) do(op providers.Operation) providers.Outcome { return r.d.Do(r.context(), op) }

func (r *rig) must(op providers.Operation) events.Facts {
	r.Helper()
	out := r.do(op)
	if out.Kind != providers.Done {
		log, _ := os.ReadFile(r.d.Seat(op.Environment).File(seatdir.FileStderr))
		r.Fatalf("%s: %s, %v; custodian: %s", op.Verb, out.Kind, out.Fault, log)
	}
	if err := providers.CheckFacts(op, out.Facts); err != nil {
		r.Fatalf("%s: %v", op.Verb, err)
	}
	return out.Facts
}

// plan runs a shell command; unisolated or unlimited where the host can't.
func (r *rig) plan(script string) events.Plan {
	p := events.Plan{Provider: Name, Image: events.Image{Kind: "template", Reference: "host"},
		Command: []string{"/bin/sh", "-c", script}, Options: map[string]string{}}
	h := r.d.probeHost(r.context())
	if h.Namespaces != "" {
		r.Logf("WITHOUT ISOLATION: %s", h.Namespaces)
		p.Options[OptionIsolation] = "none"
	}
	if h.Groups.PIDs == "" {
		r.Log("WITHOUT LIMITS: no control groups here")
		p.Options[OptionLimits] = "none"
	}
	return p
}

// needIsolation skips loudly where seats can't be isolated.
func (r *rig) needIsolation() {
	if h := r.d.probeHost(r.context()); h.Namespaces != "" {
		r.Skipf("this host refuses namespaces: %s", h.Namespaces)
	}
}

func (r *rig) provisioned(p events.Plan, change ...func(*providers.Operation)) events.EnvironmentID {
	r.Helper()
	id := newID()
	r.ids = append(r.ids, id)
	for _, v := range []events.Verb{events.VerbReserve, events.VerbProvision} {
		op := r.op(id, v)
		op.Plan = p
		for _, c := range change {
			c(&op)
		}
		r.must(op)
	}
	return id
}

func (r *rig) running(p events.Plan, change ...func(*providers.Operation)) (events.EnvironmentID, events.Facts) {
	r.Helper()
	id := r.provisioned(p, change...)
	f := r.must(r.op(id, events.VerbStart))
	if f.State != events.StateRunning || f.Custody == nil {
		r.Fatalf("after the start: %+v", f)
	}
	return id, f
}

func (r *rig) inspect(id events.EnvironmentID) events.Facts {
	r.Helper()
	f, err := r.d.Inspect(r.context(), id, "")
	if err != nil {
		r.Fatalf("inspect: %v", err)
	}
	return f
}

// until waits for a condition, never for a time.
func (r *rig) until(what string, ok func() bool) {
	r.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("waited in vain: %s", what)
		}
	}
}

func (r *rig) logs(id events.EnvironmentID) string {
	r.Helper()
	var b strings.Builder
	if _, err := r.d.Logs(r.context(), id, "", 0, false, &b); err != nil {
		r.Fatalf("logs: %v", err)
	}
	return b.String()
}

func (r *rig) untilLog(id events.EnvironmentID, want string) string {
	r.Helper()
	var got string
	r.until("output "+want+" in: "+got, func() bool { got = r.logs(id); return strings.Contains(got, want) })
	return got
}

func (r *rig) untilState(id events.EnvironmentID, want events.ProviderState) events.Facts {
	r.Helper()
	var f events.Facts
	r.until("state "+string(want), func() bool { f = r.inspect(id); return f.State == want })
	return f
}
