// Package berth is the manager as a library: the composition root. A Go
// program embeds one in a few lines:
//
//	m, err := berth.New(ctx, berth.Options{DataDir: "/var/lib/berth"})
//	if err != nil {
//		return err
//	}
//	return m.Run(ctx) // serves until ctx ends, then drains
//
// Environments go on when a manager ends; the next one with the same data
// directory takes them up again.
package berth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"berth/commands/attach"
	"berth/commands/plane"
	"berth/commands/service"
	"berth/events"
	"berth/events/eventlog/barrier"
	"berth/events/eventlog/stream"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/internal/embedded"
	"berth/internal/ids"
	"berth/internal/steady"
	"berth/projections"
	"berth/providers"
	"berth/sagas"
)

// Manager is one running instance.
type Manager struct {
	opts     Options
	dir      *DataDir
	clock    *steady.Clock
	ids      events.IDs
	logger   *slog.Logger
	srv      *embedded.Server // nil with an external server
	nc       *nats.Conn
	barrier  *barrier.Barrier // group profile only
	log      *stream.Log
	profile  Durability
	drivers  *providers.Registry
	bearers  map[string]events.BearerSource // by provider (R43)
	runner   *projections.Runner
	shelf    *sagas.Shelf
	engine   *sagas.Engine
	plane    *plane.Plane
	serving  atomic.Pointer[service.Service]
	sessions *attach.Server
	keeper   *keeper
	fence    *fence
	guard    *diskGuard
	listener net.Listener
	writer   events.Writer
	ready    chan struct{}
	asked    chan struct{} // closed by end: a command asked for the end
	endOnce  sync.Once
	// unwritable is closed when the embedded server takes no more writes; nil
	// with an external one.
	unwritable <-chan struct{}
	giveUp     context.CancelFunc // ends what New does
	closers    []func() error     // in the order of opening
}

// New opens everything that a manager stands on: when it returns, the log is
// there, is not shorter than what is remembered of it, and nothing was appended
// to it. Run folds it, registers the instance's epoch and serves. What can't be opened is refused with a fault whose exit code tells
// which (decision 25); Close releases what New opened if Run is never called.
func New(ctx context.Context, o Options) (_ *Manager, err error) {
	o = o.withDefaults()
	if _, err := events.ParseSpace(string(o.Space)); err != nil {
		return nil, badConfig("--space: %s", fault.From(err).Message)
	}
	if o.Durability != Strict && o.Durability != Group {
		return nil, badConfig("--durability %q is not valid: strict or group", o.Durability)
	}
	if err := checkLabels(o.Labels); err != nil {
		return nil, err
	}
	if _, err := hostedOf(o.Hosted); err != nil { // before anything is opened
		return nil, err
	}
	m := &Manager{opts: o, clock: steady.New(), ids: ids.New(), logger: o.Logger, ready: make(chan struct{}), asked: make(chan struct{})}
	defer func() {
		if err != nil {
			m.Close()
		}
	}()
	ctx, giveUp := context.WithCancel(ctx)
	m.giveUp = giveUp
	m.onClose(func() error { giveUp(); return nil })
	for _, step := range []func(context.Context) error{
		m.openDir, m.openListener, m.openServer, m.openLog, m.openDrivers, m.openViews,
	} {
		if err := step(ctx); err != nil {
			return nil, m.orUnwritable(err)
		}
	}
	return m, nil
}

func (m *Manager) onClose(f func() error) { m.closers = append(m.closers, f) }

// Close releases everything, newest first. It is called by Run; calling it
// again does nothing.
func (m *Manager) Close() error {
	var err error
	for i := len(m.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, m.closers[i]())
	}
	m.closers = nil
	return err
}

func (m *Manager) openDir(context.Context) (err error) {
	if m.dir, err = OpenDataDir(m.opts.DataDir, m.opts.Space); err != nil {
		return err
	}
	m.onClose(m.dir.Close)
	m.guard = newDiskGuard(m.dir.Path, m.opts.MinFree)
	return nil
}

func (m *Manager) openListener(context.Context) (err error) {
	if m.listener, err = listenHTTP(m.opts.HTTP); err != nil {
		return err
	}
	m.onClose(func() error { m.listener.Close(); return nil })
	return nil
}

func (m *Manager) openServer(ctx context.Context) (err error) {
	m.profile = m.opts.Durability
	if m.opts.NATS == "" {
		if err := m.startServer(ctx); err != nil {
			return err
		}
		m.watchWrites(ctx)
	}
	if m.nc == nil {
		if m.nc, err = connect(ctx, m.srv, m.opts); err != nil {
			return err
		}
	}
	m.onClose(func() error { m.nc.Close(); return nil })
	return nil
}

// startServer runs the embedded server in the profile that was asked for. The
// group profile is tried out first; where its self-test does not hold, the
// server is started again in the strict one.
func (m *Manager) startServer(ctx context.Context) (err error) {
	if m.srv, err = startEmbedded(ctx, m.dir, m.opts, m.profile); err != nil {
		return err
	}
	m.onClose(func() error {
		if m.srv != nil {
			m.srv.Stop()
		}
		return nil
	})
	if m.profile == Group {
		if m.nc, err = m.srv.Connect(nats.MaxReconnects(-1)); err != nil {
			return err
		}
		why := barrier.SelfTest(ctx, m.nc, func(s string) string { return m.srv.StreamDir("$G", s) })
		if why != nil {
			m.logger.Warn("the group profile can't be used here; going on in strict", "reason", why)
			m.nc.Close()
			m.srv.Stop()
			m.nc, m.profile = nil, Strict
			if m.srv, err = startEmbedded(ctx, m.dir, m.opts, Strict); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Manager) openDrivers(context.Context) error {
	bundles, closers, err := openDrivers(m.dir, m.opts, m.clock)
	m.closers = append(m.closers, closers...)
	if err != nil {
		return err
	}
	if m.drivers, err = providers.NewRegistry(bundles...); err != nil {
		return err
	}
	m.bearers, err = bearers(m.opts.BearerSources, m.drivers)
	return err
}

// Endpoint tells clients where the manager is.
func (m *Manager) Endpoint() Endpoint {
	url := m.opts.NATS
	if m.srv != nil {
		url = m.srv.ClientURL()
	}
	return Endpoint{
		NATS: url, HTTP: "http://" + m.listener.Addr().String(), Instance: m.dir.Identity.Instance, PID: os.Getpid(),
		Space: m.dir.Identity.Space, Caller: m.dir.Identity.Caller,
	}
}

// Profile is the durability that is in force, "external" with a server of
// somebody else.
func (m *Manager) Profile() string {
	if m.srv == nil {
		return "external"
	}
	return string(m.profile)
}

// Ready is closed when the manager answers commands.
func (m *Manager) Ready() <-chan struct{} { return m.ready }

// end asks Run to end in order, as the end of its context does.
func (m *Manager) end() { m.endOnce.Do(func() { close(m.asked) }) }

func (m *Manager) isReady() bool {
	select {
	case <-m.ready:
		return true
	default:
		return false
	}
}

func (m *Manager) writeEndpoint() error {
	raw, err := jsonLine(m.Endpoint())
	if err != nil {
		return err
	}
	return durable.WriteFile(m.dir.File(endpointFile), raw, 0o600)
}

// meta is that of a commit that the manager makes of its own accord.
func (m *Manager) meta() events.Meta {
	return events.Meta{
		ID: events.EventID(m.ids.UUID()), Time: events.MillisUTC(m.clock.Now()), Caller: m.dir.Identity.Caller, Writer: m.writer,
	}
}

func sprintf(format string, args []any) string { return fmt.Sprintf(format, args...) }

// drainFor bounds each part of a clean stop.
const drainFor = 10 * time.Second
