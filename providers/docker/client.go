package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"

	"berth/events"
	"berth/events/fault"
)

// Limits on what the engine answers, in bytes.
const (
	MaxAnswer  = 4 << 20 // of one JSON document
	maxMessage = 500     // of its error text that is kept
)

// client speaks to the engine. It opens a connection for each request and
// sends each request once: a transport that reuses connections may send one
// twice.
type client struct {
	http   *http.Client
	socket string
}

func newClient(socket string) *client {
	var dialer net.Dialer
	return &client{socket: socket, http: &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "unix", socket)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

var versionRE = regexp.MustCompile(`^[1-9][0-9]?\.[0-9]{1,3}$`)

// engine is what GET /info says of the engine that answers. Its ID is kept
// with its data: the same ID is the same set of containers.
type engine struct {
	version       string // of the API, of this very engine
	ID            string
	Name          string
	ServerVersion string
	OSType        string
	Architecture  string
	NCPU          int
	MemTotal      int64
	MemoryLimit   bool
	CPUCfsQuota   bool `json:"CpuCfsQuota"`
	PidsLimit     bool
}

// engine asks who answers on the socket.
func (c *client) engine(ctx context.Context) (engine, error) {
	var e engine
	resp, err := c.roundTrip(ctx, http.MethodGet, "/info", nil, "")
	if err != nil {
		return e, asRead(err)
	}
	defer resp.Body.Close()
	if err := decode(resp, &e); err != nil {
		return e, asRead(err)
	}
	e.version = resp.Header.Get("Api-Version")
	if !versionRE.MatchString(e.version) || e.ID == "" || events.CheckText("engine id", e.ID) != nil {
		return e, fault.New(fault.Unavailable, "what answers on %s is no Docker Engine", c.socket)
	}
	return e, nil
}

func (e engine) path(format string, args ...any) string {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = url.PathEscape(s)
		}
	}
	return "/v" + e.version + fmt.Sprintf(format, args...)
}

// get reads one document. Whatever goes wrong, nothing was changed.
func (c *client) get(ctx context.Context, path string, v any) error {
	resp, err := c.roundTrip(ctx, http.MethodGet, path, nil, "")
	if err != nil {
		return asRead(err)
	}
	defer resp.Body.Close()
	if err := decode(resp, v); err != nil {
		return asRead(err)
	}
	return nil
}

// stream opens a read that the caller closes.
func (c *client) stream(ctx context.Context, path string) (io.ReadCloser, error) {
	resp, err := c.roundTrip(ctx, http.MethodGet, path, nil, "")
	if err != nil {
		return nil, asRead(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, asRead(refusal(resp))
	}
	return resp.Body, nil
}

// send makes one change. Its error says not-executed only where the engine
// refused or never got the request.
func (c *client) send(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fault.New(fault.BadRequest, "the request is not JSON: %s", err)
		}
		body = bytes.NewReader(raw)
	}
	return c.sendBody(ctx, method, path, body, "application/json", out)
}

func (c *client) sendBody(ctx context.Context, method, path string, body io.Reader, kind string, out any) error {
	resp, err := c.roundTrip(ctx, method, path, body, kind)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified { // start of what runs, stop of what stands
		return nil
	}
	return decode(resp, out)
}

func (c *client) roundTrip(ctx context.Context, method, path string, body io.Reader, kind string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://docker"+path, body)
	if err != nil {
		return nil, fault.New(fault.BadRequest, "a request to the engine: %s", events.Scrub(err.Error()))
	}
	if kind != "" && body != nil {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := c.http.Do(req)
	if err == nil {
		return resp, nil
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return nil, fault.New(fault.Unavailable, "the Docker Engine on %s does not answer: %s", c.socket, events.Scrub(dial.Err.Error())).
			WithOutcome(fault.NotExecuted).WithHint("is dockerd running, and may this user open its socket?")
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fault.New(fault.Unavailable, "the connection to the Docker Engine was lost before it answered").WithOutcome(fault.Unknown)
}

// decode reads an answer of at most MaxAnswer bytes; a nil v discards it.
func decode(resp *http.Response, v any) error {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return refusal(resp)
	}
	if v == nil {
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	if err == nil && len(raw) > MaxAnswer {
		err = fmt.Errorf("more than %d bytes", MaxAnswer)
	}
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		return fault.New(fault.Unavailable, "the Docker Engine's answer can't be read").WithOutcome(fault.Unknown)
	}
	return nil
}

// refusals are the statuses with which the engine says that it did nothing.
// A 5xx may come after it began.
var refusals = map[int]fault.Code{
	http.StatusBadRequest: fault.BadRequest, http.StatusForbidden: fault.PermissionDenied, http.StatusNotFound: fault.NotFound,
	http.StatusNotAcceptable: fault.BadRequest, http.StatusConflict: fault.Conflict, http.StatusNotImplemented: fault.Unimplemented,
}

func refusal(resp *http.Response) *fault.Error {
	var said struct {
		Message string `json:"message"`
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil || json.Unmarshal(raw, &said) != nil || said.Message == "" {
		said.Message = http.StatusText(resp.StatusCode)
	}
	if len(said.Message) > maxMessage {
		said.Message = said.Message[:maxMessage]
	}
	if code, ok := refusals[resp.StatusCode]; ok {
		return fault.New(code, "the Docker Engine refuses (%d): %s", resp.StatusCode, events.Scrub(said.Message)).WithOutcome(fault.NotExecuted)
	}
	return fault.New(fault.Unavailable, "the Docker Engine failed (%d): %s", resp.StatusCode, events.Scrub(said.Message)).WithOutcome(fault.Unknown)
}

// asRead is an error of a request that changes nothing.
func asRead(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.WithOutcome(fault.NotExecuted)
	}
	return err
}
