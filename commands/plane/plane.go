package plane

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"berth/commands"
	"berth/events"
	"berth/events/fault"
)

// Plane answers requests. It is safe for concurrent use.
type Plane struct {
	Options
	started  time.Time
	headroom headroom
	goalLock keyed
	names    names
	// classSpawn: a connector was usable when the plane began.
	classSpawn bool

	ctx    context.Context // of work that outlives its request
	cancel context.CancelFunc
	later  sync.WaitGroup
	mu     sync.Mutex
	trying map[events.Boundary]bool
	closed bool

	stopping atomic.Bool // no new work is taken in
}

// New is a plane that is ready to answer. Close ends what it does on its own.
func New(o Options) *Plane {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Engine == nil {
		o.Engine = func() map[string]int64 { return map[string]int64{} }
	}
	if o.Poke == nil {
		o.Poke = func(events.Boundary) {}
	}
	if o.Shared == nil {
		o.Shared = func(string) bool { return false }
	}
	if o.Bound == nil {
		o.Bound = func(string) bool { return false }
	}
	if o.Silent == nil {
		o.Silent = func(context.Context, events.InstanceID) error { return nil }
	}
	if o.Requests == nil {
		o.Requests = func() map[string]uint64 { return map[string]uint64{} }
	}
	p := &Plane{Options: o, started: o.Now(), classSpawn: o.Connectors.Any(), trying: map[events.Boundary]bool{}}
	p.headroom.init()
	p.names.bare = map[events.Boundary]events.UID{}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Close stops continuing goals and waits until that has ended. What is
// accepted stays accepted, and is continued at the next start.
func (p *Plane) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.later.Wait()
}

// ending are the commands that free what is held: they are admitted always.
var ending = []string{"retire", "stop", "goal-cancel", "write-off", "turn-yield"}

// call is one request on its way through a handler.
type call struct {
	commands.Address
	req    commands.Request
	row    *commands.Contract
	trace  string
	drafts []commands.Draft
}

// fingerprint tells a write's request from another one of the same id, which
// each write has.
func (c *call) fingerprint(in any) (string, error) {
	return commands.Fingerprint(c.Address, string(c.req.ID), in)
}

// owner is whose things the request is about.
func (c *call) owner() events.Owner {
	if c.Owner != "" {
		return c.Owner
	}
	return c.Caller.Owner
}

// draft notes what a dry run would append.
func (c *call) draft(b events.Boundary, expect uint64, es []events.Event) error {
	d, err := commands.DraftOf(b, expect, es)
	c.drafts = append(c.drafts, d)
	return err
}

// handler is what a command does, with its input still encoded.
type handler func(p *Plane, ctx context.Context, c *call) (any, error)

func on[In commands.Input, Out any](_ commands.Command[In, Out], f func(*Plane, context.Context, *call, In) (Out, error)) handler {
	return func(p *Plane, ctx context.Context, c *call) (any, error) {
		in, err := commands.DecodeInput[In](c.req.Input)
		if err != nil {
			return nil, err
		}
		return f(p, ctx, c, in)
	}
}

// Handle answers one request that was addressed to a. The caller of a is taken
// as proved: the broker lets nobody publish for another. It always answers,
// and the answer always has an outcome.
func (p *Plane) Handle(ctx context.Context, a commands.Address, payload []byte, trace string) (reply commands.Reply) {
	c := &call{Address: a, trace: checkTrace(trace)}
	defer func() {
		if r := recover(); r != nil {
			// E13: whatever happened, the client learns that it is unknown.
			p.Logger.Error("a handler panicked", "command", a.Command, "panic", events.Scrub(fmt.Sprint(r)), "stack", string(debug.Stack()))
			reply = p.refuse(c, fault.New(fault.Unavailable, "the handler of %s failed unexpectedly", a.Command).WithOutcome(fault.Unknown))
		}
	}()
	result, err := p.handle(ctx, c, payload)
	if err != nil {
		return p.refuse(c, err)
	}
	if c.req.DryRun {
		return commands.Reply{OK: true, WouldAppend: slices.Concat([]commands.Draft{}, c.drafts)}
	}
	body, err := json.Marshal(result)
	switch {
	case err != nil:
		return p.refuse(c, fault.New(fault.Internal, "the result of %s can't be written as JSON", a.Command).WithOutcome(p.unanswerable(c)))
	case len(body) > commands.MaxReply:
		return p.refuse(c, fault.New(fault.ResourceExhausted, "the result has %d bytes; at most %d fit in a reply", len(body), commands.MaxReply).
			WithHint("ask for fewer rows at a time").WithOutcome(p.unanswerable(c)))
	}
	return commands.Reply{OK: true, Result: body}
}

// unanswerable is the outcome of a request that was handled and whose answer
// can't be sent (E2).
func (p *Plane) unanswerable(c *call) fault.Outcome {
	if c.row.Kind == commands.Read {
		return fault.NotExecuted
	}
	return fault.Executed
}

func (p *Plane) handle(ctx context.Context, c *call, payload []byte) (any, error) {
	row, err := commands.Find(c.Command)
	if err != nil {
		return nil, err
	}
	c.row = row
	if err := p.authorize(c); err != nil {
		return nil, err
	}
	if c.req, err = commands.DecodeRequest(payload); err != nil {
		return nil, err
	}
	if row.Kind == commands.Write && !row.Keyed && c.req.ID == "" {
		return nil, fault.New(fault.BadRequest, "id: a write needs the id of its request").WithDetail(commands.DetailField, "field", "id")
	}
	if appends(row) && !slices.Contains(ending, row.Name) {
		if err := p.takesWork(); err != nil {
			return nil, err
		}
	}
	if c.req.DryRun && !appends(row) {
		return nil, fault.New(fault.BadRequest, "dryRun: %s appends nothing anyway", row.Name)
	}
	timeout := row.Timeout
	if c.req.TimeoutMs > 0 {
		timeout = time.Duration(c.req.TimeoutMs) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if c.req.MinSequence > 0 && row.Kind == commands.Read {
		if err := p.Views.WaitFor(ctx, c.req.MinSequence); err != nil {
			return nil, err
		}
	}
	return handlers[row.Name](p, ctx, c)
}

// appends says that a command changes the log.
func appends(row *commands.Contract) bool {
	return row.Kind != commands.Read && row.Kind != commands.Effect
}

// authorize is what open mode allows: the owner local, and its own things.
func (p *Plane) authorize(c *call) error {
	switch {
	case !slices.Contains(c.row.Modes, c.Mode):
		return fault.New(fault.BadRequest, "%s can't be asked in mode %s: its modes are %v", c.Command, c.Mode, c.row.Modes)
	case c.Caller.Owner != LocalOwner:
		return fault.New(fault.PermissionDenied, "owner %s may not ask: in open mode there is one owner, %s", c.Caller.Owner, LocalOwner)
	case c.Owner != "" && c.Owner != c.Caller.Owner:
		return fault.New(fault.PermissionDenied, "%s may not ask for %s of owner %s", c.Caller.Owner, c.Command, c.Owner)
	case c.Target != commands.Any && c.Target != string(p.Self.Instance):
		return fault.New(fault.FailedPrecondition, "instance %s was asked, and this is %s", c.Target, p.Self.Instance).
			WithDetail(commands.DetailBindRefused, "boundTo", c.Target, "servedBy", string(p.Self.Instance))
	}
	return nil
}

// refuse makes an answer of an error: one of ours as it is, anything else
// unavailable and unknown (E13), its text scrubbed. A read executes nothing,
// whatever happened to it (decision 22).
func (p *Plane) refuse(c *call, err error) commands.Reply {
	e := *fault.From(err)
	e.Message, e.Hint = scrub(e.Message), scrub(e.Hint)
	e.Details = slices.Clone(e.Details)
	for i, d := range e.Details {
		facts := map[string]string{}
		for k, v := range d.Facts {
			facts[k] = scrub(v)
		}
		e.Details[i].Facts = facts
	}
	if e.Outcome == "" || (c.row != nil && c.row.Kind == commands.Read) || (c.req.DryRun && e.Outcome == fault.Unknown) {
		e.Outcome = outcomeOf(c, e)
	}
	if e.ID == "" {
		e.ID = p.IDs.UUID()
	}
	p.Logger.Info("refused", "command", c.Command, "code", e.Code, "outcome", e.Outcome, "error", e.Message, "id", e.ID)
	return commands.Reply{Error: &e}
}

func outcomeOf(c *call, e fault.Error) fault.Outcome {
	if c.row != nil && c.row.Kind == commands.Read || c.req.DryRun {
		return fault.NotExecuted
	}
	return fault.RowOf(e.Code).Outcome
}

func scrub(s string) string {
	if s == "" {
		return ""
	}
	return events.Scrub(s)
}

// checkTrace keeps a W3C traceparent and nothing else.
func checkTrace(s string) string {
	if len(s) != 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return ""
	}
	for i, r := range s {
		if i != 2 && i != 35 && i != 52 && (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return ""
		}
	}
	return s
}

// meta is that of one commit of a request.
func (p *Plane) meta(c *call, id events.CommandID, fingerprint string, op events.OperationID) events.Meta {
	return events.Meta{
		ID: events.EventID(p.IDs.UUID()), Time: events.MillisUTC(p.Now()), Caller: c.Caller, Writer: p.Self,
		Command: id, Fingerprint: fingerprint, Operation: op, Trace: c.trace,
	}
}
