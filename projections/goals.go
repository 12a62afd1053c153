package projections

import (
	"maps"
	"slices"
	"strings"
	"time"

	"berth/aggregates/goal"
	"berth/events"
)

// MaxEndedGoals is how many ended goals are kept, the newest. Older ones are
// answered by loading their boundary, which answers for ever.
const MaxEndedGoals = 1024

// MaxUnsettled is how many ended goals are remembered, by name alone, because
// what became of them is not known yet; beyond it the oldest is given up.
const MaxUnsettled = 1 << 16

// Goal is one goal with where it is.
type Goal struct {
	Boundary events.Boundary
	goal.State
}

type goals struct {
	open map[events.Boundary]*goal.State
	// offered are those of open that wait for an instance, or for its first step.
	offered map[events.Boundary]struct{}
	ended   map[events.Boundary]*goal.State
	order   []events.Boundary // of ended, oldest first
	count   map[events.GoalState]uint64
	// unsettled are the ended ones that wait for a settlement (decision 14),
	// however long ago they ended, oldest first.
	unsettled []events.Boundary
}

func newGoals() goals {
	return goals{open: map[events.Boundary]*goal.State{}, offered: map[events.Boundary]struct{}{}, ended: map[events.Boundary]*goal.State{}, count: map[events.GoalState]uint64{}}
}

func (g *goals) fold(r events.Record) {
	if settles(r) {
		g.unsettled = slices.DeleteFunc(g.unsettled, func(b events.Boundary) bool { return b == r.Boundary })
	}
	s, isOpen := g.open[r.Boundary]
	if !isOpen {
		s = g.ended[r.Boundary]
	}
	if s == nil {
		if r.Previous != 0 {
			return // it ended so long ago that it is only in the log
		}
		s = &goal.State{}
	}
	next := *s
	for _, e := range r.Events {
		next = next.Apply(r.Meta, e)
	}
	switch {
	case next.State == goal.None: // its beginning was torn off
	case !next.State.Terminal():
		if isOpen {
			g.open[r.Boundary] = &next
		} else {
			g.open[events.Boundary(strings.Clone(string(r.Boundary)))] = &next
		}
		g.offer(r.Boundary, next)
	case s.State.Terminal():
		g.ended[r.Boundary] = &next
	default:
		g.end(r.Boundary, &next)
	}
}

// offer notes whether an open goal was offered and nobody has gone on with it.
func (g *goals) offer(b events.Boundary, s goal.State) {
	if s.State != events.GoalStateOffered && (s.State != events.GoalStateAccepted || s.Until.IsZero()) {
		delete(g.offered, b)
		return
	}
	g.offered[events.Boundary(strings.Clone(string(b)))] = struct{}{}
}

func (g *goals) end(b events.Boundary, s *goal.State) {
	b = events.Boundary(strings.Clone(string(b)))
	delete(g.open, b)
	delete(g.offered, b)
	g.count[s.State]++
	g.ended[b] = s
	g.order = append(g.order, b)
	if s.Unsettled() {
		if g.unsettled = append(g.unsettled, b); len(g.unsettled) > MaxUnsettled {
			g.unsettled = g.unsettled[1:]
		}
	}
	if len(g.order) > MaxEndedGoals {
		delete(g.ended, g.order[0])
		g.order = g.order[1:]
	}
}

func settles(r events.Record) bool {
	return slices.ContainsFunc(r.Events, func(e events.Event) bool { _, ok := e.(events.GoalSettled); return ok })
}

// Unfinished lists the goals for which something is left to do: the open ones
// by boundary, and after them those that ended uncertain and are not settled,
// however many goals have ended since, oldest first.
func (v *Views) Unfinished() []events.Boundary {
	out := slices.Sorted(maps.Keys(v.goals.open))
	return append(out, v.goals.unsettled...)
}

// GoalsAbout lists the open goals that are about a name.
func (v *Views) GoalsAbout(owner events.Owner, alias events.Alias) []events.Boundary {
	var out []events.Boundary
	for b, s := range v.goals.open {
		if s.Allocated.Owner == owner && s.Allocated.Name == alias {
			out = append(out, b)
		}
	}
	slices.Sort(out)
	return out
}

// Goal is the goal of a boundary, open or among the newest ended. One that is
// not found may still be in the log: load the boundary before saying so.
func (v *Views) Goal(b events.Boundary) (goal.State, bool) {
	for _, m := range []map[events.Boundary]*goal.State{v.goals.open, v.goals.ended} {
		if s := m[b]; s != nil {
			return *s, true
		}
	}
	return goal.State{}, false
}

// Offered lists the goals that wait for an instance to claim them, and those
// that one claimed and has not gone on with, in no particular order; nil if
// there are none.
func (v *Views) Offered() (out []Goal) {
	for b := range v.goals.offered {
		out = append(out, Goal{b, *v.goals.open[b]})
	}
	return out
}

// Unmade lists the goals that are accepted and not gone on with although their
// readiness deadline was before a time, in no particular order.
func (v *Views) Unmade(before time.Time) (out []Goal) {
	for b, s := range v.goals.open {
		if s.State == events.GoalStateAccepted && s.Ready.Before(before) {
			out = append(out, Goal{b, *s})
		}
	}
	return out
}

// Goals lists the open goals by boundary, and after them, if ended is set, the
// newest ended ones, newest first.
func (v *Views) Goals(ended bool) []Goal {
	out := make([]Goal, 0, len(v.goals.open))
	for b, s := range v.goals.open {
		out = append(out, Goal{b, *s})
	}
	slices.SortFunc(out, func(a, b Goal) int { return strings.Compare(string(a.Boundary), string(b.Boundary)) })
	if ended {
		for _, b := range slices.Backward(v.goals.order) {
			out = append(out, Goal{b, *v.goals.ended[b]})
		}
	}
	return out
}

// GoalCounts is how many goals ever ended in each state; open ones are under
// their state too.
func (v *Views) GoalCounts() map[events.GoalState]uint64 {
	out := maps.Clone(v.goals.count)
	for _, s := range v.goals.open {
		out[s.State]++
	}
	return out
}
