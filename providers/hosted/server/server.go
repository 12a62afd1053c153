package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
	"berth/internal/ids"
	"berth/providers"
)

// DefaultConcurrent is how many calls to the driver run at once;
// DefaultStreams is how many files and logs are read at once.
const (
	DefaultConcurrent = 32
	DefaultStreams    = 64
	// adopting is how many environments are taken up at once after a start.
	adopting = 4
	adoptFor = 30 * time.Second
)

// Config says what is served, and how.
type Config struct {
	// Driver is what is behind the protocol. It stays the caller's to close,
	// after the server was closed.
	Driver providers.Driver
	// Log is where operations are journaled, each environment's on a boundary
	// of its own. It stays the caller's to close, after the server was closed.
	Log eventlog.Log
	// Writer is who appends to the log, and its epoch; Caller stands in the
	// records, because nothing tells managers apart.
	Writer events.Writer
	Caller events.Caller
	// BearerFile holds a bearer that every request has to show; empty asks for
	// none, and clients are told by their certificates.
	BearerFile string
	// Admit refuses new work while the host can't take it (a nearly full disk);
	// nil admits. What ends something is never refused by it.
	Admit func() error
	// Clock is the wall clock; nil is the system's.
	Clock func() time.Time
	// Concurrent and Streams override the defaults.
	Concurrent, Streams int
	// Logger takes what goes wrong; nil throws it away.
	Logger *slog.Logger
}

// Server is one served driver. It is an http.Handler; Serve adds the listener.
type Server struct {
	driver   providers.Driver // guarded
	clock    func() time.Time
	admits   func() error
	logger   *slog.Logger
	journal  *journal
	bearer   *[sha256.Size]byte
	mux      http.Handler
	hub      *hub
	ends     *ends
	terminal providers.Terminal // guarded; nil if the driver has none
	base     context.Context    // of calls: it ends with the server, not with a request
	cancel   context.CancelFunc
	closing  sync.Mutex // guards closed, and calls against counting after Close
	closed   bool
	calls    sync.WaitGroup
	turns    chan struct{}
	streams  chan struct{}
}

// New takes up what lives: environments that are bound to this host are
// adopted in the background. Without a log it is refused with bad-request.
func New(c Config) (*Server, error) {
	s := &Server{
		driver: providers.Guard(c.Driver), clock: c.Clock, logger: c.Logger, hub: newHub(),
		turns: make(chan struct{}, cmp.Or(c.Concurrent, DefaultConcurrent)), streams: make(chan struct{}, cmp.Or(c.Streams, DefaultStreams)),
	}
	if s.admits = c.Admit; s.admits == nil {
		s.admits = func() error { return nil }
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if c.BearerFile != "" {
		hash, err := readBearer(c.BearerFile)
		if err != nil {
			return nil, err
		}
		s.bearer = &hash
	}
	if c.Log == nil {
		return nil, fault.New(fault.BadRequest, "a served provider needs a log for its journal")
	}
	random := ids.New()
	s.ends = newEnds(s)
	s.journal = openJournal(c.Log, func(op events.OperationID) events.Meta {
		return events.Meta{ID: events.EventID(random.UUID()), Time: events.MillisUTC(s.clock()), Caller: c.Caller, Writer: c.Writer, Operation: op}
	}, s.ends.note)
	var err error
	if s.terminal, err = terminalOf(c.Driver); err != nil {
		return nil, err
	}
	s.mux = s.routes()
	s.base, s.cancel = context.WithCancel(context.Background())
	if w, ok := providers.Raw(c.Driver).(providers.Watcher); ok {
		s.calls.Add(1)
		go s.watch(w)
	}
	a, _ := providers.Raw(c.Driver).(providers.Adopter)
	s.calls.Add(2)
	go s.ends.run()
	go s.takeUp(a)
	return s, nil
}

// Close ends the calls that run; environments go on. The log may be closed then.
// What has no answer yet is found out after the next start.
func (s *Server) Close() error {
	s.closing.Lock()
	s.closed = true
	s.closing.Unlock()
	s.cancel()
	s.calls.Wait()
	s.journal.close()
	return nil
}

// begin counts something that Close has to wait for; false after Close.
func (s *Server) begin() bool {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return false
	}
	s.calls.Add(1)
	return true
}

func stopping() *fault.Error { return fault.New(fault.Unavailable, "the provider is stopping") }

// turn waits for one of the places of concurrent calls; false if ctx ended.
func (s *Server) turn(ctx context.Context) bool {
	select {
	case s.turns <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Server) leave() { <-s.turns }

func busy(s *Server) *fault.Error {
	return fault.New(fault.ResourceExhausted, "the provider runs %d calls and had no turn for this one in time", cap(s.turns))
}

// watch has the driver tell of changes for as long as the server lives.
func (s *Server) watch(w providers.Watcher) {
	defer s.calls.Done()
	for s.base.Err() == nil {
		err := watching(s.base, w, s.hub.changed)
		if s.base.Err() != nil {
			return
		}
		s.logger.Warn("watching the driver ended; trying again", "error", err)
		select {
		case <-s.base.Done():
		case <-time.After(time.Second):
		}
		s.hub.reset() // what changed meanwhile is not known
	}
}

func watching(ctx context.Context, w providers.Watcher, fn func(events.EnvironmentID)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Internal, "the driver panicked in watch")
		}
	}()
	return w.Watch(ctx, fn)
}

// takeUp takes up what the journal says is alive: its deadlines, and, with a
// driver that adopts, each environment by its proved identity. A journal that
// can't be read to its end is read again until it can: what was read is taken up
// at once, and what was not would otherwise have no end.
func (s *Server) takeUp(a providers.Adopter) {
	defer s.calls.Done()
	adopted := map[events.EnvironmentID]string{} // by which reference
	for pause := lookAgain; ; pause = min(2*pause, lookSlowly) {
		living, err := s.journal.living(s.base)
		for id, at := range living {
			s.ends.found(id, at)
		}
		if a != nil {
			s.adopt(a, living, adopted)
		}
		if err == nil || s.base.Err() != nil {
			return
		}
		s.logger.Error("the journal can't be read to its end; what was read is taken up, and it is read again", "again", pause, "error", err)
		select {
		case <-s.base.Done():
			return
		case <-time.After(pause):
		}
	}
}

// adopt takes up the environments that were not adopted by the same reference.
func (s *Server) adopt(a providers.Adopter, living map[events.EnvironmentID]standing, adopted map[events.EnvironmentID]string) {
	turns := make(chan struct{}, adopting)
	var wg sync.WaitGroup
	for id, at := range living {
		if at.ref == "" || adopted[id] == at.ref {
			continue
		}
		adopted[id] = at.ref
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			s.adoptOne(a, id, at)
		})
	}
	wg.Wait()
}

// notAdopted tells of an environment that is not as the journal has it. Where a
// crash cut an operation off that is to be expected, and no alarm: a restore has
// put another process there, and its reconciliation will say so.
func (s *Server) notAdopted(id events.EnvironmentID, at standing, err error) {
	if at.open != "" {
		s.logger.Info("an environment is taken up when the operation that a crash cut off is reconciled", "environment", id, "operation", at.open, "found", err)
		return
	}
	s.logger.Warn("an environment could not be taken up; `berth inspect` at its manager shows what is seen of it", "environment", id, "error", err)
}

func (s *Server) adoptOne(a providers.Adopter, id events.EnvironmentID, at standing) {
	defer func() {
		if p := recover(); p != nil {
			s.logger.Error("the driver panicked in adopt", "environment", id)
		}
	}()
	if s.base.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.base, adoptFor)
	defer cancel()
	if _, err := a.Adopt(ctx, id, at.ref, at.custody); err != nil {
		s.notAdopted(id, at, err)
	}
	s.hub.changed(id) // it may have ended while nobody looked
}
