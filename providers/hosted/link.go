package hosted

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/wire"
)

// Connections to one provider.
const (
	maxCallConns   = 64 // for calls; more wait
	maxStreamConns = 64 // for files and logs, apart, so that they never hold up a call
)

// link is the way to one endpoint: calls on kept connections, streams each on
// a connection of its own.
type link struct {
	name    string
	base    string
	auth    string // the Authorization header
	calls   *http.Client
	streams *http.Client
}

func newLink(c Config) (*link, error) {
	t, err := c.tls()
	if err != nil {
		return nil, err
	}
	l := &link{name: c.Name, base: strings.TrimRight(c.URL, "/")}
	if l.auth, err = c.bearer(); err != nil {
		return nil, err
	}
	dial := &net.Dialer{Timeout: wire.ConnectLimit, KeepAlive: 15 * time.Second}
	transport := func(conns int) *http.Transport {
		return &http.Transport{
			// No proxy of the environment: the endpoint is the one configured.
			DialContext: dial.DialContext, TLSClientConfig: t.Clone(), TLSHandshakeTimeout: wire.ConnectLimit,
			MaxConnsPerHost: conns, MaxIdleConnsPerHost: conns, IdleConnTimeout: wire.KeepIdle,
			ResponseHeaderTimeout: wire.MaxDeadline + wire.ConnectLimit, MaxResponseHeaderBytes: wire.MaxHeader, DisableCompression: true,
			WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10,
		}
	}
	// A redirect is an answer, and not a good one (R49).
	never := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	streams := transport(maxStreamConns)
	streams.DisableKeepAlives = true // a GET on a fresh connection is never repeated by the transport
	streams.ResponseHeaderTimeout = wire.StallAfter
	l.calls = &http.Client{Transport: transport(maxCallConns), CheckRedirect: never}
	l.streams = &http.Client{Transport: streams, CheckRedirect: never}
	return l, nil
}

func (l *link) close() {
	l.calls.CloseIdleConnections()
	l.streams.CloseIdleConnections()
}

// encode makes a body within the limit.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fault.New(fault.BadRequest, "the call can't be written as JSON").WithOutcome(fault.NotExecuted)
	}
	if len(b) > wire.MaxCall {
		clear(b)
		return nil, fault.New(fault.BadRequest, "the call has %d bytes, more than the %d that may be sent", len(b), wire.MaxCall)
	}
	return b, nil
}

// once hides what a body is made of, so that the transport can't make it
// again: a request that was begun is never sent a second time.
type once struct{ io.Reader }

// post makes one call and reads its typed answer into out. An error says
// nothing of what the provider did, unless the provider itself says so or no
// connection to it was made.
func (l *link) post(ctx context.Context, path string, body []byte, out any) *fault.Error {
	ctx, cancel := within(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.base+path, once{bytes.NewReader(body)})
	if err != nil {
		return fault.New(fault.Internal, "provider %s: the request can't be made", l.name)
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Content-Type", "application/json")
	res, e := l.send(ctx, l.calls, req)
	if e != nil {
		return e
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return l.failed(ctx, res)
	}
	raw, e := l.whole(ctx, res)
	if e != nil {
		return e
	}
	if json.Unmarshal(raw, out) != nil {
		return l.broken("is not the JSON of the protocol")
	}
	return nil
}

// within bounds a call that has no deadline of its own (R85).
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, wire.DefaultDeadline)
}

func (l *link) send(ctx context.Context, c *http.Client, req *http.Request) (*http.Response, *fault.Error) {
	if l.auth != "" {
		req.Header.Set("Authorization", l.auth)
	}
	if at, ok := ctx.Deadline(); ok {
		left := min(max(time.Until(at), time.Millisecond), wire.MaxDeadline)
		req.Header.Set(wire.HeaderTimeout, strconv.FormatInt(left.Milliseconds(), 10))
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, l.lost(ctx, err)
	}
	return res, nil
}

// whole reads an answer within the limit.
func (l *link) whole(ctx context.Context, res *http.Response) ([]byte, *fault.Error) {
	if t, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, l.broken("is not JSON")
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxAnswer+1))
	if err != nil {
		return nil, l.lost(ctx, err)
	}
	if len(raw) > wire.MaxAnswer {
		return nil, l.broken("is longer than the limit of " + strconv.Itoa(wire.MaxAnswer) + " bytes")
	}
	return raw, nil
}

// failed reads a status that is not the wanted one: the provider's own words
// if they are there, scrubbed.
func (l *link) failed(ctx context.Context, res *http.Response) *fault.Error {
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		return l.broken("is a redirect, which is never followed (R49)")
	}
	var f wire.Failure
	raw, e := l.whole(ctx, res)
	if e != nil || json.Unmarshal(raw, &f) != nil || f.Error == nil || f.Error.Code == "" {
		return fault.New(fault.Unavailable, "provider %s answered with status %d", l.name, res.StatusCode)
	}
	e = l.clean(f.Error)
	e.Message = events.Scrub("provider " + l.name + ": " + e.Message)
	return e
}

// clean makes a failure that the provider wrote fit to be kept, without our
// bearer in it (R55).
func (l *link) clean(e *fault.Error) *fault.Error {
	token := strings.TrimPrefix(l.auth, "Bearer ")
	return providers.ScrubFault(e, providers.Material{"bearer": []byte(token)})
}

func (l *link) broken(why string) *fault.Error {
	return fault.New(fault.Unavailable, "the answer of provider %s %s", l.name, why)
}

// opRefused is the operation of a net.OpError that holds an alert of the other
// side: it ended the handshake, before any request. The type of the alert itself
// is the library's own.
const opRefused = "remote error"

// lost says why there is no answer, in our own words: the text of the
// libraries below may repeat what was sent.
func (l *link) lost(ctx context.Context, err error) *fault.Error {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		op        *net.OpError
	)
	timeout, _ := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	switch {
	case ctx.Err() != nil:
		return fault.Ended(ctx.Err(), "provider %s did not answer: %s", l.name, ctx.Err()).WithOutcome(fault.Unknown)
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &invalid):
		return fault.New(fault.Unavailable, "provider %s shows a certificate that is not of its authority, not of its name, or not valid now", l.name).
			WithOutcome(fault.NotExecuted).WithHint("ca=FILE is the authority that made its certificate, and the host in its address is one that `berth provider certs --host` was given")
	case errors.As(err, &op) && op.Op == opRefused:
		return fault.New(fault.Unavailable, "provider %s refused the connection: %s", l.name, events.Scrub(op.Err.Error())).
			WithOutcome(fault.NotExecuted).WithHint("cert=FILE and key=FILE are of the authority that its --client-ca names, and valid now")
	case errors.As(err, &record):
		return fault.New(fault.Unavailable, "provider %s does not speak TLS", l.name).
			WithOutcome(fault.NotExecuted).WithHint("`berth provider serve` prints its address when it starts")
	case errors.As(err, &op) && op.Op == "dial":
		return fault.New(fault.Unavailable, "provider %s can't be reached", l.name).WithOutcome(fault.NotExecuted).
			WithHint("what it holds goes on, and ends at its deadline; `berth provider serve` starts it again on its machine, with the same directory")
	case timeout != nil && timeout.Timeout():
		return fault.New(fault.DeadlineExceeded, "provider %s did not answer in time", l.name)
	}
	return fault.New(fault.Unavailable, "the connection to provider %s was lost", l.name).
		WithHint("if that is so each time it may be refusing who asks: cert=FILE and key=FILE are of the authority that its --client-ca names")
}
