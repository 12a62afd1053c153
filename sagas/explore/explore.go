package explore

import (
	"errors"
	"fmt"
	"strings"

	"berth/aggregates/slot"
	"berth/events"
	"berth/sagas"
)

// Report is what was walked.
type Report struct {
	States int
	Moves  int
	Ended  int // states in which the life is over
	// Complete is false if the walk stopped at its limit: then only the laws of
	// the visited states were asserted, and not that each life can end.
	Complete bool
}

// String is one line for a log.
func (r Report) String() string {
	return fmt.Sprintf("%d states, %d moves, %d ends, complete=%v", r.States, r.Moves, r.Ended, r.Complete)
}

type node struct {
	parent int32
	name   string
}

// walk is the exploration so far: shortest paths first.
type walk struct {
	nodes []node
	back  [][]int32 // who leads here
	ended []int32
	index map[string]int32
}

// Kernel is what is explored: sagas.Next, or in a test one with a defect.
type Kernel func(sagas.View) sagas.Action

// Walk explores until nothing is new or limit states were seen, and returns
// the first broken law with the shortest path to it.
func Walk(k Kernel, b Budget, limit int) (Report, error) {
	w0, err := first(k, b)
	if err != nil {
		return Report{}, err
	}
	g := &walk{index: map[string]int32{w0.key(): 0}, nodes: []node{{-1, "the name is claimed"}}, back: [][]int32{nil}}
	r := Report{Complete: true}
	frontier := []world{w0}
	ids := []int32{0}
	for len(frontier) > 0 {
		var nextWorlds []world
		var nextIDs []int32
		for i, w := range frontier {
			at := ids[i]
			if err := laws(w); err != nil {
				return r, g.told(at, "", err)
			}
			if !w.seat.Slot.Held() {
				g.ended = append(g.ended, at)
				continue
			}
			for _, m := range moves(w) {
				r.Moves++
				if m.err != nil {
					return r, g.told(at, m.name, m.err)
				}
				key := m.to.key()
				id, known := g.index[key]
				if !known {
					if len(g.nodes) >= limit {
						r.Complete = false
						continue
					}
					id = int32(len(g.nodes))
					g.index[key] = id
					g.nodes, g.back = append(g.nodes, node{at, m.name}), append(g.back, nil)
					nextWorlds, nextIDs = append(nextWorlds, m.to), append(nextIDs, id)
				}
				g.back[id] = append(g.back[id], at)
			}
		}
		frontier, ids = nextWorlds, nextIDs
	}
	r.States, r.Ended = len(g.nodes), len(g.ended)
	if r.Complete {
		err = g.allEnd()
	}
	return r, err
}

// laws are what holds in every state.
func laws(w world) error {
	s := w.seat
	switch {
	case s.Slot.Phase == slot.Retired && !s.Environment.WrittenOff && w.exists():
		return fmt.Errorf("law 2: the name is free and the environment is %s", w.truth)
	case s.Slot.Phase == slot.Retired && open(w):
		return errors.New("law 2: the name is free and an operation is open")
	case s.Slot.Phase == slot.Retired && s.Environment.Reserved():
		return errors.New("scenario 21: the name is free and its reservation is held")
	case s.Slot.Phase == slot.Retired && len(s.Head.Revoke()) > 0:
		return errors.New("2.5: the name is free and a credential still holds")
	case s.Slot.Phase == slot.Retired && !w.goal.State.Terminal():
		return fmt.Errorf("2.6: the life is over and its goal is %s", w.goal.State)
	case w.goal.State == events.GoalSucceeded && !w.ran:
		return errors.New("2.6: the goal succeeded and the seat never ran")
	case s.Environment.Gone && w.exists() && !s.Environment.WrittenOff:
		return fmt.Errorf("law 2: recorded as gone and the environment is %s", w.truth)
	case !s.Slot.Held():
		return nil
	}
	if a := w.kernel(w.view()); a.Kind == sagas.Idle && a.Wake.IsZero() && !w.try.InFlight {
		return fmt.Errorf("deadlock: nothing is done and nothing is waited for (%s)", a.Step)
	}
	return nil
}

// allEnd says that from every state the life can still come to its end.
func (g *walk) allEnd() error {
	ends := make([]bool, len(g.nodes))
	todo := append([]int32(nil), g.ended...)
	for _, id := range todo {
		ends[id] = true
	}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range g.back[id] {
			if !ends[from] {
				ends[from] = true
				todo = append(todo, from)
			}
		}
	}
	for id, ok := range ends {
		if !ok {
			return g.told(int32(id), "", errors.New("livelock: no path leads from here to the end of the life"))
		}
	}
	return nil
}

// told is a broken law with the shortest path to it.
func (g *walk) told(at int32, last string, law error) error {
	var path []string
	if last != "" {
		path = append(path, last)
	}
	for id := at; id >= 0; id = g.nodes[id].parent {
		path = append(path, g.nodes[id].name)
	}
	var b strings.Builder
	for i := range path {
		fmt.Fprintf(&b, "\n  %2d. %s", i+1, path[len(path)-1-i])
	}
	return fmt.Errorf("%w, after:%s", law, b.String())
}
