package acp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

const (
	// MaxLine bounds a line that is typed, in bytes: a terminal keeps one more, and
	// of a longer line nothing but that.
	MaxLine = 4094
	// MaxPrompt bounds a prompt of several lines, in bytes.
	MaxPrompt = 64 << 10
	// maxRead bounds a line of an input that is no terminal.
	maxRead = 64 << 10
)

// What a terminal puts around a paste, when it was asked to.
const (
	askPastes  = "\x1b[?2004h"
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// lines reads what is typed, until its end or a line that is too long.
func lines(ctx context.Context, r io.Reader) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		s := bufio.NewScanner(r)
		s.Buffer(make([]byte, 0, 4096), maxRead)
		for s.Scan() {
			select {
			case out <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// tellPastes asks the terminals that look on to mark what is pasted. An output
// that is no terminal is told nothing.
func tellPastes(w io.Writer, shown *os.File) {
	if term.IsTerminal(int(shown.Fd())) {
		_, _ = io.WriteString(w, askPastes)
	}
}

// typing puts prompts together from lines: one line is one, but for a paste,
// which is one however many lines it has, and a line that ends with a
// backslash, which goes on in the next.
type typing struct {
	text    strings.Builder
	parts   int
	pasting bool
	why     string // it can't be sent; empty: it can
}

// typed is a prompt as it was put together, or why it can't be sent.
type typed struct{ text, why string }

// take adds a line; whole says that it was the last one of t.
func (y *typing) take(line string) (t typed, whole bool) {
	if len(line) > MaxLine {
		y.why = fmt.Sprintf("a line has at most %d bytes here, and may have been cut", MaxLine)
	}
	line = y.unmark(line)
	goesOn := y.pasting
	if before, found := strings.CutSuffix(line, `\`); found && !goesOn {
		line, goesOn = before, true
	}
	if y.parts > 0 {
		line = "\n" + line
	}
	y.parts++
	if y.text.Len()+len(line) > MaxPrompt {
		y.why = fmt.Sprintf("a prompt has at most %d bytes", MaxPrompt)
	}
	if y.why == "" {
		y.text.WriteString(line)
	}
	if goesOn {
		return typed{}, false
	}
	t = typed{y.text.String(), y.why}
	*y = typing{}
	return t, true
}

// unmark leaves out where a paste begins and ends, and notes it.
func (y *typing) unmark(line string) string {
	var out strings.Builder
	for {
		mark := pasteBegin
		if y.pasting {
			mark = pasteEnd
		}
		before, after, found := strings.Cut(line, mark)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		y.pasting, line = !y.pasting, after
	}
}

// drop forgets what is not whole, and says whether there was any.
func (y *typing) drop() bool {
	some := y.parts > 0
	*y = typing{}
	return some
}
