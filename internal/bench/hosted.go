package bench

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"berth/events"
	"berth/events/eventlog/stream"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted"
)

const (
	// perLife is how many operations one environment of the calls has: about
	// as many as a life.
	perLife = 10
	// serverWrites is what the provider makes durable for one operation: that
	// it accepted it, and its answer.
	serverWrites = 2
	// bareAnswer is about as long as a typed answer, in bytes.
	bareAnswer = 160
)

// measureHosted measures a hosted call, and what a restart makes of many
// operations that nobody knows the answer of.
func measureHosted(ctx context.Context, o Options) ([]Row, error) {
	certs := filepath.Join(o.Dir, "certs")
	if err := certificates(certs); err != nil {
		return nil, err
	}
	rows, err := hostedCalls(ctx, o, certs)
	if err != nil {
		return rows, err
	}
	more, err := uncertainAfterRestart(ctx, o, certs)
	return append(rows, more...), err
}

// caller makes the calls of both sides.
type caller struct {
	ctx   context.Context
	nc    *nats.Conn
	js    jetstream.JetStream
	log   *stream.Log
	fill  *filler
	drv   *hosted.Driver
	bare  *http.Client
	url   string
	plan  events.Plan
	id    events.EnvironmentID
	made  int
	body  []byte
	short []byte // what one side of the provider makes durable
}

// hostedCalls is one operation as a manager makes it: its intent committed,
// the call, the answer committed. Raw is the same number of durable publishes
// on both sides and a bare HTTPS round trip with bodies of the same length.
func hostedCalls(ctx context.Context, o Options, certs string) ([]Row, error) {
	o.Progress("hosted: calls")
	s, err := begin(ctx, role{Kind: "server", Dir: filepath.Join(o.Dir, "nats"), Strict: true})
	if err != nil {
		return nil, err
	}
	defer s.kill()
	c := &caller{ctx: ctx, fill: newFiller(100), short: []byte(strings.Repeat("x", 400))}
	if c.nc, err = nats.Connect(s.Endpoint.NATS); err != nil {
		return nil, err
	}
	defer c.nc.Close()
	if c.js, err = rawSide(ctx, c.nc); err != nil {
		return nil, err
	}
	if c.log, err = stream.Open(ctx, c.nc, stream.Config{Space: space, Create: true}); err != nil {
		return nil, err
	}
	defer c.log.Close()
	d, err := newTrial(filepath.Join(o.Dir, "trial"))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	f, err := serveFar(filepath.Join(o.Dir, "far"), certs, d, 0)
	if err != nil {
		return nil, err
	}
	defer f.cancel()
	if c.drv, err = hosted.New(farConfig(f.url, certs)); err != nil {
		return nil, err
	}
	defer c.drv.Close()
	stop, err := c.bareSide(certs)
	if err != nil {
		return nil, err
	}
	defer stop()
	c.plan = events.Plan{Provider: farName, Image: events.Image{Kind: "template", Reference: "host"}, Lifetime: time.Hour, Command: []string{"true"}}
	rows, err := c.turns(o)
	if ended := f.stop(); err == nil {
		err = ended
	}
	return rows, err
}

// turns measures both sides in turn.
func (c *caller) turns(o Options) ([]Row, error) {
	var first, second events.Commit
	var a, b []byte
	var rs, os []time.Duration
	raw := func() error { return timed(&rs, func() error { return c.raw(a, b) }) }
	ours := func() error { return timed(&os, func() error { return c.ours(first, second) }) }
	for n := range warmUps + o.Samples {
		var err error
		if first, a, err = c.fill.next(); err != nil {
			return nil, err
		}
		if second, b, err = c.fill.next(); err != nil {
			return nil, err
		}
		sides := []func() error{raw, ours}
		for i := range sides {
			if err := sides[(i+n)%2](); err != nil {
				return nil, err
			}
		}
	}
	r, w := median(rs[warmUps:]), median(os[warmUps:])
	return []Row{
		beside("hosted-call-p50", micros(w), "us", micros(r)).
			noted("two commits of the manager and a call with mutual TLS, beside four durable publishes and a bare HTTPS round trip"),
		alone("hosted-call-overhead", micros(w-r), "us").atMost(1000).noted("the difference of both sides of hosted-call-p50"),
	}, nil
}

func (c *caller) ours(first, second events.Commit) error {
	if _, err := c.log.Commit(c.ctx, first); err != nil {
		return err
	}
	if c.made%perLife == 0 {
		c.id = events.EnvironmentID(uuid.Must(uuid.NewV7()).String())
	}
	c.made++
	op := c.operation()
	if out := c.drv.Do(c.ctx, op); out.Kind != providers.Done {
		return fault.New(fault.Internal, "the call of the benchmark was %s: %v", out.Kind, out.Fault)
	}
	_, err := c.log.Commit(c.ctx, second)
	return err
}

func (c *caller) operation() providers.Operation {
	return providers.Operation{ID: events.OperationID(uuid.Must(uuid.NewV7()).String()), Environment: c.id, Alias: "bench", Verb: events.VerbStart,
		Plan: c.plan, Ref: string(c.id), Writer: events.Writer{Instance: "abcdefghijklmnopqrstuvwxyz", Epoch: 1}}
}

func (c *caller) raw(a, b []byte) error {
	if _, err := c.js.Publish(c.ctx, rawSubject, a); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, c.url, bytes.NewReader(c.body))
	if err != nil {
		return err
	}
	res, err := c.bare.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if err != nil || res.StatusCode != http.StatusOK {
		return fault.New(fault.Internal, "the bare round trip failed: status %d, %v", res.StatusCode, err)
	}
	_, err = c.js.Publish(c.ctx, rawSubject, b)
	return err
}

// bareSide serves bare HTTPS with the same certificates: a handler that reads
// the body, publishes what the provider would make durable, and answers.
func (c *caller) bareSide(certs string) (stop func(), err error) {
	t, err := farTLS(certs).Config()
	if err != nil {
		return nil, err
	}
	mine, err := bareTLS(certs)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	srv := &http.Server{TLSConfig: t, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(c.answer)}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = srv.ServeTLS(l, "", "") }()
	c.bare = &http.Client{Transport: &http.Transport{TLSClientConfig: mine}}
	c.url, c.body = "https://"+l.Addr().String(), []byte(strings.Repeat("x", 600))
	return func() { c.bare.CloseIdleConnections(); _ = srv.Close(); <-ended }, nil
}

func (c *caller) answer(w http.ResponseWriter, r *http.Request) {
	_, err := io.Copy(io.Discard, r.Body)
	for range serverWrites {
		if err == nil {
			_, err = c.js.Publish(r.Context(), rawSubject, c.short)
		}
	}
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(c.short[:bareAnswer])
}
