package attach

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"berth/aggregates"
	"berth/commands"
	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
	"berth/providers"
	"berth/terminal"
)

// Limits of a server.
const (
	// MaxSessions is how many sessions one manager holds at a time, and
	// MaxPerSeat how many of one seat: its holder's connections are bounded.
	MaxSessions = 256
	MaxPerSeat  = 32
	// redeeming is how many redemptions are handled at once.
	redeeming = 32
	// redeemFor bounds one redemption.
	redeemFor = 15 * time.Second
	stopFor   = 5 * time.Second
)

// Shelf reads seats; sagas.Shelf is one.
type Shelf interface {
	Seat(ctx context.Context, owner events.Owner, alias events.Alias) (aggregates.Seat, error)
}

// Providers finds drivers by name; providers.Registry is one.
type Providers interface {
	Get(name string) (providers.Entry, error)
}

// Options is what a server works with. Everything is required but the logger.
type Options struct {
	Conn      *nats.Conn
	Space     events.Space
	Self      events.Writer
	Key       nkeys.KeyPair // of the instance: what it signed is redeemed
	Log       eventlog.Log
	Shelf     Shelf
	Providers Providers
	IDs       events.IDs
	Now       func() time.Time
	Caller    events.Caller // of the commits
	Logger    *slog.Logger
}

// Server holds the sessions of one manager.
type Server struct {
	Options
	issuer string
	subs   []*nats.Subscription
	slots  chan struct{}
	busy   sync.WaitGroup

	mu       sync.Mutex
	stopped  bool
	sessions map[string]*session
	seats    map[events.EnvironmentID]*seat
}

// seat is the sessions of one environment, in the order of their arrival.
type seat struct {
	all    []*session
	writer *session // nil: nobody may write
}

// Start begins to let offers be redeemed. The caller ends it with Stop.
func Start(o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{Options: o, slots: make(chan struct{}, redeeming), sessions: map[string]*session{}, seats: map[events.EnvironmentID]*seat{}}
	var err error
	if s.issuer, err = o.Key.PublicKey(); err != nil {
		return nil, fault.New(fault.Internal, "the instance's key: %s", err)
	}
	for end, f := range map[string]nats.MsgHandler{terminal.Redeem: s.onRedeem, terminal.In: s.onFrame} {
		sub, err := o.Conn.Subscribe(terminal.Subject(o.Space, string(o.Self.Instance), "*", end), f)
		if err == nil {
			err = sub.SetPendingLimits(64<<10, 64<<20)
		}
		if err != nil {
			s.Stop()
			return nil, fault.New(fault.Unavailable, "terminal sessions can't be served: %s", err)
		}
		s.subs = append(s.subs, sub)
	}
	return s, nil
}

// Stop ends every session: its holder is told to ask again.
func (s *Server) Stop() {
	s.mu.Lock()
	s.stopped = true
	open := make([]*session, 0, len(s.sessions))
	for _, x := range s.sessions {
		open = append(open, x)
	}
	s.mu.Unlock()
	for _, sub := range s.subs {
		_ = sub.Unsubscribe()
	}
	for _, x := range open {
		x.end(terminal.EndRestart, "the manager stops")
	}
	done := make(chan struct{})
	go func() { s.busy.Wait(); close(done) }()
	t := time.NewTimer(stopFor)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
	_ = s.Conn.FlushTimeout(time.Second)
}

// id is the session of a subject of this server.
func id(subject string) string {
	p := strings.Split(subject, ".")
	return p[len(p)-2]
}

func (s *Server) onRedeem(m *nats.Msg) {
	select {
	case s.slots <- struct{}{}:
	default:
		s.answer(m, fault.New(fault.ResourceExhausted, "too many sessions are begun at once; try again"))
		return
	}
	s.mu.Lock()
	stopped := s.stopped
	if !stopped {
		s.busy.Add(1)
	}
	s.mu.Unlock()
	if stopped {
		<-s.slots
		s.answer(m, stopping())
		return
	}
	go func() {
		defer s.busy.Done()
		ctx, cancel := context.WithTimeout(context.Background(), redeemFor)
		x, err := s.redeem(ctx, m.Data, id(m.Subject))
		cancel()
		s.answer(m, err)
		<-s.slots
		if err == nil {
			x.run()
		}
	}()
}

func stopping() error {
	return fault.New(fault.Unavailable, "this manager is stopping").WithOutcome(fault.NotExecuted)
}

func (s *Server) answer(m *nats.Msg, err error) {
	r := commands.Reply{OK: err == nil}
	if err != nil {
		r.Error = fault.From(err)
	}
	if b, merr := json.Marshal(r); merr == nil && strings.HasPrefix(m.Reply, nats.InboxPrefix) {
		_ = s.Conn.Publish(m.Reply, b)
	}
}

// redeem uses an offer up and begins its session. Whatever is checked before
// the commit is a courtesy; the commit alone is the fence (law 3).
func (s *Server) redeem(ctx context.Context, body []byte, name string) (*session, error) {
	var r terminal.Redemption
	if len(body) > terminal.MaxOffer || json.Unmarshal(body, &r) != nil {
		return nil, fault.New(fault.BadRequest, "not a redemption of a session offer").WithOutcome(fault.NotExecuted)
	}
	o := r.Offer
	if err := o.Check(s.issuer); err != nil {
		return nil, err
	}
	if err := r.CheckProof(); err != nil {
		return nil, err
	}
	expired := func(why string) (*session, error) {
		return nil, fault.New(fault.Expired, "the session offer is refused: %s", why).WithOutcome(fault.NotExecuted).WithHint("attach again")
	}
	now := s.Now().UnixMilli()
	switch {
	case o.Session != name || o.Space != s.Space || o.Instance != s.Self.Instance:
		return nil, fault.New(fault.PermissionDenied, "the session offer is for somewhere else").WithOutcome(fault.NotExecuted)
	case o.Epoch != s.Self.Epoch:
		return expired("the manager was restarted since")
	case now > o.RedeemBy || now > o.Expires:
		return expired("its time is over")
	}
	at, t, err := s.target(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.use(ctx, o); err != nil {
		return nil, err
	}
	return s.begin(r, at, t)
}

// target is the seat that the offer was made for, if it is still the same.
func (s *Server) target(ctx context.Context, o terminal.Offer) (string, providers.Terminal, error) {
	st, err := s.Shelf.Seat(ctx, o.Owner, o.Name)
	if err != nil {
		return "", nil, fault.From(err).WithOutcome(fault.NotExecuted)
	}
	if !st.Slot.Held() || st.Slot.UID != o.UID || st.Environment.ID != o.Environment || st.Slot.Holder != s.Self.Instance {
		return "", nil, fault.New(fault.Expired, "%s is no longer the seat that the session was offered for", o.Name).WithOutcome(fault.NotExecuted)
	}
	e, err := s.Providers.Get(st.Environment.Plan.Provider)
	if err == nil && e.Terminal == nil {
		err = fault.New(fault.Unimplemented, "provider %s has no terminal", e.Name)
	}
	if err != nil {
		return "", nil, fault.From(err).WithOutcome(fault.NotExecuted)
	}
	return st.Environment.Ref, e.Terminal, nil
}

// use commits that the offer is used. Only the first commit on the boundary of
// the session is taken; every later one, of any manager at any time, loses.
func (s *Server) use(ctx context.Context, o terminal.Offer) error {
	_, err := s.Log.Commit(ctx, events.Commit{
		Boundary: events.SessionBoundary(o.Session),
		Meta:     events.Meta{ID: events.EventID(s.IDs.UUID()), Time: events.MillisUTC(s.Now()), Caller: o.Caller, Writer: s.Self},
		Events: []events.Event{events.SessionRedeemed{
			Session: o.Session, Owner: o.Owner, Name: o.Name, UID: o.UID, Environment: o.Environment, Holder: o.Holder,
			ServedBy: s.Self.Instance, ReadOnly: o.ReadOnly, Expires: time.UnixMilli(o.Expires).UTC(),
		}},
	})
	if fault.CodeOf(err) == fault.Conflict {
		return fault.New(fault.Conflict, "the session offer was redeemed already").WithOutcome(fault.NotExecuted).WithHint("attach again")
	}
	return err
}
