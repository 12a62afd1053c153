package fly

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"berth/events"
	"berth/events/fault"
)

// Limits of one exchange, in bytes.
const (
	MaxAnswer  = 4 << 20
	MaxToken   = 4 << 10
	maxMessage = 500
)

// maxRetryAfter is the longest wait that a rate limit is believed to ask for.
const maxRetryAfter = time.Hour

// client speaks to the API. A connection carries one request, so that the
// transport has no reason to send one again, and redirects are refused: a
// token goes to the host that was configured and nowhere else.
type client struct {
	http  *http.Client
	base  string // with the app
	token string // file
}

func newClient(cfg Config) *client {
	tr := cfg.Transport
	if tr == nil {
		tr = &http.Transport{
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13}, TLSHandshakeTimeout: 20 * time.Second,
		}
	}
	return &client{base: cfg.BaseURL + "/apps/" + url.PathEscape(cfg.App), token: cfg.TokenFile, http: &http.Client{Transport: tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// bearer reads the token anew for every request, so that it can be rotated.
func (c *client) bearer() (string, error) {
	bad := func(why string) (string, error) {
		return "", fault.New(fault.Unauthenticated, "the Fly token file: %s", why).WithHint("write the token alone into the file, readable for its owner only")
	}
	st, err := os.Stat(c.token)
	switch {
	case err != nil:
		return bad("it can't be read")
	case !st.Mode().IsRegular() || st.Size() > MaxToken:
		return bad("it must be a file of at most 4096 bytes")
	case st.Mode().Perm()&0o077 != 0:
		return bad("others may read it")
	}
	raw, err := os.ReadFile(c.token)
	if err != nil {
		return bad("it can't be read")
	}
	t := strings.TrimSpace(string(raw))
	if t == "" || strings.ContainsFunc(t, func(r rune) bool { return r < ' ' || r > '~' }) {
		return bad("it holds no token")
	}
	return t, nil
}

// request is one exchange; nonce is that of a lease held on the machine.
type request struct {
	method, path, nonce string
	in, out             any
}

// do sends a request once. Its error says not-executed where the request did
// not leave or the API refused it; a 5xx, a cut and an answer that can't be
// read leave the outcome unknown.
func (c *client) do(ctx context.Context, r request) error {
	token, err := c.bearer()
	if err != nil {
		return err
	}
	var body io.Reader
	if r.in != nil {
		raw, err := json.Marshal(r.in)
		if err != nil {
			return fault.New(fault.BadRequest, "the request is not JSON: %s", err)
		}
		body = bytes.NewReader(raw)
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, body)
	if err != nil {
		return fault.New(fault.BadRequest, "a request to the Fly Machines API: %s", events.Scrub(err.Error()))
	}
	req.GetBody = nil // nothing may send it again
	req.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.nonce != "" {
		req.Header.Set("fly-machine-lease-nonce", r.nonce)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if !connected.Load() {
			return fault.New(fault.Unavailable, "the Fly Machines API can't be reached").WithOutcome(fault.NotExecuted)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fault.New(fault.Unavailable, "the connection to the Fly Machines API was lost before it answered").WithOutcome(fault.Unknown)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return refusal(resp)
	}
	return decode(resp, r.out)
}

func decode(resp *http.Response, v any) error {
	if v == nil {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	if err == nil && len(raw) > MaxAnswer {
		err = errors.New("too long")
	}
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		return fault.New(fault.Unavailable, "the Fly Machines API's answer can't be read").WithOutcome(fault.Unknown)
	}
	return nil
}

// get reads; whatever goes wrong, nothing was changed.
func (c *client) get(ctx context.Context, path string, v any) error {
	err := c.do(ctx, request{method: http.MethodGet, path: path, out: v})
	return notSent(err)
}

// notSent is an error of what changes nothing, or of what did not go out.
func notSent(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.WithOutcome(fault.NotExecuted)
	}
	return err
}

// refusals are the statuses that say that nothing was done.
var refusals = map[int]fault.Code{
	http.StatusBadRequest: fault.BadRequest, http.StatusUnauthorized: fault.Unauthenticated, http.StatusForbidden: fault.PermissionDenied,
	http.StatusNotFound: fault.NotFound, http.StatusConflict: fault.Conflict, http.StatusPreconditionFailed: fault.FailedPrecondition,
	http.StatusUnprocessableEntity: fault.FailedPrecondition, http.StatusTooManyRequests: fault.ResourceExhausted,
}

var requestIDRE = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

func refusal(resp *http.Response) *fault.Error {
	var said struct{ Error, Status string }
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil || json.Unmarshal(raw, &said) != nil || said.Error == "" {
		said.Error = http.StatusText(resp.StatusCode)
	}
	if len(said.Error) > maxMessage {
		said.Error = said.Error[:maxMessage]
	}
	code, refused := refusals[resp.StatusCode]
	outcome, verb := fault.NotExecuted, "refuses"
	switch {
	case resp.StatusCode == http.StatusRequestTimeout:
		code, outcome, verb = fault.DeadlineExceeded, fault.Unknown, "gave up waiting"
	case !refused:
		code, outcome, verb = fault.Unavailable, fault.Unknown, "failed"
	case said.Status == "insufficient_capacity":
		code = fault.ResourceExhausted
	case said.Status == "name_taken":
		code = fault.Conflict
	}
	e := fault.New(code, "the Fly Machines API %s (%d): %s", verb, resp.StatusCode, events.Scrub(said.Error)).WithOutcome(outcome)
	if id := resp.Header.Get("Fly-Request-Id"); requestIDRE.MatchString(id) {
		e = e.WithDetail("berth.fly", "requestId", id)
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		e = e.WithDetail("berth.throttled", "retryAfter", retryAfter(resp.Header.Get("Retry-After")).String())
	}
	return e
}

// retryAfter is told to who asked, and never waited for in here.
func retryAfter(h string) time.Duration {
	n, err := strconv.Atoi(h)
	if err != nil || n < 1 {
		return time.Second
	}
	return min(time.Duration(n)*time.Second, maxRetryAfter)
}
