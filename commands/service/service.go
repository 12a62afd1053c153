package service

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"berth/commands"
	"berth/events"
	"berth/events/fault"
)

// Limits of the binding.
const (
	// DefaultHandlers is how many requests are handled at once.
	DefaultHandlers = 256
	// DefaultWaiting is how many requests that wait for something (`wait`, and
	// `events` or `logs` that follow) are handled at once; they have their own
	// bound, so that people who watch can't keep others from acting.
	DefaultWaiting = 512
	// MaxPending is how many requests of one endpoint the client library keeps
	// before it drops them, and MaxPendingBytes how many bytes.
	MaxPending      = 4096
	MaxPendingBytes = 32 << 20
	// DrainFor is how long Stop waits for handlers.
	DrainFor = 10 * time.Second

	queueGroup  = "berth"
	serviceName = "berth"
)

// Handler answers one request; plane.Plane is one.
type Handler interface {
	Handle(ctx context.Context, a commands.Address, payload []byte, trace string) commands.Reply
}

// Options is what the binding works with.
type Options struct {
	Conn     *nats.Conn
	Space    events.Space
	Instance events.InstanceID
	Version  string
	Handler  Handler
	// Inboxes are the prefixes that a reply subject may have. Empty: the
	// default inbox of NATS clients. It must never cover a subject that means
	// something: a client could make the manager publish there.
	Inboxes []string
	// Alone are commands that only this instance's own address serves: what
	// any instance may be asked goes to the others.
	Alone    []string
	Handlers int
	Waiting  int
	Logger   *slog.Logger
}

// Service is a bound plane.
type Service struct {
	o Options
	// What is subscribed: written by Start alone, read by everybody else after
	// it. Discovery is subscribed last.
	endpoints []*endpoint
	subs      []*nats.Subscription
	ctx       context.Context // of handlers
	cancel    context.CancelFunc
	patient   context.Context // of handlers that only wait: it ends first
	hurry     context.CancelFunc
	acting    chan struct{}
	waiting   chan struct{}
	jobs      chan func()   // to a worker that has nothing to do
	quit      chan struct{} // closed when idle workers must end
	running   sync.WaitGroup
	mu        sync.Mutex
	stopped   bool
	counts    counts
}

type counts struct{ handled, refused, busy, misdirected atomic.Uint64 }

// Start subscribes every command. The caller ends it with Stop.
func Start(o Options) (*Service, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if len(o.Inboxes) == 0 {
		o.Inboxes = []string{nats.InboxPrefix}
	}
	s := &Service{o: o, acting: make(chan struct{}, size(o.Handlers, DefaultHandlers)), waiting: make(chan struct{}, size(o.Waiting, DefaultWaiting))}
	s.jobs, s.quit = make(chan func()), make(chan struct{})
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.patient, s.hurry = context.WithCancel(s.ctx)
	for _, c := range commands.Table {
		for _, target := range []string{commands.Any, string(o.Instance)} {
			if target == commands.Any && slices.Contains(o.Alone, c.Name) {
				continue
			}
			if err := s.serve(c, target); err != nil {
				s.Stop()
				return nil, fault.New(fault.Unavailable, "command %s can't be served: %s", c.Name, err)
			}
		}
	}
	if err := s.discover(); err != nil {
		s.Stop()
		return nil, fault.New(fault.Unavailable, "the commands can't be discovered: %s", err)
	}
	// What was subscribed is known to the server before Start returns, so that
	// a client that is told of this manager finds it.
	if err := o.Conn.FlushTimeout(DrainFor); err != nil {
		s.Stop()
		return nil, fault.New(fault.Unavailable, "the commands can't be served: %s", err)
	}
	return s, nil
}

func size(n, d int) int {
	if n <= 0 {
		return d
	}
	return n
}

// semver is the version as micro wants it.
func semver(v string) string {
	v = strings.TrimPrefix(v, "v")
	if p := strings.SplitN(v, ".", 3); len(p) == 3 {
		if _, err := strconv.Atoi(p[0]); err == nil {
			return v
		}
	}
	return "0.0.0"
}

// serve subscribes one command for one target: any instance by queue group,
// this instance alone without one.
func (s *Service) serve(c *commands.Contract, target string) error {
	e := &endpoint{info: micro.EndpointInfo{
		Name: c.Name + "-any", Subject: commands.Prefix(s.o.Space) + target + "." + c.Name + ".*.*.*.*.*", QueueGroup: queueGroup,
		Metadata: map[string]string{"kind": string(c.Kind), "capability": string(c.Capability)},
	}}
	if target != commands.Any {
		e.info.Name, e.info.QueueGroup = c.Name+"-instance", ""
	}
	sub, err := s.o.Conn.QueueSubscribe(e.info.Subject, e.info.QueueGroup, func(m *nats.Msg) {
		e.requests.Add(1)
		s.receive(m)
	})
	if err != nil {
		return err
	}
	s.subs = append(s.subs, sub)
	s.endpoints = append(s.endpoints, e)
	return sub.SetPendingLimits(MaxPending, MaxPendingBytes)
}

// receive takes one request in. It runs on the goroutine of a subscription and
// never blocks it.
func (s *Service) receive(m *nats.Msg) {
	to, payload, trace := m.Reply, m.Data, m.Header.Get(commands.HeaderTrace)
	if !s.inbox(to) {
		// Nothing is published where nobody waits for a reply, and nothing is
		// done that nobody can be told of.
		s.misdirected()
		return
	}
	a, err := commands.ParseAddress(s.o.Space, m.Subject)
	if err != nil {
		s.reply(to, refusal(fault.From(err)))
		return
	}
	slots, ctx := s.acting, s.ctx
	doing := "handles"
	if waits(a.Command, payload) {
		slots, ctx, doing = s.waiting, s.patient, "keeps waiting"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		s.reply(to, refusal(fault.New(fault.Unavailable, "this manager is stopping").WithOutcome(fault.NotExecuted)))
		return
	}
	select {
	case slots <- struct{}{}:
	default:
		s.counts.busy.Add(1)
		s.reply(to, refusal(fault.New(fault.ResourceExhausted, "the manager %s %d requests at once, which is the limit; try again", doing, cap(slots))))
		return
	}
	s.run(func() {
		defer func() { <-slots }()
		s.reply(to, s.o.Handler.Handle(ctx, a, payload, trace))
	})
}

func (s *Service) misdirected() {
	s.counts.misdirected.Add(1)
	s.o.Logger.Warn("a request was dropped: its reply subject is not an inbox")
}

// idleFor is how long a worker waits for its next request.
const idleFor = 10 * time.Second

// run hands a request to a worker that is idle, else to a new one: a worker
// keeps the stack that its requests need, which a fresh goroutine would have
// to grow again each time. How many there are is bounded by the slots.
func (s *Service) run(job func()) {
	select {
	case s.jobs <- job:
		return
	default:
	}
	s.running.Go(func() {
		t := time.NewTimer(idleFor)
		defer t.Stop()
		for {
			job()
			t.Reset(idleFor)
			select {
			case job = <-s.jobs:
			case <-t.C:
				return
			case <-s.quit:
				return
			}
		}
	})
}

// waits says that a request only waits for something to happen. A page of the
// log or of a seat's output waits if it says so; one that does not is a plain
// read, which people who watch can't keep from being answered.
func waits(command string, payload []byte) bool {
	switch command {
	case "wait":
		return true
	case "events", "logs":
		var r struct {
			Input struct {
				Wait string `json:"wait"`
			} `json:"input"`
		}
		return json.Unmarshal(payload, &r) != nil || r.Input.Wait != ""
	}
	return false
}

func refusal(e *fault.Error) commands.Reply { return commands.Reply{Error: e} }

// inbox says that a subject is one where a client waits: below an inbox
// prefix, literal, and of a sane length. A subject of the log, of JetStream or
// of a command is none, so that no client can write there by our hand.
func (s *Service) inbox(subject string) bool {
	if len(subject) > events.MaxSubject || strings.ContainsAny(subject, "*> \t\r\n") || strings.HasSuffix(subject, ".") || strings.Contains(subject, "..") {
		return false
	}
	if strings.HasPrefix(subject, "$") || strings.HasPrefix(subject, "berth.") {
		return false
	}
	for _, p := range s.o.Inboxes {
		if rest, ok := strings.CutPrefix(subject, strings.TrimSuffix(p, ".")+"."); ok && rest != "" {
			return true
		}
	}
	return false
}

func (s *Service) reply(to string, r commands.Reply) {
	s.counts.handled.Add(1)
	m := nats.NewMsg(to)
	if r.Error != nil {
		s.counts.refused.Add(1)
		m.Header.Set(commands.HeaderErrorCode, strconv.Itoa(fault.RowOf(r.Error.Code).HTTP))
		m.Header.Set(commands.HeaderError, string(r.Error.Code))
	}
	body, err := encode(r)
	if err != nil {
		s.o.Logger.Error("a reply can't be written as JSON", "error", events.Scrub(err.Error()))
		return // the client reads silence as unknown (E8), which is true
	}
	m.Data = body
	if err := s.o.Conn.PublishMsg(m); err != nil {
		s.o.Logger.Warn("a reply could not be sent", "error", events.Scrub(err.Error()))
	}
}

// encode writes a reply. The result is JSON already, and is not read again.
func encode(r commands.Reply) ([]byte, error) {
	if !r.OK || r.WouldAppend != nil || len(r.Result) == 0 {
		return json.Marshal(r)
	}
	b := make([]byte, 0, len(r.Result)+len(`{"ok":true,"result":}`))
	b = append(b, `{"ok":true,"result":`...)
	return append(append(b, r.Result...), '}'), nil
}

// Counts is how many requests were handled, refused, turned away because too
// many were handled, and dropped because of their reply subject.
func (s *Service) Counts() map[string]uint64 {
	return map[string]uint64{"handled": s.counts.handled.Load(), "refused": s.counts.refused.Load(), "busy": s.counts.busy.Load(), "misdirected": s.counts.misdirected.Load()}
}

// Stop takes no more requests, waits up to DrainFor for those that are being
// handled, then ends them. What they committed is committed; a client that
// gets no answer knows that it does not know (E8).
func (s *Service) Stop() {
	s.mu.Lock()
	if !s.stopped {
		s.stopped = true
		close(s.quit)
	}
	s.mu.Unlock()
	for _, sub := range s.subs {
		// Stop may be called twice, and on a connection that is lost.
		if err := sub.Drain(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrBadSubscription) {
			s.o.Logger.Warn("a command endpoint did not stop cleanly", "error", events.Scrub(err.Error()))
		}
	}
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	s.hurry() // what only waits would hold the stop up for as long as it may
	t := time.NewTimer(DrainFor)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
	s.cancel()
	<-done
	_ = s.o.Conn.FlushTimeout(time.Second) // the last replies leave; a lost connection can't be helped
}
