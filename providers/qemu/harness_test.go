//go:build linux

package qemu

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
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// TestMain lets the test binary be supervisor and agent, as the program is.
func TestMain(m *testing.M) {
	if handled, code := Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	if len(os.Args) == 2 && os.Args[1] == listenRole {
		listen()
	}
	if len(os.Args) == 2 && os.Args[1] == doorRole {
		atDoor()
		return
	}
	var err error
	if boots, err = os.MkdirTemp("", "berth-boots-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(boots)
	os.Exit(code)
}

// boots holds what the machines of all tests boot, packed once.
var boots string

// patience is for machines that boot under emulation on a busy host.
const patience = 280 * time.Second

// rig is a driver over a temporary directory, and what it made.
type rig struct {
	testing.TB
	d   *Driver
	ids []events.EnvironmentID
}

func newRig(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	// Deeper than a socket's path may be long.
	cfg := Config{Dir: filepath.Join(t.TempDir(), strings.Repeat("deep-", 20), "machines")}
	for _, c := range change {
		c(&cfg)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(boots, filepath.Join(cfg.Dir, bootDir)); err != nil {
		t.Fatal(err)
	}
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{TB: t, d: d}
	t.Cleanup(r.cleanup)
	return r
}

// cleanup destroys what is left and proves that nothing stays behind.
func (r *rig) cleanup() {
	for _, id := range r.ids {
		if said, _ := os.ReadFile(r.d.Seat(id).File(seatdir.FileStderr)); len(said) > 0 {
			r.Errorf("a supervisor complained: %s", said) // a panic, a data race
		}
		if out := r.do(r.op(id, events.VerbDestroy)); out.Kind != providers.Done {
			r.Errorf("destroy of %s: %s %v", id, out.Kind, out.Fault)
		}
		if left := identity.WithEnvironment(events.EnvEnvironment + "=" + string(id)); len(left) > 0 {
			r.Errorf("processes were left behind: %+v", left)
		}
		if left := r.groups(id); len(left) > 0 {
			r.Errorf("control groups were left behind: %v", left)
		}
	}
	if err := r.d.Close(); err != nil {
		r.Errorf("closing: %v", err)
	}
}

// needMachines skips loudly where machines can't run, or only too slowly.
func needMachines(t testing.TB) {
	t.Helper()
	if err := Available(); err != nil {
		t.Skipf("NO MICROVM IS BOOTED BY THIS TEST: %v", err)
	}
	if raceEnabled {
		t.Skip("NO MICROVM IS BOOTED BY THIS TEST: the race detector's runtime does not fit into a guest")
	}
	if testing.Short() {
		t.Skip("NO MICROVM IS BOOTED BY THIS TEST: -short")
	}
}

func (r *rig) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.Cleanup(cancel)
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
		dir := r.d.Seat(op.Environment)
		log, _ := os.ReadFile(dir.File(seatdir.FileStderr))
		said, _ := os.ReadFile(dir.File("qemu.log"))
		r.Fatalf("%s: %s, %v; supervisor: %s; QEMU: %s", op.Verb, out.Kind, out.Fault, log, said)
	}
	if err := providers.CheckFacts(op, out.Facts); err != nil {
		r.Fatalf("%s: %v", op.Verb, err)
	}
	return out.Facts
}

func plan(script string) events.Plan {
	return events.Plan{Provider: Name, Image: events.Image{Kind: "template", Reference: Template},
		Command: []string{"sh", "-c", script}, Options: map[string]string{}}
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
	op := r.op(id, events.VerbStart)
	if out := r.do(op); out.Kind == providers.Refused && strings.Contains(out.Fault.Message, "not there in time") {
		r.Skipf("NO MICROVM IS SHOWN BY THIS TEST: this host is too busy to boot one in minutes: %v", out.Fault)
	}
	f := r.must(op) // the same id: the same answer
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
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
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
	r.until("output "+want, func() bool { got = r.logs(id); return strings.Contains(got, want) })
	return got
}
