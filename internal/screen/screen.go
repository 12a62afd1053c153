package screen

import (
	"bytes"
	"io"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// The emulator is kept within these sizes, in cells: it fails on very small
// ones, and its memory grows with the product. A terminal may be larger or
// smaller; its repaint then shows what fits.
const (
	MinRows, MinCols = 5, 10
	MaxRows, MaxCols = 200, 500
)

// scrollback is how many lines that left the screen are kept. Nobody sees
// them; the library takes none for its default of thousands.
const scrollback = 1

// holdBack bounds the bytes that wait for the next Write, because a character
// or a sequence is not finished: what is longer goes on without waiting.
const holdBack = 4096

// Screen is one terminal's screen. It is not safe for concurrent use.
type Screen struct {
	emu     *vt.Emulator
	drained chan struct{}
	rest    []byte // what is not finished
	pen     uv.Style
	modes   map[ansi.DECMode]bool
	keypad  bool
	margins [2]int // of scrolling, 1-based; zero: the whole screen
	sets    [2]byte
	shifted bool
	title   string
	last    byte // the newest one that the emulator took
	// Failed counts how often the emulator had to be made anew.
	Failed int
}

// New is an empty screen.
func New(rows, cols int) *Screen {
	s := &Screen{}
	s.reset(rows, cols)
	return s
}

func (s *Screen) reset(rows, cols int) {
	s.Close()
	s.emu = vt.NewEmulator(clamp(cols, MinCols, MaxCols), clamp(rows, MinRows, MaxRows))
	s.emu.SetScrollbackSize(scrollback)
	s.rest, s.title = nil, ""
	s.forget()
	s.listen()
	// Questions of programs are answered into a pipe that blocks; whoever is
	// attached has a terminal that answers them.
	emu, drained := s.emu, make(chan struct{})
	s.drained = drained
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, emu)
	}()
}

func clamp(n, least, most int) int { return min(max(n, least), most) }

// forget is what a full reset does to the modes.
func (s *Screen) forget() {
	s.pen, s.modes, s.keypad, s.margins = uv.Style{}, map[ansi.DECMode]bool{}, false, [2]int{}
	s.sets, s.shifted = [2]byte{'B', 'B'}, false
}

// listen keeps what the emulator knows and does not tell. A handler that
// answers false leaves the work to the emulator's own.
func (s *Screen) listen() {
	s.emu.SetCallbacks(vt.Callbacks{
		Title:       func(t string) { s.title = t },
		EnableMode:  func(m ansi.Mode) { s.mode(m, true) },
		DisableMode: func(m ansi.Mode) { s.mode(m, false) },
	})
	s.emu.RegisterCsiHandler('m', func(p ansi.Params) bool {
		uv.ReadStyle(p, &s.pen)
		return false
	})
	s.emu.RegisterCsiHandler('r', func(p ansi.Params) bool {
		top, _, _ := p.Param(0, 1)
		bottom, _, ok := p.Param(1, s.emu.Height())
		if top, bottom = max(top, 1), min(bottom, s.emu.Height()); !ok || bottom < 1 {
			bottom = s.emu.Height()
		}
		if top < bottom {
			s.margins = [2]int{top, bottom}
		}
		return false
	})
	soft := func() bool { s.forget(); return false }
	s.emu.RegisterEscHandler('c', soft)
	for i, intro := range []byte{'(', ')'} {
		for _, set := range []byte{'0', 'A', 'B'} {
			s.emu.RegisterEscHandler(ansi.Command(0, intro, set), func() bool { s.sets[i] = set; return false })
		}
	}
}

func (s *Screen) mode(m ansi.Mode, on bool) {
	d, ok := m.(ansi.DECMode)
	if !ok {
		return
	}
	if m == ansi.ModeNumericKeypad {
		s.keypad = on
		return
	}
	s.modes[d] = on
}

// Write takes output of the terminal's program, cut anywhere. What may be the
// beginning of a character or of a sequence waits for its end (Pending).
func (s *Screen) Write(p []byte) (int, error) {
	n := len(p)
	if len(s.rest) > 0 {
		p = append(s.rest, p...)
	}
	cut := len(p) - unfinished(p)
	s.rest = bytes.Clone(p[cut:])
	s.feed(p[:cut])
	return n, nil
}

// Pending is how many bytes at the end of what was written are not shown yet:
// who goes on from a repaint needs them.
func (s *Screen) Pending() int { return len(s.rest) }

// unfinished is the length of the tail that may go on: an escape sequence
// without its end, or characters beyond ASCII, which others may join.
func unfinished(p []byte) int {
	tail := p[max(0, len(p)-holdBack):]
	if i := bytes.LastIndexByte(tail, 0x1b); i >= 0 {
		if _, _, n, state := ansi.DecodeSequence(tail[i:], ansi.NormalState, nil); state != ansi.NormalState || n == 1 {
			return len(tail) - i
		}
	}
	i := len(tail)
	for i > 0 && tail[i-1] >= 0x80 {
		i--
	}
	if i == 0 {
		return 0 // endless; nothing is lost by going on
	}
	return len(tail) - i
}

// feed never fails: an emulator that panics is made anew, and what it showed
// comes back with what the program writes next.
func (s *Screen) feed(p []byte) {
	defer s.recovered()
	for _, b := range p {
		if b == 0x0e || b == 0x0f {
			s.shifted = b == 0x0e
		}
	}
	if len(p) > 0 {
		s.last = p[len(p)-1]
	}
	_, _ = s.emu.Write(p)
}

func (s *Screen) recovered() {
	if recover() != nil {
		s.Failed++
		s.reset(s.emu.Height(), s.emu.Width())
	}
}

// Resize gives the screen another size, as a terminal does: text is cut and
// not laid out anew, and scrolling has no margins.
func (s *Screen) Resize(rows, cols int) {
	defer s.recovered()
	s.margins = [2]int{}
	s.emu.Resize(clamp(cols, MinCols, MaxCols), clamp(rows, MinRows, MaxRows))
}

// Skip says that output is missing here: what was begun is given up.
func (s *Screen) Skip() {
	s.rest = nil
	s.feed([]byte{0x18}) // CAN ends an unfinished sequence
}

// Close ends the emulator.
func (s *Screen) Close() {
	if s.emu == nil {
		return
	}
	// Its own Close is not safe beside Read; closing the pipe that Read reads is.
	if pipe, ok := s.emu.InputPipe().(io.Closer); ok {
		_ = pipe.Close()
		<-s.drained
	}
}

// Full says that a program owns the whole screen (the alternate one).
func (s *Screen) Full() bool { return s.emu.IsAltScreen() }

// Rows and Cols are the size within the limits.
func (s *Screen) Rows() int { return s.emu.Height() }

// Cols is the number of columns.
func (s *Screen) Cols() int { return s.emu.Width() }
