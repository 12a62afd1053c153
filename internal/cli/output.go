package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// The output formats of -o.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatLines = "jsonl"
)

func (a *app) checkFormat() error {
	switch a.output {
	case formatTable, formatWide, formatJSON, formatLines:
		return nil
	}
	return usage("--output %q is not valid: table, wide, json or jsonl", a.output)
}

// document prints one JSON value on one line.
func (a *app) document(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := a.Stdout.Write(b.Bytes())
	return err
}

// show prints v as a document for a script, or calls human for a person.
func (a *app) show(v any, human func(w io.Writer)) error {
	if a.machine() {
		return a.document(v)
	}
	var b bytes.Buffer
	human(&b)
	_, err := a.Stdout.Write(b.Bytes())
	return err
}

// list prints v as a document, its items one a line with jsonl, or a table.
func list[T any](a *app, v any, items []T, human func(w io.Writer)) error {
	if a.output != formatLines {
		return a.show(v, human)
	}
	for _, it := range items {
		if err := a.document(it); err != nil {
			return err
		}
	}
	return nil
}

// say is a line of talk, on standard error, for a person only.
func (a *app) say(format string, args ...any) {
	if a.personal && !a.machine() {
		fmt.Fprintf(a.Stderr, format+"\n", args...)
	}
}

// table is rows of text in aligned columns. Cells come from the log and from
// providers, so control characters never reach the terminal.
type table struct {
	rows   [][]string
	colour bool
}

func (a *app) table(head ...string) *table {
	return &table{rows: [][]string{head}, colour: a.colour}
}

func (t *table) add(cells ...string) {
	for i, c := range cells {
		cells[i] = oneLine(c)
		if c == "" {
			cells[i] = "-"
		}
	}
	t.rows = append(t.rows, cells)
}

// printOr prints the table, or, if it has no rows, the sentence that says so and
// what to type next.
func (t *table) printOr(w io.Writer, none string) {
	if len(t.rows) <= 1 {
		fmt.Fprintln(w, none)
		return
	}
	t.print(w)
}

func (t *table) print(w io.Writer) {
	width := map[int]int{}
	for _, r := range t.rows {
		for i, c := range r {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, r := range t.rows {
		var b strings.Builder
		for i, c := range r {
			b.WriteString(t.paint(c))
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+3))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// paint colours the words that say how something stands; the word is always
// there, so nothing is said by colour alone.
func (t *table) paint(c string) string {
	if !t.colour {
		return c
	}
	code := map[string]string{
		"running": "32", "ok": "32", "succeeded": "32", "paused": "36", "starting": "36", "warn": "33", "stopping": "33", "retiring": "33",
		"uncertain": "35;1", "held": "35;1", "fail": "31", "failed": "31", "stuck": "31", "written-off": "31",
	}[c]
	if code == "" {
		return c
	}
	return "\x1b[" + code + "m" + c + "\x1b[0m"
}

// facts prints aligned "name: value" lines; empty values are left out.
func facts(w io.Writer, kv ...string) {
	width := 0
	for i := 0; i+1 < len(kv); i += 2 {
		if kv[i+1] != "" {
			width = max(width, len(kv[i]))
		}
	}
	for i := 0; i+1 < len(kv); i += 2 {
		if kv[i+1] != "" {
			fmt.Fprintf(w, "%-*s  %s\n", width, kv[i], oneLine(kv[i+1]))
		}
	}
}
