// Package machine holds a state machine as data: one table of transitions
// that is the guard, the exhaustive test and the diagram.
package machine

import (
	"fmt"
	"slices"
	"strings"

	"berth/events/fault"
)

// Row is one legal transition: in any of From, On leads to To. Guard says in
// words what else must hold.
type Row[S, E ~string] struct {
	From  []S
	On    E
	To    S
	Guard string
}

// Table is a whole machine. Initial is the state before the first event.
type Table[S, E ~string] struct {
	Name    string
	Initial S
	Rows    []Row[S, E]
}

// Next is the state that event `on` leads to from `from`; ok is false when
// the table has no such row. Nothing happens on an empty event.
func (t *Table[S, E]) Next(from S, on E) (to S, ok bool) {
	if on == "" {
		return from, false
	}
	for i := range t.Rows {
		if r := &t.Rows[i]; r.On == on && slices.Contains(r.From, from) {
			return r.To, true
		}
	}
	return from, false
}

// Refuse is the typed refusal of an event in a state: failed-precondition,
// naming the machine, the state and what is legal there.
func (t Table[S, E]) Refuse(from S, on E) *fault.Error {
	var legal []string
	for _, r := range t.Rows {
		if slices.Contains(r.From, from) {
			legal = append(legal, string(r.On))
		}
	}
	state := string(from)
	if state == "" {
		state = "none"
	}
	e := fault.New(fault.FailedPrecondition, "%s is %s: %s is not possible now", t.Name, state, on)
	if len(legal) > 0 {
		return e.WithHint("possible in this state: %s", strings.Join(legal, ", "))
	}
	return e
}

// States lists every state of the table once, in order of appearance.
func (t Table[S, E]) States() []S {
	out := []S{t.Initial}
	add := func(s S) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, r := range t.Rows {
		for _, f := range r.From {
			add(f)
		}
		add(r.To)
	}
	return out
}

// Events lists every event of the table once.
func (t Table[S, E]) Events() []E {
	var out []E
	for _, r := range t.Rows {
		if !slices.Contains(out, r.On) {
			out = append(out, r.On)
		}
	}
	return out
}

// Mermaid draws the table as a state diagram.
func (t Table[S, E]) Mermaid() string {
	name := func(s S) string {
		if s == "" {
			return "[*]"
		}
		return strings.ReplaceAll(string(s), "-", "_")
	}
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for _, r := range t.Rows {
		for _, f := range r.From {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", name(f), name(r.To), r.On)
		}
	}
	return b.String()
}

// Markdown lists the rows as a table.
func (t Table[S, E]) Markdown() string {
	var b strings.Builder
	b.WriteString("| from | on | to | guard |\n|---|---|---|---|\n")
	for _, r := range t.Rows {
		var from []string
		for _, f := range r.From {
			if f == "" {
				f = "none"
			}
			from = append(from, string(f))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(from, ", "), r.On, r.To, r.Guard)
	}
	return b.String()
}
