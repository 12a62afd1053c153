package hosted_test

import (
	"bytes"
	"path/filepath"
	"runtime"
	"testing"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/providers"
	"berth/providers/hosted/server"
	"berth/providers/process"
)

// TestRestartAdoptsProcesses (scenario 10): a provider that is started again
// takes up the processes that live, the very ones, shows their terminals, and
// can end them.
func TestRestartAdoptsProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the process provider is for Linux")
	}
	if testing.Short() {
		t.Skip("starts real processes; -short leaves it out")
	}
	t.Parallel()
	seats := filepath.Join(t.TempDir(), "seats")
	openProcess := func() *process.Driver {
		p, err := process.New(process.Config{Dir: seats})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := openProcess()
	e := serveOn(t, server.Config{Driver: p, Log: memory.New()})
	d := client(t, config(e.addr))
	defer d.Close()
	plan := runnable(t, p)
	do := func(id events.EnvironmentID, ref string, v events.Verb) events.Facts {
		t.Helper()
		op := operation(id, v, ref)
		op.Plan = plan
		out := d.Do(within(t), op)
		if out.Kind != providers.Done {
			t.Fatalf("%s: %s %v", v, out.Kind, out.Fault)
		}
		return out.Facts
	}
	id := newEnvironment()
	ref := do(id, "", events.VerbReserve).Ref
	do(id, ref, events.VerbProvision)
	before := do(id, ref, events.VerbStart)
	e.stop()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = openProcess()
	defer func() { p.Close() }()
	e.cfg.Driver = p
	e.start()
	defer func() { e.stop() }()
	d.Close() // what was connected to the stopped one
	after, err := d.Inspect(within(t), id, ref)
	if err != nil || after.State != events.StateRunning || after.Custody == nil || before.Custody == nil || *after.Custody != *before.Custody {
		t.Errorf("after the restart: %+v %v, before: %+v", after, err, before)
	}
	v, err := d.View(within(t), id, ref)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for seen := false; !seen; {
		part, err := v.Next()
		if err != nil {
			t.Fatalf("the screen of the one that was taken up: %v", err)
		}
		seen = bytes.Contains(part.Data, []byte("tick"))
	}
	if n, err := d.Input(within(t), id, ref, []byte("x")); n != 1 || err != nil {
		t.Errorf("typed %d: %v", n, err)
	}
	if f := do(id, ref, events.VerbStop); f.State != events.StateStopped {
		t.Errorf("stop: %+v", f)
	}
	do(id, ref, events.VerbDestroy)
}
