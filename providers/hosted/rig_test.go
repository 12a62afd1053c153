package hosted_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/internal/devca"
	"berth/providers"
	"berth/providers/drill"
	"berth/providers/hosted"
	"berth/providers/hosted/server"
	"berth/providers/process"
	"berth/providers/providertest"
)

// certs is the authority of all tests; stranger is one that nobody trusts.
var certs, stranger string

// TestMain lets the test binary be custodian and stage of the process driver.
func TestMain(m *testing.M) {
	if handled, code := process.Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "berth-hosted-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	certs, stranger = filepath.Join(dir, "certs"), filepath.Join(dir, "stranger")
	for _, d := range []string{certs, stranger} {
		if err := devca.Make(d, []string{"127.0.0.1"}, time.Now()); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

// patience bounds waits; a condition that holds ends them.
const patience = 60 * time.Second

// endpoint is a served driver that can be stopped and started again. With a
// front, which stays, it is found at the same address again.
type endpoint struct {
	t      providertest.T
	front  *line
	cfg    server.Config
	tls    server.TLS
	addr   string
	cancel context.CancelFunc
	ended  chan error
}

func serve(t providertest.T, cfg server.Config) *endpoint {
	e := newEndpoint(t, cfg)
	e.start()
	return e
}

// serveOn serves behind a front.
func serveOn(t *testing.T, cfg server.Config) *endpoint {
	e := newEndpoint(t, cfg)
	e.front = newLine(t)
	e.start()
	return e
}

func newEndpoint(t providertest.T, cfg server.Config) *endpoint {
	e := &endpoint{t: t, cfg: cfg, tls: server.TLS{
		CertFile: filepath.Join(certs, devca.Provider), KeyFile: filepath.Join(certs, devca.ProviderKey), ClientCAFile: filepath.Join(certs, devca.CA),
	}}
	if cfg.BearerFile != "" {
		e.tls.ClientCAFile = ""
	}
	return e
}

func (e *endpoint) start() {
	e.t.Helper()
	s, err := server.New(e.cfg)
	if err != nil {
		e.t.Fatalf("server: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.t.Fatalf("listen: %v", err)
	}
	if e.addr = l.Addr().String(); e.front != nil {
		to := e.addr
		e.front.to.Store(&to)
		e.addr = e.front.Addr().String()
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel, e.ended = cancel, make(chan error, 1)
	ended := e.ended
	go func() { ended <- s.Serve(ctx, l, e.tls) }()
}

func (e *endpoint) stop() {
	e.t.Helper()
	if e.cancel == nil {
		return // it is stopped, or could not be started again
	}
	e.cancel()
	e.cancel = nil
	if err := <-e.ended; err != nil {
		e.t.Errorf("serve: %v", err)
	}
}

// config is a client of the endpoint at addr.
func config(addr string) hosted.Config {
	return hosted.Config{Name: "far", URL: "https://" + addr, CAFile: filepath.Join(certs, devca.CA),
		CertFile: filepath.Join(certs, devca.Manager), KeyFile: filepath.Join(certs, devca.ManagerKey)}
}

func client(t providertest.T, cfg hosted.Config) *hosted.Driver {
	t.Helper()
	d, err := hosted.New(cfg)
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	return d
}

// whole is a client that stops what it talks to when it is closed.
type whole struct {
	*hosted.Driver
	close func() error
}

// Close implements providers.Driver.
func (w whole) Close() error {
	err := w.Driver.Close()
	if e := w.close(); err == nil {
		err = e
	}
	return err
}

func openDrill(t providertest.T, script string) *drill.Driver {
	t.Helper()
	s, err := drill.ParseScript([]byte(script))
	if err != nil {
		t.Fatalf("script: %v", err)
	}
	d, err := drill.Open(drill.Config{Dir: t.TempDir(), Script: s})
	if err != nil {
		t.Fatalf("drill: %v", err)
	}
	return d
}

const faithful = `{"rules":[]}`

// overDrill serves a fresh drill and gives a client of it.
func overDrill(t *testing.T, script string) (*endpoint, *hosted.Driver) {
	t.Helper()
	d := openDrill(t, script)
	e := serveOn(t, server.Config{Driver: d, Log: memory.New()})
	c := client(t, config(e.addr))
	t.Cleanup(func() {
		c.Close()
		e.stop()
		d.Close()
	})
	return e, c
}

var serial atomic.Uint64

func newEnvironment() events.EnvironmentID {
	return events.EnvironmentID(uuid.Must(uuid.NewV7()).String())
}

func plan() events.Plan {
	return events.Plan{Provider: "far", Image: events.Image{Kind: "template", Reference: "host"},
		Resources: events.Resources{CPUs: events.MustQuantity("0.25"), MemoryMiB: 128}, Lifetime: time.Hour,
		Command: []string{"/bin/sh", "-c", "while :; do echo tick; sleep 0.1; done"}}
}

func operation(id events.EnvironmentID, v events.Verb, ref string) providers.Operation {
	return providers.Operation{ID: events.OperationID(fmt.Sprintf("operation-%08d", serial.Add(1))), Environment: id, Alias: "demo", Verb: v,
		Plan: plan(), Ref: ref, Writer: events.Writer{Instance: "abcdefghijklmnopqrstuvwxyz", Epoch: 1}}
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// settle proves what became of an operation, as a manager has to.
func settle(t testing.TB, d providers.Driver, op providers.Operation) providers.Finding {
	t.Helper()
	var f providers.Finding
	eventually(t, "settling "+string(op.Verb), func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if f = d.Reconcile(ctx, op); f.Verdict == providers.Open {
			f = d.Exclude(ctx, op)
		}
		return f.Verdict != providers.Open
	})
	return f
}

func contextFor(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
