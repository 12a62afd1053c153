package hosted_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/internal/devca"
	"berth/providers"
	"berth/providers/hosted"
	"berth/providers/hosted/server"
	"berth/providers/process"
	"berth/providers/providertest"
)

const noHostPath = "a path of the other machine is none of this one"

// TestDrillOverHTTPS holds client, protocol and server to the whole contract
// (R1-R92), with mutual TLS, over the simulated provider.
func TestDrillOverHTTPS(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Options{
		Open: func(t providertest.T) providers.Driver {
			d := openDrill(t, faithful)
			e := serve(t, server.Config{Driver: d, Log: memory.New()})
			return whole{client(t, config(e.addr)), func() error { e.stop(); return d.Close() }}
		},
		Plan: plan(), Patience: patience, Expiry: 100 * time.Millisecond, NoHostPath: noHostPath,
	})
}

// TestProcessOverHTTPS does the same over real processes, with a bearer.
func TestProcessOverHTTPS(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the process provider is for Linux")
	}
	if testing.Short() {
		t.Skip("starts real processes; -short leaves it out")
	}
	t.Parallel()
	probe, err := process.New(process.Config{Dir: filepath.Join(t.TempDir(), "seats")})
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	p := runnable(t, probe)
	providertest.Run(t, providertest.Options{
		Open: func(t providertest.T) providers.Driver {
			d, err := process.New(process.Config{Dir: filepath.Join(t.TempDir(), "seats")})
			if err != nil {
				t.Fatalf("process: %v", err)
			}
			bearer := filepath.Join(certs, devca.Bearer)
			e := serve(t, server.Config{Driver: d, Log: memory.New(), BearerFile: bearer})
			c := client(t, hosted.Config{Name: "far", URL: "https://" + e.addr, CAFile: filepath.Join(certs, devca.CA), BearerFile: bearer})
			return whole{c, func() error { e.stop(); return errors.Join(d.Close()) }}
		},
		Plan: p, Patience: patience, Expiry: time.Second, NoHostPath: noHostPath,
	})
}

// runnable is a plan that this machine can run: without isolation or limits,
// loudly, where it has none.
func runnable(t *testing.T, d *process.Driver) events.Plan {
	t.Helper()
	p := plan()
	p.Options = map[string]string{}
	for _, option := range []string{"isolation", "limits"} {
		pre, err := d.Preflight(within(t), p)
		if err != nil {
			t.Fatal(err)
		}
		if c, failed := pre.Failed(); failed {
			t.Logf("WITHOUT %s: %s: %s", option, c.Name, c.Detail)
			p.Options[option] = "none"
		}
	}
	return p
}
