package acp

import (
	"os"
	"strings"
	"testing"
)

// puts gives lines and returns the prompts that they make.
func puts(y *typing, lines ...string) (out []typed) {
	for _, l := range lines {
		if t, whole := y.take(l); whole {
			out = append(out, t)
		}
	}
	return out
}

// A paste of several lines is one prompt, as is a line that goes on; each other
// line is one of its own.
func TestPromptsOfSeveralLines(t *testing.T) {
	for name, c := range map[string]struct{ lines, want []string }{
		"lines":                   {[]string{"one", "", "two"}, []string{"one", "", "two"}},
		"a paste":                 {[]string{pasteBegin + "if x {", `	y\`, "}" + pasteEnd, "next"}, []string{"if x {\n\ty\\\n}", "next"}},
		"within a line":           {[]string{"look: " + pasteBegin + "a", "b" + pasteEnd + " and say"}, []string{"look: a\nb and say"}},
		"two in a line":           {[]string{pasteBegin + "a" + pasteEnd + " " + pasteBegin + "b", "c" + pasteEnd}, []string{"a b\nc"}},
		"an end of its own":       {[]string{"a" + pasteEnd}, []string{"a" + pasteEnd}},
		"it goes on":              {[]string{`one\`, `two\`, "three", "four"}, []string{"one\ntwo\nthree", "four"}},
		"a paste that goes on":    {[]string{pasteBegin + "a", "b" + pasteEnd + `\`, "c"}, []string{"a\nb\nc"}},
		"an empty line in a text": {[]string{`a\`, `\`, "b"}, []string{"a\n\nb"}},
	} {
		got := puts(&typing{}, c.lines...)
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i, w := range c.want {
			if got[i].text != w || got[i].why != "" {
				t.Errorf("%s: %q, want %q", name, got[i], w)
			}
		}
	}
}

// What is too long is refused whole, and the next prompt begins anew.
func TestPromptsAreBounded(t *testing.T) {
	line := strings.Repeat("x", 1000)
	full := []string{pasteBegin + line}
	size := len(line)
	for ; size < MaxPrompt-1500; size += 1 + len(line) {
		full = append(full, line)
	}
	last := strings.Repeat("y", MaxPrompt-size-1)
	long := strings.Repeat("x", MaxLine)
	for name, c := range map[string]struct {
		lines []string
		ok    bool
	}{
		"at the limit":         {append(full[:len(full):len(full)], last+pasteEnd), true},
		"beyond it":            {append(full[:len(full):len(full)], last+"y"+pasteEnd), false},
		"a line that was cut":  {[]string{pasteBegin + "a", long + "x", "b" + pasteEnd}, false},
		"one that goes on far": {[]string{long + `\`, "b"}, false},
	} {
		y := &typing{}
		got := puts(y, c.lines...)
		if len(got) != 1 || (got[0].why == "") != c.ok || c.ok && len(got[0].text) != MaxPrompt {
			t.Errorf("%s: %d prompts, %.60q", name, len(got), got)
		}
		if again := puts(y, "next"); len(again) != 1 || again[0] != (typed{text: "next"}) {
			t.Errorf("after %s: %q", name, again)
		}
	}
}

// An interrupt drops a prompt that is not whole, and ends no turn.
func TestAnInterruptDropsWhatWasTyped(t *testing.T) {
	w := enter(t, &robot{}, "", nil)
	w.opens(t)
	w.types(t, pasteBegin+"one")
	w.types(t, "two")
	w.types(t, "three"+pasteEnd)
	if got := <-w.robot.begun; got != "one\ntwo\nthree" {
		t.Errorf("%q is asked", got)
	}
	w.paper.shows(t, "end_turn") // nothing is under way
	w.types(t, `half\`)
	const early = "nothing is under way"
	for n := 1; !strings.Contains(w.paper.String(), "what was typed is dropped"); n++ {
		w.interrupts <- os.Interrupt // it may be heard before what was typed
		for s := w.paper.String(); !strings.Contains(s, "is dropped") && strings.Count(s, early) < n; s = w.paper.String() {
			<-w.paper.news
		}
	}
	w.types(t, "whole")
	if got := <-w.robot.begun; got != "whole" {
		t.Errorf("%q is asked", got)
	}
}
