package explore

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"

	"berth/events"
)

// pair is two names under the same managers and the same clock.
type pair struct{ a, b world }

// Pair walks two names together and asserts what the walk of one relies on:
// that no event of one changes the other, and that each is never in a state
// that it does not also reach alone.
func Pair(c Core, b Budget, limit int) (Report, error) {
	r := newRules(c, b.Poor)
	one, err := first(r, "a", b)
	if err != nil {
		return Report{Budget: b}, err
	}
	two, err := first(r, "b", b)
	if err != nil {
		return Report{Budget: b}, err
	}
	alone := &graph[world, *world]{limit: 1 << 30}
	if err := alone.walk(one, "a spawn is accepted"); err != nil {
		return alone.report(b, r), err
	}
	g := &graph[pair, *pair]{limit: limit}
	g.visit = func(p *pair) error {
		for _, w := range []*world{&p.a, &p.b} {
			if _, known := alone.index[w.key()]; !known {
				return fmt.Errorf("independence: %s is in a state that one name alone does not reach", w.name)
			}
		}
		return nil
	}
	err = g.walk(pair{one, two}, "two spawns are accepted")
	return g.report(b, r), err
}

func (p *pair) key() Key {
	a, b := p.a.key(), p.b.key()
	sum := sha256.Sum256(slices.Concat(a[:], b[:]))
	return Key(sum[:16])
}

func (p *pair) check() error {
	if err := p.a.check(); err != nil {
		return err
	}
	return p.b.check()
}

func (p *pair) over() bool { return p.a.over() && p.b.over() }

func (p *pair) moves() []step[pair] {
	var out []step[pair]
	r := p.a.r
	r.stranger = p.b.seat
	for _, m := range movesOf(p.a, true) {
		out = append(out, step[pair]{"a: " + m.name, pair{m.to, p.b}, m.err})
	}
	r.stranger = p.a.seat
	for _, m := range movesOf(p.b, true) {
		out = append(out, step[pair]{"b: " + m.name, pair{p.a, m.to}, m.err})
	}
	r.stranger = nil
	for _, c := range common(p.a) {
		to := *p
		err := c.do(&to.a)
		if err == nil {
			err = c.do(&to.b)
		}
		out = append(out, step[pair]{c.name, to, err})
	}
	return out
}

// strange says that what is appended for one name changes nothing of another.
// What opens a life is bound to its name by the boundary it is on, and by
// nothing else.
func (r *rules) strange(w *world, es []events.Event) error {
	if r.stranger == nil {
		return nil
	}
	for _, e := range es {
		switch e.(type) {
		case events.SlotClaimed, events.HeadActivated:
			continue
		}
		if after := r.Fold(*r.stranger, w.meta(), e); !reflect.DeepEqual(after, *r.stranger) {
			return w.broken("independence", "%s of one name changes another", e.EventType())
		}
	}
	r.checks["independence"]++
	return nil
}
