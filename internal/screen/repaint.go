package screen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// kept are the modes that a repaint sets again, beside the cursor's: without
// them keys, mouse and pasted text would reach the program in another form.
var kept = []ansi.DECMode{
	1,                   // cursor keys of applications
	9, 1000, 1002, 1003, // mouse
	1004, 1005, 1006, 1015, 1016, 2004, // focus, how the mouse is told, bracketed paste
}

// Repaint is bytes that show this screen on a terminal in any state: contents
// with colours, which of the two screens it is, cursor, modes, margins of
// scrolling, pen, character sets and title. What follows in the program's
// output, from Pending bytes back, goes on from there.
func (s *Screen) Repaint() (out []byte) {
	defer func() {
		if recover() != nil {
			s.Failed++
			s.reset(s.emu.Height(), s.emu.Width())
			out = []byte("\x1bc")
		}
	}()
	var b strings.Builder
	b.WriteString("\x18\x1b[!p\x1b(B\x1b)B\x0f\x1b[0m\x1b[r")
	if s.emu.IsAltScreen() {
		b.WriteString("\x1b[?1049h")
	} else {
		b.WriteString("\x1b[?1049l")
	}
	b.WriteString("\x1b[H\x1b[2J\x1b[?7l")
	for i, l := range strings.Split(s.emu.Render(), "\n") {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[0m%s", i+1, strings.TrimSuffix(l, "\r"))
	}
	b.WriteString("\x1b[0m")
	if s.title != "" {
		fmt.Fprintf(&b, "\x1b]2;%s\x07", clean(s.title))
	}
	s.paintModes(&b)
	p := s.emu.CursorPosition()
	fmt.Fprintf(&b, "\x1b[%d;%dH", p.Y+1, p.X+1)
	// A character in the last column leaves the cursor on it, and the next one
	// begins a line. Only printing it again brings that about.
	if c := s.emu.CellAt(p.X, p.Y); p.X == s.emu.Width()-1 && s.last > ' ' && s.last < 0x7f && c != nil && c.Content == string(s.last) {
		b.WriteString(c.Style.String() + c.Content + "\x1b[0m")
	}
	b.WriteString(s.pen.String())
	return []byte(b.String())
}

func (s *Screen) paintModes(b *strings.Builder) {
	for _, m := range kept {
		fmt.Fprintf(b, "\x1b[?%d%c", m, onOff(s.modes[m]))
	}
	wrap, told := s.modes[ansi.DECMode(7)]
	fmt.Fprintf(b, "\x1b[?7%c\x1b[?25%c", onOff(wrap || !told), onOff(!s.emu.CursorHidden()))
	if s.keypad {
		b.WriteString("\x1b=")
	} else {
		b.WriteString("\x1b>")
	}
	if s.margins != [2]int{} {
		fmt.Fprintf(b, "\x1b[%d;%dr", s.margins[0], s.margins[1])
	}
	fmt.Fprintf(b, "\x1b(%c\x1b)%c", s.sets[0], s.sets[1])
	if s.shifted {
		b.WriteByte(0x0e)
	}
}

func onOff(on bool) byte {
	if on {
		return 'h'
	}
	return 'l'
}

func clean(title string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return -1
		}
		return r
	}, title)
}

// Lines is the text of the screen without colours, trailing spaces cut.
func (s *Screen) Lines() []string {
	lines := strings.Split(ansi.Strip(s.emu.Render()), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \r")
	}
	return slices.Clip(lines)
}
