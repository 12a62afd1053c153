// Package embedded runs a NATS server inside this process: the server of
// `berth up`, of tests and of benchmarks. It is the one package that imports
// nats-server; only the composition root, the program, benchmarks and tests
// may import it.
package embedded

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Defaults of Options.
const (
	DefaultMaxPayload  = 1 << 20
	DefaultMaxStore    = 1 << 40 // the stream's own limit is what counts
	DefaultMaxMemory   = 256 << 20
	DefaultStartWait   = 60 * time.Second // a million events after a kill take seconds
	GroupSyncInterval  = time.Second      // of what the barrier does not sync
	maxBatchesInflight = 1000
)

// Options says how to run the server. Only StoreDir is required.
type Options struct {
	// StoreDir holds JetStream's files, in its subdirectory jetstream.
	StoreDir string
	// Name is the server's name; it must be stable for one StoreDir.
	Name string
	// SyncAlways syncs every message before its acknowledgement: the strict
	// profile. Otherwise files are synced every SyncInterval.
	SyncAlways   bool
	SyncInterval time.Duration
	// Listen opens Host:Port to clients; without it only this process can
	// connect. Port -1 is any free port.
	Listen bool
	Host   string
	Port   int
	// MaxPayload is the largest message, in bytes.
	MaxPayload int32
	// StartWait bounds how long recovery may take.
	StartWait time.Duration
	// Configure may change the server's options last, for accounts and TLS.
	Configure func(*server.Options)
	// Logger takes the server's notices, warnings and errors; nil throws them
	// away. Its Fatalf is never called.
	Logger server.Logger
}

// Server is a running server.
type Server struct {
	*server.Server
	storeDir   string
	unwritable <-chan struct{}
}

// Unwritable is closed when a stream met a write error, such as a full disk:
// the server refuses all later writes to it, also when there is space again,
// until it is started anew.
func (s *Server) Unwritable() <-chan struct{} { return s.unwritable }

// Start starts a server and waits until it serves, ctx ends or StartWait has
// passed. The caller stops it with Stop.
func Start(ctx context.Context, o Options) (*Server, error) {
	so := &server.Options{
		ServerName: orDefault(o.Name, "berth"), JetStream: true, StoreDir: o.StoreDir,
		SyncAlways: o.SyncAlways, SyncInterval: orDefault(o.SyncInterval, GroupSyncInterval),
		DontListen: !o.Listen, Host: orDefault(o.Host, "127.0.0.1"), Port: orDefault(o.Port, server.RANDOM_PORT),
		MaxPayload: orDefault(o.MaxPayload, DefaultMaxPayload), NoSigs: true, NoLog: true,
		JetStreamMaxStore: DefaultMaxStore, JetStreamMaxMemory: DefaultMaxMemory,
		JetStreamLimits: server.JSLimitOpts{MaxBatchInflightPerStream: maxBatchesInflight},
	}
	if o.Configure != nil {
		o.Configure(so)
	}
	s, err := server.NewServer(so)
	if err != nil {
		return nil, err
	}
	log := newRecorder(o.Logger)
	s.SetLoggerV2(log, false, false, false)
	started := make(chan bool, 1)
	go func() {
		s.Start()
		started <- s.ReadyForConnections(orDefault(o.StartWait, DefaultStartWait))
	}()
	select {
	case <-ctx.Done():
		s.Shutdown()
		return nil, ctx.Err()
	case <-log.fatal:
		s.Shutdown()
		return nil, errors.New("the embedded server did not start: " + log.text)
	case ok := <-started:
		if !ok || !s.JetStreamEnabled() {
			s.Shutdown()
			return nil, errors.New("the embedded server did not become ready; see its log")
		}
	}
	return &Server{Server: s, storeDir: o.StoreDir, unwritable: log.unwritable}, nil
}

// Connect opens a connection that never leaves the process.
func (s *Server) Connect(opts ...nats.Option) (*nats.Conn, error) {
	all := append([]nats.Option{nats.InProcessServer(s.Server), nats.MaxReconnects(-1), nats.Timeout(10 * time.Second)}, opts...)
	return nats.Connect("", all...)
}

// Stop shuts the server down and waits until its files are closed.
func (s *Server) Stop() {
	s.Shutdown()
	s.WaitForShutdown()
}

// StreamDir is where the blocks of a stream of an account are kept; the
// account of open mode is $G.
func (s *Server) StreamDir(account, stream string) string {
	return filepath.Join(s.storeDir, "jetstream", account, "streams", stream, "msgs")
}

// TB is what a test gives.
type TB interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
	TempDir() string
}

// ForTest starts a server in a temporary directory with one connection, both
// closed at the end of the test. change, if not nil, edits the options.
func ForTest(t TB, change func(*Options)) (*Server, *nats.Conn) {
	t.Helper()
	o := Options{StoreDir: t.TempDir()}
	if change != nil {
		change(&o)
	}
	s, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return s, nc
}

func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}
