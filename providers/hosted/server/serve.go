package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"berth/events/fault"
	"berth/internal/secretfile"
	"berth/providers/hosted/wire"
)

// MaxConnections is how many connections are open at once; more wait.
const MaxConnections = 512

// drainFor is how long running answers may take after the end was asked for.
const drainFor = 10 * time.Second

// TLS names the files of a served endpoint.
type TLS struct {
	CertFile, KeyFile string
	// ClientCAFile is the authority of client certificates; without it clients
	// are told by their bearer only.
	ClientCAFile string
}

// Config loads the files: TLS 1.3 and nothing older, HTTP/1.1, and with a
// client authority a certificate of it from everybody.
func (t TLS) Config() (*tls.Config, error) {
	cert, err := secretfile.KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}}
	if t.ClientCAFile != "" {
		var pool *x509.CertPool
		if pool, err = secretfile.Pool(t.ClientCAFile); err != nil {
			return nil, err
		}
		c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// Serve answers on a listener until ctx ends, then lets running answers end
// and closes the server. It is refused with bad-request if nothing tells who
// asks: neither a client authority nor a bearer.
func (s *Server) Serve(ctx context.Context, l net.Listener, t TLS) error {
	if t.ClientCAFile == "" && s.bearer == nil {
		return fault.New(fault.BadRequest, "nothing tells who asks").WithHint("name a client authority or a bearer file")
	}
	c, err := t.Config()
	if err != nil {
		return err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: wire.ConnectLimit, IdleTimeout: wire.ServerKeepIdle, MaxHeaderBytes: wire.MaxHeader,
		Protocols: protocols, ErrorLog: log.New(discard{}, "", 0),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(tls.NewListener(limit(l, MaxConnections), c)) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		s.cancel() // long polls and calls end now; their answers are still sent
		drain, cancel := context.WithTimeout(context.Background(), drainFor)
		defer cancel()
		if srv.Shutdown(drain) != nil {
			_ = srv.Close()
		}
		<-ended
	}
	return errors.Join(err, s.Close())
}

// discard drops what net/http has to say: handshakes that failed, and panics
// of handlers with what they held.
type discard struct{}

// Write implements io.Writer.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

// readBearer keeps only the digest of the bearer.
func readBearer(file string) ([sha256.Size]byte, error) {
	b, err := secretfile.Bearer(file, wire.MinBearer, wire.MaxBearer)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	defer clear(b)
	return sha256.Sum256(b), nil
}

// authentic compares digests in constant time.
func (s *Server) authentic(r *http.Request) bool {
	if s.bearer == nil {
		return true
	}
	shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	sum := sha256.Sum256([]byte(shown))
	return subtle.ConstantTimeCompare(sum[:], s.bearer[:]) == 1 && ok
}

// limited is a listener with a bounded number of open connections.
type limited struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limit(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, places: make(chan struct{}, n), closed: make(chan struct{})}
}

// Accept waits for a place before it takes a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &counted{Conn: c, leave: func() { <-l.places }}, nil
}

// Close ends waiting too.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
