package sim

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/internal/ids"
	"berth/providers/drill"
	"berth/sagas"
)

// Bounds of one history.
const (
	chaos    = 90 * time.Minute // in which things go wrong
	calm     = 72 * time.Hour   // in which they must come to rest
	maxSteps = 60_000

	smallState = 1 << 10 // bytes of a captured state, at least; what is in them takes no part in any law
)

var (
	epochZero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	caller    = events.Caller{Owner: "local", Actor: "simulation", UID: "abcdefghijklmnopqrstuvwxyz"}
	hostIDs   = []events.InstanceID{"aaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbb"}
	names     = []events.Alias{"a", "b", "c", "d"}
)

// Result is one history.
type Result struct {
	Seed      uint64
	Steps     int
	Lifetimes int // environments that were claimed and ended
	Crashes   int
	Takeovers int
	WriteOffs int
	Exports   int
	Offers    int // spawns that their receiver could not run
	HandOvers int // of them, that another one claimed
	Records   int
	// Of wide histories only:
	ClockSteps  int
	StaleStarts int
	Digest      [32]byte // of every record, in order, and of every call
	History     []string // only of a history that was told (Options.Tell)
}

// Options changes how a history is played. The zero value is the product as
// it is.
type Options struct {
	Sabotage Sabotage
	Tell     bool   // keep a readable story in Result.History
	Dir      string // where a snapshot file is written and read, empty for memory
	// Echo has everybody fold the events as they were committed, instead of as
	// they are read back from the bytes of the log.
	Echo bool
}

// sim is the world and its agenda.
type sim struct {
	o       Options
	k       Kernel
	rng     *rand.Rand
	now     time.Time
	log     *memory.Log
	machine *drill.Machine
	ids     events.IDs
	agenda  agenda
	n       int
	quiet   bool // nothing goes wrong any more
	wide    bool
	turns   bool
	asked   [3]int // goals by caller, of a wide history
	hosts   []*host
	all     []*manager
	turn    turn
	seen    sagas.View // what the kernel is asked on
	acting  *manager   // whose append is being made
	clients clients
	books   *books
	readers *readers
	digest  hash.Hash
	scratch []byte // of the digest
	result  Result
	broken  []string // laws that were broken
}

// Run plays the history of a seed and returns what broke, or nil.
func Run(seed uint64) (Result, error) { return RunWith(seed, Options{}) }

// RunWith is Run with options. The error says the seed, the laws that were
// broken and how to see it again.
func RunWith(seed uint64, o Options) (Result, error) {
	s := &sim{o: o, k: o.Sabotage.kernel(), rng: rand.New(rand.NewPCG(seed, 0xbe47)), now: epochZero, log: memory.New(), digest: sha256.New()}
	s.result.Seed = seed
	s.log.SetEcho(o.Echo)
	s.ids = ids.Seeded(seed, func() time.Time { return s.now })
	s.machine = drill.NewMachine(s.script())
	s.machine.KeepSmall(smallState)
	s.books = newBooks(s)
	s.readers = newReaders(s)
	s.log.SetHooks(memory.Hooks{Before: s.before, After: s.stored})
	s.wide, s.turns = isWide(seed), isTurns(seed)
	hosts := hostIDs
	if s.wide {
		hosts = append(slices.Clip(hosts), wideHost)
	}
	for _, id := range hosts {
		s.hosts = append(s.hosts, &host{id: id, staged: map[events.UID]bool{}})
	}
	for _, h := range s.hosts {
		s.boot(h)
	}
	s.plan()
	s.broaden()
	s.play()
	s.converged()
	s.digest.Sum(s.result.Digest[:0])
	if len(s.broken) > 0 {
		return s.result, fmt.Errorf("seed %d: %s\nagain: go test ./sagas/sim -run TestSim -seed=%d", seed, strings.Join(s.broken, "\n"), seed)
	}
	return s.result, nil
}

// plan puts what comes from outside on the agenda.
func (s *sim) plan() {
	for t := time.Duration(0); t < chaos; t += s.upTo(time.Minute) {
		s.at(epochZero.Add(t), s.client)
	}
	for range s.rng.IntN(4) {
		h := s.hosts[s.rng.IntN(len(s.hosts))]
		s.at(epochZero.Add(s.upTo(chaos)), func() { s.fell(h.current, "a crash") })
	}
	if s.rng.IntN(3) == 0 {
		s.at(epochZero.Add(s.upTo(chaos)), s.disaster)
	}
	if s.rng.IntN(3) == 0 {
		s.at(epochZero.Add(s.upTo(chaos)), s.fullLog)
	}
	for t := time.Duration(0); t < chaos; t += s.upTo(40 * time.Minute) {
		s.at(epochZero.Add(t), s.readers.read)
		s.at(epochZero.Add(t), func() { s.watch() })
	}
	s.at(epochZero.Add(chaos), s.settle)
}

func (s *sim) play() {
	end := int64(chaos + calm)
	for len(s.agenda) > 0 && len(s.broken) == 0 {
		it := s.agenda.pop()
		if it.at > end {
			break
		}
		if s.result.Steps++; s.result.Steps > maxSteps {
			s.broke("the world does not come to rest in %d steps", maxSteps)
			return
		}
		if at := epochZero.Add(time.Duration(it.at)); at.After(s.now) {
			s.now = at
		}
		if it.m != nil {
			it.m.alive(it.do)
		} else {
			it.do()
		}
	}
}

// script is one random misbehaviour for some of the calls.
func (s *sim) script() drill.Script {
	faults := []drill.Fault{drill.AcceptThenDrop, drill.AcceptThenLateAnswer, drill.ErrorAfterAccept, drill.NeverAnswer, drill.Refuse, drill.Throttle, drill.Stuck,
		drill.Vanish, drill.SwapIncarnation, drill.ClockOffset, drill.TruncateStream, drill.GrowStream, drill.CorruptStream}
	var sc drill.Script
	for range 2 + s.rng.IntN(10) {
		r := drill.Rule{Verb: drill.Verbs[s.rng.IntN(len(drill.Verbs))], Fault: faults[s.rng.IntN(len(faults))], Nth: 1 + s.rng.IntN(6)}
		if r.Fault == drill.AcceptThenLateAnswer || r.Fault == drill.Throttle || s.rng.IntN(3) == 0 {
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

// settle is the end of the chaos: a healthy manager on each host, a provider
// that keeps its word, and clients that want everything gone.
func (s *sim) settle() {
	s.say("calm")
	s.quiet = true
	s.log.SetFull(false)
	s.machine.SetScript(drill.Script{})
	for _, m := range s.all {
		if m != m.host.current {
			m.dead = true
		}
	}
	for _, h := range s.hosts {
		h.gone = false
		if h.current.stalled {
			h.current.wakeUp()
		}
		s.boot(h)
	}
	for i, n := range names {
		for _, after := range []time.Duration{time.Minute, 3 * time.Hour, 30 * time.Hour} {
			s.at(s.now.Add(time.Duration(1+i)*after/4), func() { s.retire(n) })
		}
	}
	s.at(s.now.Add(40*time.Hour), s.watch)
}

// fullLog has no room for a while (scenario: a full disk).
func (s *sim) fullLog() {
	if s.quiet {
		return
	}
	s.say("the log is full")
	s.log.SetFull(true)
	s.after(s.upTo(10*time.Minute), func() { s.log.SetFull(false); s.say("the log has room again") })
}

func (s *sim) upTo(d time.Duration) time.Duration { return 1 + time.Duration(s.rng.Int64N(int64(d))) }

func (s *sim) chance(oneIn int) bool { return !s.quiet && s.rng.IntN(oneIn) == 0 }

func (s *sim) say(format string, args ...any) {
	if s.o.Tell {
		s.result.History = append(s.result.History, fmt.Sprintf("%12s  ", s.now.Sub(epochZero).Round(time.Millisecond))+fmt.Sprintf(format, args...))
	}
}

func (s *sim) broke(format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	s.say("BROKEN: %s", why)
	s.broken = append(s.broken, why)
}

// fingerprint adds a number to the digest of the history.
func (s *sim) fingerprint(b []byte, n int64) {
	s.scratch = binary.LittleEndian.AppendUint64(append(s.scratch[:0], b...), uint64(n))
	s.digest.Write(s.scratch)
}

// provider is one call to the machine. What came of it is in the digest.
func (s *sim) provider(c drill.Call) drill.Answer {
	a := s.machine.Apply(s.now, c)
	s.scratch = append(s.scratch[:0], c.Operation...)
	s.fingerprint(s.scratch, int64(a.After))
	return a
}

// ctx is never cancelled: nothing in here waits.
func ctx() context.Context { return context.Background() }

// Add sums what two histories had in them.
func (r *Result) Add(o Result) {
	r.Steps, r.Lifetimes, r.Crashes, r.Records = r.Steps+o.Steps, r.Lifetimes+o.Lifetimes, r.Crashes+o.Crashes, r.Records+o.Records
	r.Takeovers, r.WriteOffs, r.Exports = r.Takeovers+o.Takeovers, r.WriteOffs+o.WriteOffs, r.Exports+o.Exports
	r.Offers, r.HandOvers = r.Offers+o.Offers, r.HandOvers+o.HandOvers
	r.ClockSteps, r.StaleStarts = r.ClockSteps+o.ClockSteps, r.StaleStarts+o.StaleStarts
}

func (r Result) String() string {
	return fmt.Sprintf("%d lifetimes, %d records, %d steps, %d crashes, %d seats taken over, %d written off, %d files exported, %d spawns offered, %d handed over, %d clocks set, %d starts from an old snapshot",
		r.Lifetimes, r.Records, r.Steps, r.Crashes, r.Takeovers, r.WriteOffs, r.Exports, r.Offers, r.HandOvers, r.ClockSteps, r.StaleStarts)
}
