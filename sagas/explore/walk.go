package explore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Report is what was walked.
type Report struct {
	Budget      Budget
	States      int
	Transitions int
	Ends        int // states in which all is over
	Depth       int // moves of the longest shortest path
	// Complete is false if the walk stopped at its limit: then only the laws of
	// the visited states were asserted, and not that each life can end.
	Complete bool
	Checks   map[string]int // how often each law was asserted
	Edges    map[Edge]bool
	Steps    map[string]bool // rows of the kernel that spoke
}

// String is one line for a log.
func (r Report) String() string {
	return fmt.Sprintf("%v: %d states, %d transitions, %d ends, depth %d, complete=%v", r.Budget, r.States, r.Transitions, r.Ends, r.Depth, r.Complete)
}

// node is how a state was reached first.
type node struct {
	parent int32
	name   string
}

// state is what can be walked.
type state[W any] interface {
	*W
	key() Key
	check() error // the laws of the state
	over() bool
	moves() []step[W]
}

type step[W any] struct {
	name string
	to   W
	err  error
}

// graph is the exploration so far: shortest paths first.
type graph[W any, S state[W]] struct {
	nodes    []node
	from, to []int32
	ended    []int32
	index    map[Key]int32
	limit    int
	full     bool
	depth    int
	visit    func(S) error // what else is asserted in each state
}

// Walk explores until nothing is new or limit states were seen, and returns
// the first broken law with the shortest conversation that leads to it.
func Walk(c Core, b Budget, limit int) (Report, error) {
	r := newRules(c, b.Poor)
	w, err := first(r, "a", b)
	if err != nil {
		return Report{Budget: b}, err
	}
	g := &graph[world, *world]{limit: limit}
	err = g.walk(w, "a spawn is accepted")
	return g.report(b, r), err
}

func (g *graph[W, S]) report(b Budget, r *rules) Report {
	return Report{Budget: b, States: len(g.nodes), Transitions: len(g.from), Ends: len(g.ended), Depth: g.depth, Complete: !g.full,
		Checks: maps.Clone(r.checks), Edges: r.edges, Steps: r.steps}
}

func (g *graph[W, S]) walk(first W, name string) error {
	g.index = map[Key]int32{S(&first).key(): 0}
	g.nodes = []node{{-1, name}}
	frontier, ids := []W{first}, []int32{0}
	for len(frontier) > 0 {
		var worlds []W
		var next []int32
		for i := range frontier {
			w, at := S(&frontier[i]), ids[i]
			if g.visit != nil {
				if err := g.visit(w); err != nil {
					return g.told(at, "", err)
				}
			}
			if err := w.check(); err != nil {
				return g.told(at, "", err)
			}
			if w.over() {
				g.ended = append(g.ended, at)
			}
			for _, m := range w.moves() {
				if m.err != nil {
					return g.told(at, m.name, m.err)
				}
				id, fresh := g.add(S(&m.to).key(), at, m.name)
				if id < 0 {
					continue
				}
				g.from, g.to = append(g.from, at), append(g.to, id)
				if fresh {
					worlds, next = append(worlds, m.to), append(next, id)
				}
			}
		}
		if frontier, ids = worlds, next; len(next) > 0 {
			g.depth++
		}
	}
	if g.full {
		return nil
	}
	return g.allEnd()
}

// add is the number of a state; -1 if the walk is full.
func (g *graph[W, S]) add(k Key, from int32, name string) (id int32, fresh bool) {
	if id, known := g.index[k]; known {
		return id, false
	}
	if len(g.nodes) >= g.limit {
		g.full = true
		return -1, false
	}
	id = int32(len(g.nodes))
	g.index[k] = id
	g.nodes = append(g.nodes, node{from, name})
	return id, true
}

// allEnd says that from every state everything can still come to its end.
func (g *graph[W, S]) allEnd() error {
	start := make([]int32, len(g.nodes)+1) // where each state's predecessors begin
	for _, to := range g.to {
		start[to+1]++
	}
	for i := range g.nodes {
		start[i+1] += start[i]
	}
	back, fill := make([]int32, len(g.to)), slices.Clone(start)
	for i, to := range g.to {
		back[fill[to]] = g.from[i]
		fill[to]++
	}
	ends := make([]bool, len(g.nodes))
	todo := slices.Clone(g.ended)
	for _, id := range todo {
		ends[id] = true
	}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range back[start[id]:start[id+1]] {
			if !ends[from] {
				ends[from] = true
				todo = append(todo, from)
			}
		}
	}
	if id := slices.Index(ends, false); id >= 0 {
		return g.told(int32(id), "", errors.New("livelock: no path leads from here to the end of everything"))
	}
	return nil
}

// told is a broken law with the shortest conversation that leads to it.
func (g *graph[W, S]) told(at int32, last string, law error) error {
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

func (w *world) check() error {
	if err := w.holds(); err != nil {
		return err
	}
	if w.over() {
		return w.atEnd()
	}
	return nil
}

func (w *world) moves() []step[world] {
	var out []step[world]
	for _, m := range movesOf(*w, false) {
		out = append(out, step[world](m))
	}
	return out
}
