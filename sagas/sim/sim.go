package sim

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"berth/aggregates"
	"berth/events"
	"berth/events/eventlog/memory"
	"berth/internal/ids"
	"berth/providers/drill"
)

// Bounds of one history.
const (
	chaos    = 90 * time.Minute // in which things go wrong
	calm     = 48 * time.Hour   // in which they must come to rest
	maxSteps = 60_000
)

var (
	epochZero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	caller    = events.Caller{Owner: "local", Actor: "simulation", UID: "abcdefghijklmnopqrstuvwxyz"}
	self      = events.InstanceID("aaaaaaaaaaaaaaaaaaaaaaaaaa")
	names     = []events.Alias{"a", "b", "c"}
)

// Result is one history.
type Result struct {
	Seed    uint64
	Steps   int
	Spawns  int
	Crashes int
	Digest  [32]byte // of everything that is in the log and was called
	History []string
}

// sim is the world and its agenda.
type sim struct {
	rng     *rand.Rand
	now     time.Time
	log     *memory.Log
	machine *drill.Machine
	ids     events.IDs
	agenda  agenda
	n       int
	quiet   bool // nothing goes wrong any more
	current *manager
	all     []*manager
	goals   []events.Boundary
	folds   map[events.Boundary]aggregates.Seat
	result  Result
	broken  []string // laws that were broken
}

// Run plays the history of a seed and returns what broke, or nil.
func Run(seed uint64) (Result, error) {
	s := &sim{rng: rand.New(rand.NewPCG(seed, 0xbe47)), now: epochZero, log: memory.New(), folds: map[events.Boundary]aggregates.Seat{}}
	s.result.Seed = seed
	s.ids = ids.Seeded(seed, func() time.Time { return s.now })
	s.machine = drill.NewMachine(s.script())
	s.boot()
	for t := time.Duration(0); t < chaos; t += s.upTo(4 * time.Minute) {
		s.at(epochZero.Add(t), s.client)
	}
	for range s.rng.IntN(4) {
		s.at(epochZero.Add(s.upTo(chaos)), func() { s.fell("a crash") })
	}
	s.at(epochZero.Add(chaos), s.settle)
	end := epochZero.Add(chaos + calm)
	for len(s.agenda) > 0 && s.result.Steps < maxSteps && len(s.broken) == 0 {
		it := heap.Pop(&s.agenda).(item)
		if it.at.After(end) {
			break
		}
		if it.at.After(s.now) {
			s.now = it.at
		}
		s.result.Steps++
		it.do()
	}
	s.converged()
	s.result.Digest = sha256.Sum256([]byte(strings.Join(s.story(), "\n")))
	if len(s.broken) > 0 {
		return s.result, fmt.Errorf("seed %d: %s\n%s", seed, strings.Join(s.broken, "\n"), strings.Join(s.result.History, "\n"))
	}
	return s.result, nil
}

// script is one random misbehaviour for some of the calls.
func (s *sim) script() drill.Script {
	faults := []drill.Fault{drill.AcceptThenDrop, drill.AcceptThenLateAnswer, drill.ErrorAfterAccept, drill.NeverAnswer, drill.Refuse, drill.Throttle, drill.Stuck, drill.Vanish, drill.SwapIncarnation, drill.ClockOffset}
	var sc drill.Script
	for range 2 + s.rng.IntN(8) {
		r := drill.Rule{Verb: drill.Verbs[s.rng.IntN(len(drill.Verbs))], Fault: faults[s.rng.IntN(len(faults))], Nth: 1 + s.rng.IntN(4)}
		if r.Fault == drill.AcceptThenLateAnswer || s.rng.IntN(3) == 0 {
			r.DelayMs = 1 + s.rng.Int64N(600_000)
		}
		if r.Fault == drill.ClockOffset {
			r.DelayMs = s.rng.Int64N(120_000) - 60_000
		}
		if (drill.Script{Rules: []drill.Rule{r}}).Check() == nil {
			sc.Rules = append(sc.Rules, r)
		}
	}
	return sc
}

// settle is the end of the chaos: one healthy manager, a provider that keeps
// its word, and clients that want everything gone.
func (s *sim) settle() {
	s.say("calm")
	s.quiet = true
	s.machine.SetScript(drill.Script{})
	for _, m := range s.all {
		if m != s.current {
			m.dead = true
		}
	}
	if s.current == nil || s.current.dead {
		s.boot()
	}
	for i, n := range names {
		s.at(s.now.Add(time.Duration(1+i)*time.Minute), func() { s.retire(n) })
		s.at(s.now.Add(time.Duration(1+i)*3*time.Hour), func() { s.retire(n) })
	}
}

// boot registers the next epoch, with a clock that may have been set since.
func (s *sim) boot() {
	if s.current != nil && !s.current.dead && !s.current.stalled {
		return
	}
	m := &manager{s: s, seats: map[events.Boundary]*seat{}, goals: map[events.Boundary]*goalSeat{}}
	m.epoch = s.epoch() + 1
	if !s.quiet && s.rng.IntN(3) == 0 {
		m.offset = s.upTo(20*time.Minute) - 10*time.Minute
	}
	s.commit(events.InstanceBoundary(self), m.epoch, events.InstanceRegistered{Instance: self, Epoch: m.epoch, Version: "sim"})
	s.current, s.all = m, append(s.all, m)
	s.say("epoch %d begins, clock off by %s", m.epoch, m.offset)
	m.boot()
}

func (s *sim) epoch() uint64 {
	var last uint64
	for _, r := range s.load(events.InstanceBoundary(self)) {
		last = r.Meta.Writer.Epoch
	}
	return last
}

// fell ends the current manager: it dies, or it stalls and wakes up later as a
// stranger to what happened since.
func (s *sim) fell(why string) { s.falls(why, s.rng.IntN(4) == 0) }

func (s *sim) falls(why string, stalls bool) {
	m := s.current
	if s.quiet || m == nil || m.dead || m.stalled {
		return
	}
	s.result.Crashes++
	if stalls {
		m.stalled = true
		s.say("epoch %d stalls: %s", m.epoch, why)
		s.after(s.upTo(20*time.Minute), m.wakeUp)
	} else {
		m.dead = true
		s.say("epoch %d dies: %s", m.epoch, why)
	}
	s.after(s.upTo(2*time.Minute), s.boot)
}

// commit appends on whatever the boundary's last sequence is.
func (s *sim) commit(b events.Boundary, epoch uint64, es ...events.Event) {
	var last uint64
	for _, r := range s.load(b) {
		last = r.Sequence
	}
	c := events.Commit{Boundary: b, Expect: last, Meta: s.meta(epoch, s.now), Events: es}
	if _, err := s.log.Commit(context.Background(), c); err != nil {
		s.broke("a commit on %s: %v", b, err)
	}
	for _, e := range es {
		s.say("epoch %d %s %s", epoch, b, e.EventType())
	}
	s.notify(b)
}

func (s *sim) meta(epoch uint64, now time.Time) events.Meta {
	return events.Meta{ID: events.EventID(s.ids.UUID()), Time: events.MillisUTC(now), Caller: caller, Writer: events.Writer{Instance: self, Epoch: epoch}}
}

func (s *sim) load(b events.Boundary) []events.Record {
	rs, err := s.log.Load(context.Background(), b, 0)
	if err != nil {
		s.broke("%v", err)
	}
	return rs
}

// fold is the seat as the log has it.
func (s *sim) fold(b events.Boundary) aggregates.Seat {
	seat, ok := s.folds[b]
	if !ok {
		seat = aggregates.NewSeat(b)
	}
	rs, err := s.log.Load(context.Background(), b, seat.Sequence)
	if err != nil {
		s.broke("%v", err)
	}
	for _, r := range rs {
		seat = seat.Apply(r)
	}
	s.folds[b] = seat
	return seat
}

// notify lets every manager that follows the log hear of a boundary.
func (s *sim) notify(b events.Boundary) {
	for _, m := range s.all {
		if !m.dead {
			s.after(s.upTo(20*time.Millisecond), func() { m.heard(b) })
		}
	}
}

func (s *sim) upTo(d time.Duration) time.Duration { return 1 + time.Duration(s.rng.Int64N(int64(d))) }

func (s *sim) chance(oneIn int) bool { return !s.quiet && s.rng.IntN(oneIn) == 0 }

func (s *sim) after(d time.Duration, do func()) { s.at(s.now.Add(d), do) }

func (s *sim) at(t time.Time, do func()) {
	s.n++
	heap.Push(&s.agenda, item{t, s.n, do})
}

func (s *sim) say(format string, args ...any) {
	s.result.History = append(s.result.History, fmt.Sprintf("%12s  ", s.now.Sub(epochZero).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

func (s *sim) broke(format string, args ...any) {
	s.broken = append(s.broken, fmt.Sprintf(format, args...))
}

type item struct {
	at time.Time
	n  int
	do func()
}

// agenda is a heap of what is to happen, by time and then by order.
type agenda []item

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if a[i].at.Equal(a[j].at) {
		return a[i].n < a[j].n
	}
	return a[i].at.Before(a[j].at)
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(item)) }
func (a *agenda) Pop() any {
	old := *a
	it := old[len(old)-1]
	*a = old[:len(old)-1]
	return it
}
