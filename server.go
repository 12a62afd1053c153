package berth

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"berth/commands/transfer"
	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/internal/embedded"
)

// Durability is a profile of the embedded server (decision 4).
type Durability string

// The profiles: strict syncs every commit by itself; group lets all commits
// that wait share one sync, and falls back to strict where the start-up
// self-test does not hold.
const (
	Strict Durability = "strict"
	Group  Durability = "group"
)

// startEmbedded runs the server of this data directory.
func startEmbedded(ctx context.Context, d *DataDir, o Options, p Durability) (*embedded.Server, error) {
	host, port, err := listenAddress("--listen", o.Listen)
	if err != nil {
		return nil, err
	}
	if err := durable.MakeDir(d.File(natsDir)); err != nil {
		return nil, badConfig("data directory %s can't be written: %s", d.Path, err)
	}
	s, err := embedded.Start(ctx, embedded.Options{
		StoreDir: d.File(natsDir), Name: serverName(d.Identity.Instance), SyncAlways: p == Strict,
		Listen: true, Host: host, Port: port,
		Configure: func(so *server.Options) {
			so.CustomClientAuthentication = gate{d.Identity.Space, transfer.Name(d.Identity.Space, d.Identity.Instance)}
			so.MaxConn = MaxClients
			so.MaxControlLine = 4096
		},
		Logger: serverLog{o.Logger.With("component", "nats")},
	})
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the embedded server did not start: %s", err).WithOutcome(fault.NotExecuted)
	}
	return s, nil
}

// listenAddress checks an address of an unauthenticated listener: loopback
// only. Port 0 is any free one; a taken port is refused before anything is
// started.
func listenAddress(flag, addr string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, badConfig("%s %s is not HOST:PORT", flag, addr)
	}
	port, err = strconv.Atoi(p)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, badConfig("%s %s: %s is not a port", flag, addr, p)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", 0, badConfig("%s %s is not a loopback address: in open mode everyone who can connect may do everything", flag, addr).
			WithHint("use 127.0.0.1:%d; a fleet uses an authenticated NATS cluster with --nats", port)
	}
	if port == 0 {
		return host, server.RANDOM_PORT, nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, p))
	if err != nil {
		return "", 0, portInUse(flag, addr, err)
	}
	return host, port, l.Close()
}

func portInUse(flag, addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fault.New(fault.Conflict, "%s %s is in use", flag, addr).WithHint("port 0 picks a free one").WithDetail(fault.DetailPortInUse)
	}
	return badConfig("%s %s: %s", flag, addr, err)
}

// How soon a server of a cluster that says nothing is given up for another. The
// library's own 2 minutes leave a manager without a log for 6 when a server is
// cut off or frozen: its connections stay open. An election takes up to 9 s,
// so there is no use in being much quicker.
const (
	pingEvery = 3 * time.Second
	pingsLost = 2
)

// connect opens the manager's own connection: in process, or to an external
// cluster.
func connect(ctx context.Context, srv *embedded.Server, o Options) (*nats.Conn, error) {
	opts := []nats.Option{
		nats.Name("berth manager"), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			o.Logger.Warn("nats", "error", err)
		}),
	}
	if srv != nil {
		return srv.Connect(opts...)
	}
	if o.Credentials != "" {
		if _, err := os.Stat(o.Credentials); err != nil {
			return nil, badConfig("--creds: %s", err)
		}
		opts = append(opts, nats.UserCredentials(o.Credentials))
	}
	opts = append(opts, nats.Timeout(10*time.Second), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsLost))
	nc, err := nats.Connect(o.NATS, opts...)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "no NATS server answers at %s: %s", events.Scrub(o.NATS), events.Scrub(err.Error())).WithOutcome(fault.NotExecuted)
	}
	if err := foreign(nc.ConnectedServerName()); err != nil {
		nc.Close()
		return nil, err
	}
	return nc, ctx.Err()
}

// serverName is the name of the embedded server of an instance.
func serverName(i events.InstanceID) string { return "berth-" + string(i) }

// foreign refuses a server that belongs to a manager: it lets nobody but that
// one reach its log, and answers no question about it either.
func foreign(server string) error {
	name, ok := strings.CutPrefix(server, serverName(""))
	if _, err := events.ParseInstanceID(name); !ok || err != nil {
		return nil
	}
	return badConfig("--nats is the own server of manager %s, and only that manager may use its log", name).
		WithHint("for several managers, run a NATS server with JetStream beside them and give each of them its URL with --nats; for a client of that manager, use --server")
}

// indexAgain are the words of the server when the index of a stream is older
// than the stream, as a kill leaves it.
var indexAgain = []string{"Stream state outdated", "Recovering stream state from index errored"}

// serverLog passes the server's log on; its chatter is of no use to a person.
type serverLog struct{ l *slog.Logger }

func (s serverLog) Noticef(string, ...any) {}
func (s serverLog) Debugf(string, ...any)  {}
func (s serverLog) Tracef(string, ...any)  {}

// Warnf passes a warning on. That the server makes its index of a stream again
// is no alarm after a kill: what a log may have lost is proved by its checkpoint
// and its chain, and ends the start with exit code 12.
func (s serverLog) Warnf(f string, a ...any) {
	text := events.Scrub(sprintf(f, a))
	if strings.HasPrefix(text, "Filestore [") && slices.ContainsFunc(indexAgain, func(w string) bool { return strings.Contains(text, w) }) {
		s.l.Info(text)
		return
	}
	s.l.Warn(text)
}
func (s serverLog) Errorf(f string, a ...any) { s.l.Error(events.Scrub(sprintf(f, a))) }
func (s serverLog) Fatalf(f string, a ...any) { s.l.Error(events.Scrub(sprintf(f, a))) }
