package sagas

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/eventlog"
	"berth/internal/handoff"
	"berth/providers"
)

// Defaults and bounds of an engine.
const (
	DefaultWorkers     = 8
	DefaultPerProvider = 64               // calls to one provider at a time
	DefaultPoll        = 60 * time.Second // between looks at what nobody watches
	adoptSpacing       = 5 * time.Millisecond
)

// Hook is called around everything that can't be taken back, with a name such
// as append:provision:before or call:reserve:after. An error says that the
// process died there: the engine does nothing any more. It is how crashes are
// tried out at every point.
type Hook func(point string) error

// Options is what an engine works with. Log, Shelf, Drivers, Self, IDs, Now,
// Jitter, MaterialDir and ExportsDir must be set.
type Options struct {
	Log     eventlog.Log
	Shelf   *Shelf
	Drivers *providers.Registry
	Self    events.Writer
	Caller  events.Caller // in whose name steps are appended
	IDs     events.IDs
	// Now must not follow jumps of the wall clock: see internal/steady (scenario 38).
	Now    func() time.Time
	Jitter func() float64 // in [0, 1)
	// MaterialDir holds the credentials of lives that have not ended, one
	// directory of mode 0700 each; ExportsDir the files that were accepted, each
	// named by its operation id.
	MaterialDir, ExportsDir string
	// TranscriptsDir holds the transcripts that claims were given on, each named
	// by its claim; only plans that resume one read it.
	TranscriptsDir string
	// Bearers are the sources of bearers by provider: the one of the provider
	// that a life is at is bound with its credential (R45). Without one there is none.
	Bearers     map[string]events.BearerSource
	Workers     int           // decisions at a time
	PerProvider int           // calls to one provider at a time
	Poll        time.Duration // between looks at what no Watcher watches
	Logger      *slog.Logger
	// CheckEpoch refuses when this epoch is no longer known to be current; it
	// is asked before every intent (decision 1). Nil: never refuses.
	CheckEpoch func(ctx context.Context) error
	// Continue takes an accepted goal further whose effect is not on its seat
	// yet: a crash came between the two commits of its acceptance (decision 2).
	// One of which Unclaimed is true it ends as expired, so that no claim can
	// come any more. It must be idempotent. Nil: nobody claims, and the engine
	// expires such a goal itself.
	Continue func(ctx context.Context, b events.Boundary, g goal.State) error
	// About lists the goals that are not ended and about a seat, whoever
	// accepted them; it is asked when a seat comes from another instance. Nil:
	// only those are taken over that the seat itself names.
	About func(seat events.Boundary) []events.Boundary
	// Delegation is what the hand-offs of delegated seats have in common; nil:
	// none can start.
	Delegation *handoff.Profile
	Hook       Hook
}

// Engine runs the sagas of the seats that one instance holds. It has no
// goroutine for a seat that rests: an entry in a map and in a heap of wake
// times is all.
type Engine struct {
	o Options

	mu      sync.Mutex
	changed *sync.Cond // something to do, or nothing left in flight
	entries map[events.Boundary]*entry
	about   map[events.Boundary][]events.Boundary // seat to its open goals
	lanes   map[string]*lane
	// environments finds the entry that a provider speaks of.
	environments map[events.EnvironmentID]*entry
	queue        []*entry
	timers       wakes
	alarm        chan struct{} // the earliest wake time changed
	busy         int
	inFlight     int
	draining     bool
	dead         bool

	calls  context.Context // every call's context comes from it
	cancel context.CancelFunc
	wg     sync.WaitGroup
	hosts  sync.Map // provider name to hostFacts
}

var errDead = errors.New("sagas: the engine has stopped")

// NewEngine makes an engine that does nothing until Run.
func NewEngine(o Options) *Engine {
	if o.Workers <= 0 {
		o.Workers = DefaultWorkers
	}
	if o.PerProvider <= 0 {
		o.PerProvider = DefaultPerProvider
	}
	if o.Poll <= 0 {
		o.Poll = DefaultPoll
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Engine{o: o, entries: map[events.Boundary]*entry{}, about: map[events.Boundary][]events.Boundary{}, lanes: map[string]*lane{},
		environments: map[events.EnvironmentID]*entry{}, alarm: make(chan struct{}, 1)}
	e.changed = sync.NewCond(&e.mu)
	e.calls, e.cancel = context.WithCancel(context.Background())
	return e
}

// Start takes up the seats that this instance held before: what is unfinished
// goes on, and what runs is looked at again (adopted), spread out so that many
// are not a herd. Seats of other instances are ignored. Goals that are not
// terminal and written-off environments follow by Resume.
func (e *Engine) Start(_ context.Context, seats []aggregates.Seat) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.o.Now()
	spread := min(time.Duration(len(seats))*adoptSpacing, e.o.Poll)
	for _, s := range seats {
		if !s.Slot.Held() || s.Slot.Holder != e.o.Self.Instance {
			continue
		}
		ent := e.entry(s.Boundary())
		ent.observe, ent.adopt = true, true
		e.remember(ent, s)
		if unfinished(s) {
			e.enqueue(ent)
			continue
		}
		e.wakeAt(ent, now.Add(time.Duration(e.o.Jitter()*float64(spread))))
	}
}

func unfinished(s aggregates.Seat) bool {
	_, file := exported(&s.Environment)
	return s.Slot.Phase != slot.Active || s.Environment.Operation != nil || len(s.Environment.Queue) > 0 || file
}

// Resume takes up a boundary from before this process: a goal that is not
// terminal (or uncertain without a settlement), a written-off environment, or
// a seat. What turns out not to be this instance's is dropped again.
func (e *Engine) Resume(b events.Boundary) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ent := e.entry(b)
	ent.resume = true
	e.enqueue(ent)
}

// Poke asks the engine to look at a boundary now, if it works on it: a hint of
// who has just committed there. The record reaches it by Absorb too, but on the
// way of all readers of the log.
func (e *Engine) Poke(b events.Boundary) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ent := e.entries[b]; ent != nil {
		e.enqueue(ent)
	}
}

// Absorb takes in one durable record, in the order of the log: the shelf is
// kept fresh, and whoever it concerns is asked again. It does not block.
func (e *Engine) Absorb(r events.Record) {
	e.o.Shelf.Absorb(&r)
	e.mu.Lock()
	defer e.mu.Unlock()
	ent := e.entries[r.Boundary]
	if ent == nil {
		if !e.mine(r) {
			e.touch(r.Boundary) // a goal of ours may be about a seat of somebody else
			return
		}
		ent = e.entry(r.Boundary)
		if moved(r) {
			// Nobody here has looked at it, and its goals are another's.
			ent.observe, ent.adopt, ent.inherits = true, true, true
		}
	}
	if ent.kind == events.KindGoal {
		e.absorbGoal(ent, r)
	}
	if r.Sequence > ent.decided {
		e.enqueue(ent)
		e.touch(r.Boundary)
	}
}

// mine says that the record gives its boundary to this instance.
func (e *Engine) mine(r events.Record) bool {
	for _, ev := range r.Events {
		var holder events.InstanceID
		switch ev := ev.(type) {
		case events.SlotClaimed:
			holder = ev.Holder
		case events.SlotTakenOver:
			holder = ev.Holder
		case events.EnvironmentInherited:
			holder = ev.Holder
		case events.GoalAccepted:
			holder = ev.Holder
		case events.GoalClaimed:
			holder = ev.Instance
		}
		if holder != "" && holder == e.o.Self.Instance {
			return true
		}
	}
	return false
}

// moved says that the record gives a seat to another instance or epoch.
func moved(r events.Record) bool {
	return slices.ContainsFunc(r.Events, func(ev events.Event) bool { _, ok := ev.(events.SlotTakenOver); return ok })
}

// Stats is what the engine is busy with.
type Stats struct {
	Seats     int // held by this instance
	Goals     int // not ended
	Open      int // seats with an operation whose end is not recorded
	Uncertain int // of those, how many lost their answer
	Stuck     int // of those, how many outlasted their patience
	InFlight  int // calls to providers
	Queued    int // boundaries that wait for a decision
	Failing   int // boundaries whose last decision could not be recorded
}

// Stats counts.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Stats{InFlight: e.inFlight, Queued: len(e.queue)}
	for _, ent := range e.entries {
		if ent.kind == events.KindGoal {
			s.Goals++
		} else {
			s.Seats++
		}
		s.Open += one(ent.open)
		s.Uncertain += one(ent.uncertain)
		s.Stuck += one(ent.stuck)
		s.Failing += one(ent.failures > 0)
	}
	return s
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Idle says that nothing is being decided or called; timers may be set.
func (e *Engine) Idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.queue) == 0 && e.busy == 0 && e.inFlight == 0
}
