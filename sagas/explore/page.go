package explore

import (
	"fmt"
	"slices"
	"strings"

	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/aggregates/head"
	"berth/aggregates/instance"
	"berth/aggregates/intent"
	"berth/aggregates/machine"
	"berth/aggregates/slot"
	"berth/aggregates/turns"
)

// table is one declared machine, with what the page says of it.
type table struct {
	name, title, why string
	rows             []row
	edges            []Edge
}

type row struct {
	from          []string
	on, to, guard string
}

func tableOf[S, E ~string](t machine.Table[S, E], title, why string) table {
	out := table{name: t.Name, title: title, why: why}
	for _, r := range t.Rows {
		var from []string
		for _, f := range r.From {
			out.edges = append(out.edges, Edge{t.Name, string(f), string(r.On), string(r.To)})
			from = append(from, string(f))
		}
		out.rows = append(out.rows, row{from, string(r.On), string(r.To), r.Guard})
	}
	return out
}

// tables are those whose edges a walk takes.
var tables = []table{
	tableOf(slot.Table, "Slot", "The durable claim of a name by an instance."),
	tableOf(head.Table, "Head", "The one current incarnation of an actor."),
	tableOf(head.GateTable, "Gate", "Whether credentials may be minted for that lifecycle."),
	tableOf(environment.RecordTable, "Environment record", "What `inspect` serves: four states."),
	tableOf(environment.Table, "Operation", "One logical provider mutation, in the environment's journal."),
	tableOf(turns.Table, "Turn", "What a seat is asked to do next, in the order of its queue."),
	tableOf(goal.Table, "Goal", "A long-running command."),
	tableOf(intent.Table, "Intent", "What a user lets a manager do once, in the user's name."),
}

// Unseen are the declared edges that no walk takes, by table, state and event,
// and why. An empty state is any.
var Unseen = []struct{ Table, From, On, Why string }{
	{"head", "", "advance-epoch", "a decision of its own that no saga of this version makes; it is folded where a record has it"},
	{"goal", "", "wait", "no saga of this version puts a goal off; it is folded where a record has it"},
	{"goal", "waiting", "", "no goal of this version waits"},
	{"goal", "", "offer", "offers pass between instances with different facts, and the walk has one place; `commands/plane` runs them over a shared log"},
	{"goal", "offered", "", "no goal of the walk is offered"},
	{"goal", "", "rename", "the names of the walk are chosen; `commands/plane` takes one away between acceptance and claim"},
}

// Differences compares the declared edges with those that were seen: what was
// seen and is not declared, and what is declared, not seen and not excused.
func Differences(seen map[Edge]bool) []string {
	var out []string
	declared := map[Edge]bool{}
	for _, t := range tables {
		for _, e := range t.edges {
			declared[e] = true
			switch why := excuse(e); {
			case !seen[e] && why == "":
				out = append(out, fmt.Sprintf("declared and never reached: %s", e))
			case seen[e] && why != "":
				out = append(out, fmt.Sprintf("reached, and said to be out of reach: %s", e))
			}
		}
	}
	for e := range seen {
		if !declared[e] {
			out = append(out, fmt.Sprintf("reached and not declared: %s", e))
		}
	}
	slices.Sort(out)
	return out
}

// excuse is why an edge is not seen.
func excuse(e Edge) string {
	for _, u := range Unseen {
		if u.Table == e.Table && (u.From == "" || u.From == e.From) && (u.On == "" || u.On == e.On) {
			return u.Why
		}
	}
	return ""
}

// String is the edge for a person.
func (e Edge) String() string {
	return fmt.Sprintf("%s: %s --%s--> %s", e.Table, word(e.From), e.On, word(e.To))
}

func word(state string) string {
	if state == "" {
		return "none"
	}
	return state
}

// Page is docs/states.md: the declared tables, and beside each row from which
// of its states a walk took it.
func Page(seen map[Edge]bool) string {
	var b strings.Builder
	b.WriteString("# States\n\nWritten by the explorer (`go test ./sagas/explore -run TestDocs -update`); not edited by hand.\n" +
		"Each table is the guard, the fold, the exhaustive test and this page. What has no row is refused and changes nothing.\n" +
		"*Walked* says from which states of the row an exploration of the product took it ([proof](proof.md)); a row that is never taken, and a step\n" +
		"that is taken and has no row, fail the build.\n")
	for _, t := range tables {
		t.write(&b, seen)
	}
	i := instance.Table
	b.WriteString("\n## Instance\n\nA manager's registration; the explorer takes its epochs as given.\n\n```mermaid\n" + i.Mermaid() + "```\n\n" + i.Markdown())
	b.WriteString("\n## Status\n\nOne word for a seat, computed from all of the above; the first that holds, in this order of what a person must know first:\n")
	b.WriteString("held (quarantined), none, written-off, retired, uncertain, stopping, retiring, failed, stopped, paused, running, reserved, starting.\n")
	return b.String()
}

// write adds one table with its diagram; edges that no walk takes are said.
func (t table) write(b *strings.Builder, seen map[Edge]bool) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```mermaid\nstateDiagram-v2\n", t.title, t.why)
	var out []Edge
	for _, e := range t.edges {
		if !seen[e] {
			out = append(out, e)
			continue
		}
		fmt.Fprintf(b, "    %s --> %s: %s\n", drawn(e.From), drawn(e.To), e.On)
	}
	b.WriteString("```\n\n| from | on | to | guard | walked |\n|---|---|---|---|---|\n")
	for _, r := range t.rows {
		var from, walked []string
		for _, f := range r.from {
			from = append(from, word(f))
			if seen[Edge{t.name, f, r.on, r.to}] {
				walked = append(walked, word(f))
			}
		}
		how := "all"
		switch {
		case len(walked) == 0:
			how = "not"
		case len(walked) < len(from):
			how = strings.Join(walked, ", ")
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", strings.Join(from, ", "), r.on, r.to, r.guard, how)
	}
	for _, u := range Unseen {
		if u.Table == t.name && len(out) > 0 {
			fmt.Fprintf(b, "\nNot walked: %s from %s: %s.\n", orAny(u.On), orAny(u.From), u.Why)
		}
	}
}

func orAny(s string) string {
	if s == "" {
		return "any"
	}
	return s
}

func drawn(s string) string {
	if s == "" {
		return "[*]"
	}
	return strings.ReplaceAll(s, "-", "_")
}
