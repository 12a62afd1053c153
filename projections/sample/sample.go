// Package sample makes logs that look like those of a fleet, the same for the
// same seed: for tests of whatever folds a log, and for benchmarks. Its lives
// take every turn that a life can take, but no decision was made: it is no
// proof that a log is legal.
package sample

import (
	"fmt"
	"math/rand/v2"
	"time"

	"berth/events"
	"berth/internal/ids"
)

// Start is the time of the first commit.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Options say what a log looks like.
type Options struct {
	Seed   uint64
	Names  int  // seats that live side by side; at least 1
	Owners int  // at least 1
	Calm   bool // every life goes well: claimed, run, retired
	// Stay leaves every life running: nothing is retired.
	Stay bool
	// Fresh gives every life a name of its own instead of one used before.
	Fresh bool
}

// Generator makes one commit after another. It is not safe for concurrent use.
type Generator struct {
	o      Options
	random *rand.Rand
	ids    events.IDs
	now    time.Time
	sent   uint64
	last   map[events.Boundary]uint64
	lives  []*life
	queue  []step // what comes before any life goes on
	hosts  []events.InstanceID
	named  int
}

// step is one commit to be.
type step struct {
	at     events.Boundary
	events []events.Event
	meta   func(*events.Meta)
}

type life struct {
	owner events.Owner
	alias events.Alias
	steps []step
}

// New begins a log: its first commits register two instances.
func New(o Options) *Generator {
	g := &Generator{o: o, random: rand.New(rand.NewPCG(o.Seed, 7)), now: Start, last: map[events.Boundary]uint64{}}
	g.ids = ids.Seeded(o.Seed, func() time.Time { return g.now })
	for i := range 2 {
		id := events.InstanceID(g.ids.Token())
		g.hosts = append(g.hosts, id)
		host := events.HostFacts{Host: fmt.Sprintf("host-%d", i), Architecture: "amd64", OS: "linux", Engines: []events.Engine{{Name: "process", Version: "1"}},
			Allocatable: events.HostCapacity{CPUs: events.MustQuantity("4000.5"), MemoryMiB: 1 << 24, DiskGiB: 1 << 16, Slots: 1 << 20}, ObservedAt: Start}
		g.queue = append(g.queue, step{at: events.InstanceBoundary(id), events: []events.Event{events.InstanceRegistered{Instance: id, Epoch: 1, Host: host, PublicKey: "UPUBLIC", Version: "1.0.0"}}})
	}
	for range max(o.Names, 1) {
		g.lives = append(g.lives, g.born())
	}
	return g
}

// Writer is the instance that writes.
func (g *Generator) Writer() events.Writer { return events.Writer{Instance: g.hosts[0], Epoch: 1} }

func (g *Generator) born() *life {
	g.named++
	l := &life{owner: events.Owner(fmt.Sprintf("owner-%d", g.named%max(g.o.Owners, 1))), alias: events.Alias(fmt.Sprintf("seat-%06d", g.named))}
	l.steps = g.script(l)
	return l
}

// Next is the next commit; its Expect holds if the log took every commit
// before it and no other. With Stay the commits end: ok is false.
func (g *Generator) Next() (c events.Commit, ok bool) {
	var s step
	if len(g.queue) > 0 {
		s, g.queue = g.queue[0], g.queue[1:]
	} else if s, ok = g.step(); !ok {
		return events.Commit{}, false
	}
	g.now = g.now.Add(time.Duration(g.random.IntN(1500)) * time.Millisecond)
	g.sent++
	c = events.Commit{Boundary: s.at, Expect: g.last[s.at], Events: s.events, Meta: events.Meta{
		ID: events.EventID(g.ids.UUID()), Time: events.MillisUTC(g.now), Writer: g.Writer(),
		Caller: events.Caller{Owner: "local", Actor: "operator", UID: "abcdefghijklmnopqrstuvwxyz"},
	}}
	if s.meta != nil {
		s.meta(&c.Meta)
	}
	g.last[s.at] = g.sent
	return c, true
}

func (g *Generator) step() (step, bool) {
	for len(g.lives) > 0 {
		i := g.random.IntN(len(g.lives))
		l := g.lives[i]
		if len(l.steps) > 0 {
			s := l.steps[0]
			l.steps = l.steps[1:]
			return s, true
		}
		switch {
		case g.o.Stay:
			g.lives[i] = g.lives[len(g.lives)-1]
			g.lives = g.lives[:len(g.lives)-1]
		case g.o.Fresh || g.chance(3):
			g.lives[i] = g.born()
		default:
			l.steps = g.script(l)
		}
	}
	return step{}, false
}

// chance is true once in n.
func (g *Generator) chance(n int) bool { return g.random.IntN(n) == 0 }

// Record is the record that a log holds after the commit was appended as its
// sequence'th, through the codec.
func Record(c events.Commit, sequence uint64, prior events.Hash) (events.Record, error) {
	body, _, err := events.Encode(c, prior, nil)
	if err != nil {
		return events.Record{}, err
	}
	r := events.ParseRecord(c.Boundary, sequence, body)
	return r, r.Broken
}

// Records is the first n records of a log, without its hash chain.
func Records(o Options, n int) ([]events.Record, error) {
	g := New(o)
	out := make([]events.Record, 0, n)
	for len(out) < n {
		c, ok := g.Next()
		if !ok {
			break
		}
		r, err := Record(c, uint64(len(out))+1, events.Hash{})
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}
