package bench

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"berth"
	"berth/events"
	"berth/events/fault"
	"berth/internal/devca"
	"berth/internal/secretfile"
	"berth/providers"
	"berth/providers/drill"
	"berth/providers/hosted"
	"berth/providers/hosted/server"
)

// farName is the name under which the measured provider registers.
const farName = "far"

// far is a provider behind HTTPS on loopback, with mutual TLS as docs/hosted.md
// sets it up.
type far struct {
	dir    string
	driver *trial
	url    string
	cancel context.CancelFunc
	ended  chan error
}

// certificates makes the authority of a run, once.
func certificates(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, devca.CA)); err == nil {
		return nil
	}
	return devca.Make(dir, []string{"127.0.0.1"}, time.Now())
}

// serveFar serves a trial driver; certs holds the authority. Concurrent is how
// many calls reach the driver at once, zero for the default.
func serveFar(dir, certs string, d *trial, concurrent int) (*far, error) {
	j, err := berth.OpenServed(context.Background(), berth.ServedOptions{Dir: dir})
	if err != nil {
		return nil, err
	}
	s, err := server.New(server.Config{Driver: d, Log: j.Log, Writer: j.Writer, Caller: j.Caller, Concurrent: concurrent})
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.Close(), j.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &far{dir: dir, driver: d, url: "https://" + l.Addr().String(), cancel: cancel, ended: make(chan error, 1)}
	go func() { f.ended <- errors.Join(s.Serve(ctx, l, farTLS(certs)), j.Close()) }()
	return f, nil
}

func (f *far) stop() error {
	f.cancel()
	return <-f.ended
}

func farTLS(certs string) server.TLS {
	return server.TLS{CertFile: filepath.Join(certs, devca.Provider), KeyFile: filepath.Join(certs, devca.ProviderKey), ClientCAFile: filepath.Join(certs, devca.CA)}
}

// farConfig is the manager's side.
func farConfig(url, certs string) hosted.Config {
	return hosted.Config{Name: farName, URL: url, CAFile: filepath.Join(certs, devca.CA),
		CertFile: filepath.Join(certs, devca.Manager), KeyFile: filepath.Join(certs, devca.ManagerKey)}
}

// farSpec is the same as berth up --hosted reads it.
func farSpec(url, certs string) string {
	c := farConfig(url, certs)
	return c.Name + "=" + c.URL + ",ca=" + c.CAFile + ",cert=" + c.CertFile + ",key=" + c.KeyFile
}

// bareTLS is the TLS of the raw side's client: the same certificates.
func bareTLS(certs string) (*tls.Config, error) {
	c := farConfig("", certs)
	pool, err := secretfile.Pool(c.CAFile)
	if err != nil {
		return nil, err
	}
	pair, err := secretfile.KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, Certificates: []tls.Certificate{pair}}, nil
}

// trial is a driver whose own work is nothing, so that what is measured is
// the way to it. What it does not say itself the simulated provider says.
type trial struct {
	*drill.Driver
	file atomic.Pointer[source] // what an export answers

	mu      sync.Mutex
	lose    bool          // answers are lost, and nobody knows what became of them
	takes   time.Duration // of one question
	now     int           // questions under way
	most    int           // of those, at any time
	asked   map[events.OperationID]int
	sent    map[events.OperationID]bool
	settled chan struct{} // closed when wanted operations were answered
	wanted  int
}

// source is a file on the provider's disk.
type source struct {
	path string
	file events.File
}

func newTrial(dir string) (*trial, error) {
	d, err := drill.Open(drill.Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	return &trial{Driver: d, asked: map[events.OperationID]int{}, sent: map[events.OperationID]bool{}}, nil
}

// Do answers at once, or loses the answer.
func (t *trial) Do(_ context.Context, op providers.Operation) providers.Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent[op.ID] = true
	if t.lose {
		return providers.UnknownWith(fault.New(fault.Unavailable, "the answer was lost"))
	}
	if t.wanted > 0 { // what is begun after the restart has to end too, and at once
		return providers.RefusedWith(fault.New(fault.FailedPrecondition, "the provider takes nothing new"))
	}
	f := events.Facts{Ref: cmp.Or(op.Ref, string(op.Environment)), State: events.StateRunning, ObservedAt: events.MillisUTC(time.Now())}
	if s := t.file.Load(); op.Verb == events.VerbExport && s != nil {
		f.File = &s.file
	}
	return providers.DoneWith(f)
}

// Reconcile can tell nothing while answers are lost, and later that nothing
// has landed.
func (t *trial) Reconcile(ctx context.Context, op providers.Operation) providers.Finding {
	return t.ask(ctx, op)
}

// Exclude does the same.
func (t *trial) Exclude(ctx context.Context, op providers.Operation) providers.Finding {
	return t.ask(ctx, op)
}

func (t *trial) ask(ctx context.Context, op providers.Operation) providers.Finding {
	t.mu.Lock()
	t.now++
	t.most = max(t.most, t.now)
	t.asked[op.ID]++
	takes, lose := t.takes, t.lose
	t.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(takes):
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now--
	if lose {
		return providers.Finding{Verdict: providers.Open, Evidence: "none", Fault: fault.New(fault.Unavailable, "nobody can tell yet")}
	}
	if t.wanted > 0 && len(t.asked) >= t.wanted && t.settled != nil {
		close(t.settled)
		t.settled = nil
	}
	return providers.Finding{Verdict: providers.Excluded, Evidence: "it never arrived"}
}

// ReadFile reads the exported file, and hashes it on the way as the raw side does.
func (t *trial) ReadFile(_ context.Context, _ events.EnvironmentID, _, _ string, offset int64) (io.ReadCloser, error) {
	s := t.file.Load()
	if s == nil {
		return nil, fault.New(fault.NotFound, "nothing was exported")
	}
	return openHashed(s.path, offset)
}
