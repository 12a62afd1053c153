package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"berth/events"
	"berth/events/fault"
)

// errorBody is an error as a script reads it. Every field is always there.
type errorBody struct {
	Code      fault.Code     `json:"code"`
	Message   string         `json:"message"`
	Hint      string         `json:"hint"`
	Outcome   fault.Outcome  `json:"outcome"`
	Retryable bool           `json:"retryable"`
	Details   []fault.Detail `json:"details"`
	ID        string         `json:"id"`
}

// printError says what went wrong on standard error: two lines for a person,
// one JSON line with -o json or jsonl.
func (a *app) printError(e *fault.Error, code fault.Exit) {
	if a.machine() {
		b := errorBody{e.Code, e.Message, e.Hint, e.Outcome, e.Retryable, e.Details, e.ID}
		if b.Details == nil {
			b.Details = []fault.Detail{}
		}
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(map[string]errorBody{"error": b}); err == nil {
			_, _ = a.Stderr.Write(line.Bytes())
			return
		}
	}
	fmt.Fprintf(a.Stderr, "berth: error: %s\n", oneLine(e.Message))
	if code == fault.ExitUncertain || e.Outcome == fault.Unknown {
		fmt.Fprintln(a.Stderr, "the outcome is unknown: it may have been done; do not try again blindly")
	}
	for _, hint := range []string{e.Hint, optOut(e)} {
		if hint != "" {
			fmt.Fprintf(a.Stderr, "hint: %s\n", oneLine(hint))
		}
	}
}

// optOut is the option of the process provider that a person may choose where
// this host can't isolate or limit a seat. It is never chosen for him.
func optOut(e *fault.Error) string {
	for _, d := range e.Details {
		if c := d.Facts["check"]; d.Kind == "berth.preflight" && (c == "limits" || c == "isolation") {
			return fmt.Sprintf("if you want it without %s all the same, say so by name: --option %s=none; `berth doctor` shows what this machine can do", c, c)
		}
	}
	return ""
}

// oneLine keeps what others wrote from drawing on the terminal, and from
// reading otherwise than it is.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return shown(r)
	}, s)
}

// paragraphs is oneLine for a text of several lines, which has no end of its own.
func paragraphs(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return shown(r)
	}, strings.TrimRight(s, "\n"))
}

func shown(r rune) rune {
	if events.Steers(r) {
		return '?'
	}
	return r
}

// machine says that a script reads the output. The arguments are looked at
// too, since an error in them may come before the flag was read.
func (a *app) machine() bool {
	if a.output != "" && a.output != formatTable {
		return a.output == formatJSON || a.output == formatLines
	}
	for i, s := range a.Args {
		if s == "--" {
			break
		}
		if s == "-ojson" || s == "-o=json" || s == "--output=json" || s == "-ojsonl" || s == "--output=jsonl" {
			return true
		}
		if (s == "-o" || s == "--output") && i+1 < len(a.Args) && strings.HasPrefix(a.Args[i+1], "json") {
			return true
		}
	}
	return false
}
