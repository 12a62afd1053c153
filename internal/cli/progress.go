package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	barWidth = 30                     // cells of a progress bar
	barEvery = 200 * time.Millisecond // between two pictures of it
)

// progress draws a bar on one line of a person's terminal and takes it away
// at the end. Scripts and machines see nothing of it.
type progress struct {
	w     io.Writer // nil draws nothing
	clock func() time.Time
	drawn time.Time
	width int // of the widest picture so far; zero: there is none
}

func (a *app) progress() *progress {
	p := &progress{clock: time.Now}
	if a.personal && !a.machine() {
		p.w = a.Stderr
	}
	return p
}

// at says how many of how many bytes are there.
func (p *progress) at(done, total int64) {
	now := p.clock()
	if p.w == nil || p.width > 0 && now.Sub(p.drawn) < barEvery && done < total {
		return
	}
	b := bar(done, total)
	p.drawn, p.width = now, max(p.width, len(b))
	fmt.Fprintf(p.w, "\r%-*s", p.width, b)
}

// end takes the bar away, whatever came of it.
func (p *progress) end() {
	if p.width > 0 {
		fmt.Fprintf(p.w, "\r%*s\r", p.width, "")
		p.width = 0
	}
}

// bar is the picture: cells, per cent, and bytes. A total that is not known
// yet is an empty bar.
func bar(done, total int64) string {
	part := 0.0
	if total > 0 {
		part = min(max(float64(done)/float64(total), 0), 1)
	}
	full := int(part * barWidth)
	return fmt.Sprintf("[%s%s] %3d%%  %s of %s ", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), int(part*100), humanSize(done), humanSize(total))
}
