package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"github.com/nats-io/nats.go"

	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/internal/ids"
)

// How requests are repeated: exponential with full jitter.
const (
	retryFirst = 250 * time.Millisecond
	retryMost  = 15 * time.Second
	// answerIn is how much longer than the handler a client waits, for the way
	// there and back.
	answerIn = 3 * time.Second
)

// Client calls the managers of one space as one caller. It is safe for
// concurrent use. It does not own the connection, unless Redial is called.
type Client struct {
	line   line
	space  events.Space
	caller events.Caller
	ids    events.IDs
}

// Connect makes a client on a connection. It sends nothing.
func Connect(nc *nats.Conn, space events.Space, caller events.Caller) *Client {
	return &Client{line: line{nc: nc}, space: space, caller: caller, ids: ids.New()}
}

// Caller is who the client calls as.
func (c *Client) Caller() events.Caller { return c.caller }

// Space is the space that the client calls in.
func (c *Client) Space() events.Space { return c.space }

// Option changes one call.
type Option func(*settings)

type settings struct {
	id       events.CommandID
	minimum  uint64
	target   string
	timeout  time.Duration
	patience time.Duration
	trace    string
	dryRun   bool
}

// WithID gives the request's id, to repeat a request that was made before. A
// call without one makes a fresh one and keeps it through its own repeats.
func WithID(id events.CommandID) Option { return func(s *settings) { s.id = id } }

// WithMinSequence makes a read answer from a fold of at least that sequence.
func WithMinSequence(n uint64) Option { return func(s *settings) { s.minimum = n } }

// WithInstance asks one instance instead of any.
func WithInstance(id events.InstanceID) Option {
	return func(s *settings) {
		if id != "" {
			s.target = string(id)
		}
	}
}

// WithTimeout sets the deadline of the call, at most commands.MaxTimeout.
func WithTimeout(d time.Duration) Option { return func(s *settings) { s.timeout = d } }

// WithPatience repeats the request for so long, under the same id, while it is
// proved that it was not executed and may succeed later (E9).
func WithPatience(d time.Duration) Option { return func(s *settings) { s.patience = d } }

// WithTrace carries a W3C traceparent into the log.
func WithTrace(t string) Option { return func(s *settings) { s.trace = t } }

// Call sends one request and returns its result.
func Call[In commands.Input, Out any](ctx context.Context, c *Client, cmd commands.Command[In, Out], in In, opts ...Option) (Out, error) {
	var out Out
	reply, err := c.call(ctx, cmd.Contract, in, opts)
	if err != nil {
		return out, err
	}
	if err := jsonv2.Unmarshal(reply.Result, &out, asV1); err != nil {
		// E6: the reply is rejected here, but what it says was done is done.
		return out, fault.New(fault.ContractMismatch, "the result of %s can't be read; the manager may be of another version", cmd.Name).WithOutcome(done(cmd.Contract))
	}
	return out, nil
}

// DryRun asks what a write or a goal would append; nothing is appended.
func DryRun[In commands.Input, Out any](ctx context.Context, c *Client, cmd commands.Command[In, Out], in In, opts ...Option) ([]commands.Draft, error) {
	reply, err := c.call(ctx, cmd.Contract, in, append(opts, func(s *settings) { s.dryRun = true }))
	return reply.WouldAppend, err
}

// asV1 keeps the meaning of encoding/json with the speed of the newer reader.
var asV1 = jsonv1.DefaultOptionsV1()

// done is the outcome of a request whose reply says ok.
func done(row *commands.Contract) fault.Outcome {
	if row.Kind == commands.Read {
		return fault.NotExecuted
	}
	return fault.Executed
}

func (c *Client) call(ctx context.Context, row *commands.Contract, in commands.Input, opts []Option) (commands.Reply, error) {
	s := settings{target: commands.Any, timeout: row.Timeout}
	for _, o := range opts {
		o(&s)
	}
	if err := in.Check(); err != nil {
		return commands.Reply{}, fault.From(err).WithOutcome(fault.NotExecuted) // E5
	}
	if s.id == "" && row.Kind != commands.Read {
		s.id = events.CommandID(c.ids.UUID())
	}
	if s.timeout <= 0 || s.timeout > commands.MaxTimeout {
		return commands.Reply{}, fault.New(fault.BadRequest, "timeout: %s is not between 0 and %s", s.timeout, commands.MaxTimeout)
	}
	body, err := request(s, in)
	if err != nil {
		return commands.Reply{}, err
	}
	begun := time.Now()
	for n := 0; ; n++ {
		reply, err := c.send(ctx, row, s, body)
		if err == nil {
			return reply, nil
		}
		if to := boundTo(err); to != "" && s.target == commands.Any && row.Target == commands.TargetHolder {
			s.target = to
			continue
		}
		if !repeatable(row, err) || time.Since(begun) >= s.patience || !pause(ctx, n) {
			return commands.Reply{}, told(row, err, s.id, in)
		}
	}
}

func request(s settings, in commands.Input) ([]byte, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return nil, fault.New(fault.BadRequest, "the input can't be written as JSON")
	}
	body, err := json.Marshal(commands.Request{ID: s.id, MinSequence: s.minimum, TimeoutMs: s.timeout.Milliseconds(), DryRun: s.dryRun, Input: input})
	if err != nil {
		return nil, fault.New(fault.BadRequest, "the request can't be written as JSON")
	}
	if len(body) > commands.MaxRequest {
		return nil, fault.New(fault.BadRequest, "the request has %d bytes; at most %d are possible", len(body), commands.MaxRequest)
	}
	return body, nil
}

// repeatable is E9: a write is repeated only on proof of non-execution,
// whatever id it reuses.
func repeatable(row *commands.Contract, err error) bool {
	e := fault.From(err)
	return e.Retryable && (e.Outcome == fault.NotExecuted || row.Kind == commands.Read)
}

// pause waits before attempt n+1, unless ctx ends.
func pause(ctx context.Context, n int) bool {
	most := retryMost
	if n < 6 {
		most = min(retryFirst<<n, retryMost)
	}
	t := time.NewTimer(time.Duration(rand.Int64N(int64(most))) + time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func boundTo(err error) string {
	for _, d := range fault.From(err).Details {
		if d.Kind == commands.DetailBindRefused {
			return d.Facts["boundTo"]
		}
	}
	return ""
}

// address is where a request of a row goes: about the caller's owner where a
// mode names one.
func (c *Client) address(row *commands.Contract, target string) commands.Address {
	a := commands.Address{Target: target, Command: row.Name, Mode: row.Modes[0], Caller: c.caller}
	if a.Mode == commands.ModeOwner {
		a.Owner = c.caller.Owner
	}
	return a
}

func (c *Client) send(ctx context.Context, row *commands.Contract, s settings, body []byte) (commands.Reply, error) {
	m := nats.NewMsg(c.address(row, s.target).Subject(c.space))
	m.Data = body
	if s.trace != "" {
		m.Header.Set(commands.HeaderTrace, s.trace)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout+answerIn)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return commands.Reply{}, fault.New(fault.DeadlineExceeded, "%s was not sent: the time is over", row.Name).WithOutcome(fault.NotExecuted)
	}
	nc := c.line.conn()
	if nc.IsClosed() { // E5; the library says the same of one that closes while it waits
		return commands.Reply{}, unsent(row, nats.ErrConnectionClosed)
	}
	if c.line.again != nil && row.Kind == commands.Read {
		if !nc.IsConnected() {
			return commands.Reply{}, unsent(row, nats.ErrConnectionClosed)
		}
		var stop context.CancelFunc
		ctx, stop = c.line.whileUp(ctx, nc)
		defer stop()
	}
	got, err := nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		if cause := context.Cause(ctx); cause == nats.ErrConnectionClosed {
			err = cause
		}
		return commands.Reply{}, silence(row, s.target, err)
	}
	return read(row, got.Data)
}

// silence is what is known when no reply came.
func silence(row *commands.Contract, target string, err error) error {
	outcome, hint := fault.Unknown, "ask what became of it before repeating it; with the same id a repeat is safe"
	if row.Kind == commands.Read {
		outcome, hint = fault.NotExecuted, "ask again: a read changes nothing" // nothing is ever executed by a read
	}
	switch {
	case errors.Is(err, nats.ErrNoResponders) && target != commands.Any: // E7, of an instance that is gone or has another space
		return fault.New(fault.Unavailable, "instance %s does not answer to %s", target, row.Name).WithOutcome(fault.NotExecuted).
			WithHint("start it again, or name another one: `berth hosts` shows which instances there are")
	case errors.Is(err, nats.ErrNoResponders): // E7
		return fault.New(fault.Unavailable, "no manager answers to %s", row.Name).WithOutcome(fault.NotExecuted).WithHint("`berth up` starts one; `berth doctor` looks at the connection")
	case errors.Is(err, nats.ErrInvalidConnection), errors.Is(err, nats.ErrMaxPayload),
		errors.Is(err, nats.ErrBadSubject), errors.Is(err, nats.ErrConnectionDraining), errors.Is(err, nats.ErrHeadersNotSupported):
		return unsent(row, err)
	case errors.Is(err, context.Canceled):
		return fault.New(fault.Cancelled, "%s was given up before it was answered", row.Name).WithOutcome(outcome)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout): // E8
		return fault.New(fault.DeadlineExceeded, "%s was not answered in time", row.Name).WithOutcome(outcome).WithHint("%s", hint)
	}
	f := fault.New(fault.Unavailable, "the connection failed before %s was answered: %s", row.Name, events.Scrub(err.Error())).WithOutcome(outcome).WithHint("%s", hint)
	if outcome == fault.Unknown {
		f = f.WithDetail(fault.DetailUnanswered, "command", row.Name)
	}
	return f
}

// told names what an unanswered write can be asked about by.
func told(row *commands.Contract, err error, id events.CommandID, in commands.Input) error {
	e := fault.From(err)
	if row.Kind != commands.Goal || e.Outcome != fault.Unknown || !slices.Contains([]fault.Code{fault.Unavailable, fault.DeadlineExceeded, fault.Cancelled}, e.Code) {
		return err
	}
	goal := string(id)
	if g, ok := in.(commands.Goaler); ok && g.GoalID() != "" {
		goal = g.GoalID()
	}
	return e.WithHint("`berth goal %s` tells what became of it; asked again with that goal it is the same one", goal)
}

// unsent is the error of a request that was refused on this side before
// anything was sent (E5).
func unsent(row *commands.Contract, err error) error {
	return fault.New(fault.Unavailable, "%s was not sent: %s", row.Name, events.Scrub(err.Error())).WithOutcome(fault.NotExecuted)
}

// How a reply begins and ends that says ok and nothing but its result.
var okPrefix, okSuffix = []byte(`{"ok":true,"result":`), []byte(`}`)

// read takes a reply apart. One that is no reply says nothing about what was
// done (E3); a missing outcome reads as unknown (E4).
func read(row *commands.Contract, body []byte) (commands.Reply, error) {
	if result, ok := bytes.CutPrefix(body, okPrefix); ok && bytes.HasSuffix(result, okSuffix) {
		// As the service writes it; what is not JSON fails when it is decoded.
		return commands.Reply{OK: true, Result: result[:len(result)-len(okSuffix)]}, nil
	}
	var r commands.Reply
	if err := json.Unmarshal(body, &r); err != nil || (!r.OK && r.Error == nil) {
		o := fault.Unknown
		if row.Kind == commands.Read {
			o = fault.NotExecuted
		}
		return commands.Reply{}, fault.New(fault.ContractMismatch, "the answer to %s is not one that this program reads", row.Name).WithOutcome(o)
	}
	if !r.OK {
		return commands.Reply{}, r.Error
	}
	return r, nil
}
