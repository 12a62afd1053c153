package sagas

import (
	"container/heap"
	"slices"
	"time"

	"berth/aggregates/goal"
	"berth/events"
)

// entry is what the engine remembers of one boundary beside the log. It can be
// lost at any time: Engine.mu guards it.
type entry struct {
	at   events.Boundary
	kind events.Kind

	try      Try // Count and Next; the rest is below
	observe  bool
	adopt    bool // observe by the driver's Adopter, once
	inherits bool // its goals are to be taken over with it
	inFlight bool // a call runs for it
	inbox    []input

	queued, busy, again bool
	lane                *lane // whose place it holds
	inLine              bool  // waits for a place
	wake                time.Time
	index               int // in the heap of wakes, -1 if not there
	nextPoll            time.Time
	decided             uint64 // the last sequence that its own decision made
	failures            int    // decisions in a row that could not be recorded

	environment            events.EnvironmentID
	open, uncertain, stuck bool // of its environment, for Stats

	goal    goal.State // of a goal, as far as absorbed
	goalSeq uint64
	seat    events.Boundary // of a goal: what it is about
	resume  bool            // from before this process
}

// lane bounds the calls to one provider, so that a slow one stalls only
// itself. Whoever finds it full stands in line.
type lane struct {
	inUse int
	line  []*entry
}

// entry is the boundary's entry, made if there is none. Engine.mu is held in
// everything below.
func (e *Engine) entry(b events.Boundary) *entry {
	ent := e.entries[b]
	if ent == nil {
		ent = &entry{at: b, kind: b.Kind(), index: -1}
		e.entries[b] = ent
	}
	return ent
}

func (e *Engine) forget(ent *entry) {
	if e.entries[ent.at] == ent {
		delete(e.entries, ent.at)
	}
	if e.environments[ent.environment] == ent {
		delete(e.environments, ent.environment)
	}
	e.wakeAt(ent, time.Time{})
	e.unbind(ent)
}

// unbind takes the goal off the list of the seat that it is about.
func (e *Engine) unbind(ent *entry) {
	if ent.seat == "" {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(e.about[ent.seat]), func(b events.Boundary) bool { return b == ent.at })
	if len(rest) == 0 {
		delete(e.about, ent.seat)
	} else {
		e.about[ent.seat] = rest
	}
}

// enqueue asks for a decision on the entry.
func (e *Engine) enqueue(ent *entry) {
	switch {
	case ent.busy:
		ent.again = true
	case !ent.queued:
		ent.queued = true
		e.queue = append(e.queue, ent)
		e.changed.Signal()
	}
}

// touch asks the goals that are about the seat again.
func (e *Engine) touch(seat events.Boundary) {
	for _, b := range e.about[seat] {
		if g := e.entries[b]; g != nil {
			e.enqueue(g)
		}
	}
}

// place gives the entry a place in its provider's lane, or lets it stand in
// line and says false.
func (e *Engine) place(ent *entry, provider string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ent.lane != nil {
		return true
	}
	l := e.lanes[provider]
	if l == nil {
		l = &lane{}
		e.lanes[provider] = l
	}
	if l.inUse < e.o.PerProvider {
		l.inUse++
		ent.lane = l
		return true
	}
	if !ent.inLine {
		ent.inLine = true
		l.line = append(l.line, ent)
	}
	return false
}

// leave gives the place to the next in line, if any.
func (e *Engine) leave(ent *entry) {
	l := ent.lane
	if l == nil {
		return
	}
	ent.lane = nil
	if len(l.line) == 0 {
		l.inUse--
		return
	}
	next := l.line[0]
	l.line[0], l.line = nil, l.line[1:]
	next.inLine, next.lane = false, l
	e.enqueue(next)
}

// wakeAt sets when the entry is asked again though nothing happened; zero for
// never.
func (e *Engine) wakeAt(ent *entry, at time.Time) {
	switch {
	case at.IsZero() && ent.index >= 0:
		heap.Remove(&e.timers, ent.index)
	case at.IsZero():
	case ent.index >= 0:
		ent.wake = at
		heap.Fix(&e.timers, ent.index)
	default:
		ent.wake = at
		heap.Push(&e.timers, ent)
	}
	if len(e.timers) > 0 && e.timers[0] == ent {
		select {
		case e.alarm <- struct{}{}:
		default:
		}
	}
}

// due moves every entry whose time has come to the queue and says how long it
// is until the next one; false if there is none.
func (e *Engine) due(now time.Time) (time.Duration, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.timers) > 0 && !e.timers[0].wake.After(now) {
		ent := e.timers[0]
		e.wakeAt(ent, time.Time{})
		if !ent.nextPoll.IsZero() && !now.Before(ent.nextPoll) {
			ent.nextPoll, ent.observe = time.Time{}, true
		}
		e.enqueue(ent)
	}
	if len(e.timers) == 0 {
		return 0, false
	}
	return e.timers[0].wake.Sub(now), true
}

// wakes is a heap of entries by wake time.
type wakes []*entry

func (w wakes) Len() int           { return len(w) }
func (w wakes) Less(i, j int) bool { return w[i].wake.Before(w[j].wake) }
func (w wakes) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].index, w[j].index = i, j
}
func (w *wakes) Push(x any) {
	ent := x.(*entry)
	ent.index = len(*w)
	*w = append(*w, ent)
}
func (w *wakes) Pop() any {
	old := *w
	ent := old[len(old)-1]
	old[len(old)-1] = nil
	*w = old[:len(old)-1]
	ent.index = -1
	return ent
}
