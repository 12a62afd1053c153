package berth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits of the HTTP listener.
const (
	httpHeaderTimeout = 5 * time.Second
	httpHeaderBytes   = 16 << 10
	httpIdleTimeout   = time.Minute
	maxProfileSeconds = 60
	// A request and its answer end by then, the longest profile included.
	httpWholeTimeout = 2 * maxProfileSeconds * time.Second
	// maxHTTPConnections is how many connections are open at once; more wait
	// for their turn. What a scraper or a page leaves open must not take the
	// file descriptors that the log needs.
	maxHTTPConnections = 128
)

// check is one named line of readiness: nil is well.
type check struct {
	name string
	run  func() error
}

// health answers /livez, /readyz and /metrics on loopback.
type health struct {
	checks   []check
	registry *prometheus.Registry
}

// listenHTTP opens the listener of the daemon's endpoints.
func listenHTTP(addr string) (net.Listener, error) {
	host, port, err := listenAddress("--http", addr)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(max(port, 0))))
	if err != nil {
		return nil, portInUse("--http", addr, err)
	}
	return &boundedListener{Listener: l, slots: make(chan struct{}, maxHTTPConnections), closed: make(chan struct{})}, nil
}

// boundedListener accepts no connection while as many are open as slots has
// room for.
type boundedListener struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &boundedConn{Conn: c, release: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// boundedConn gives its slot back when it is closed.
type boundedConn struct {
	net.Conn
	release func()
}

func (c *boundedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// serve answers on l until ctx ends.
func (h *health) serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{
		Handler: h.handler(), ReadHeaderTimeout: httpHeaderTimeout, MaxHeaderBytes: httpHeaderBytes,
		ReadTimeout: httpWholeTimeout, WriteTimeout: httpWholeTimeout, IdleTimeout: httpIdleTimeout,
	}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	alive := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }
	mux.HandleFunc("GET /livez", alive)
	mux.HandleFunc("GET /healthz", h.ready)
	mux.HandleFunc("GET /readyz", h.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", bounded(pprof.Index))
	mux.HandleFunc("GET /debug/pprof/profile", bounded(pprof.Profile))
	mux.HandleFunc("GET /debug/pprof/trace", bounded(pprof.Trace))
	return sameSite(mux)
}

// ready runs every check that ?exclude= does not name. The status code is the
// answer; ?verbose tells each line.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	excluded := r.URL.Query()["exclude"]
	var lines []string
	status := http.StatusOK
	for _, c := range h.checks {
		left := slices.Contains(excluded, c.name)
		if left && c.name != servingCheck {
			continue
		}
		err := c.run()
		if left {
			if err != nil {
				break
			}
			continue
		}
		if n := notice(""); errors.As(err, &n) {
			lines = append(lines, fmt.Sprintf("[!] %s: %s", c.name, n))
			continue
		}
		if err != nil {
			status = http.StatusServiceUnavailable
			lines = append(lines, fmt.Sprintf("[-] %s: %s", c.name, err))
			if c.name == servingCheck {
				break
			}
			continue
		}
		lines = append(lines, "[+] "+c.name+" ok")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	if r.URL.Query().Has("verbose") || status != http.StatusOK {
		fmt.Fprintln(w, strings.Join(lines, "\n"))
		return
	}
	fmt.Fprintln(w, "ok")
}

// bounded refuses profiles longer than maxProfileSeconds.
func bounded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s := r.URL.Query().Get("seconds"); s != "" {
			if n, err := strconv.Atoi(s); err != nil || n < 1 || n > maxProfileSeconds {
				http.Error(w, fmt.Sprintf("seconds must be 1 to %d", maxProfileSeconds), http.StatusBadRequest)
				return
			}
		}
		next(w, r)
	}
}

// sameSite refuses requests that a browser sends on behalf of another site: a
// loopback listener is reachable from every page that the user has open.
func sameSite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if r.Header.Get("Origin") != "" || (host != "localhost" && (ip == nil || !ip.IsLoopback())) {
			http.Error(w, "only for this machine", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
