package screen

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// again is the screen of somebody who sees a repaint and nothing else.
func again(s *Screen) *Screen {
	late := New(s.Rows(), s.Cols())
	// A terminal in any state: the other screen, wrong modes, margins, colours.
	_, _ = late.Write([]byte("\x1b[?1049h\x1b[2;4r\x1b[31mold\x1b[?25l\x1b(0\x1b[?2004h"))
	_, _ = late.Write(s.Repaint())
	return late
}

func TestRepaintShowsTheWholeScreen(t *testing.T) {
	for name, text := range map[string]string{
		"lines":            "one\r\ntwo\r\n",
		"colours":          "\x1b[1;31mred\x1b[0m plain \x1b[48;5;20mblue\x1b[38;2;1;2;3mtrue",
		"alternate screen": "shell\r\n\x1b[?1049h\x1b[H\x1b[2Jeditor\x1b[10;3Hhere",
		"left again":       "shell\r\n\x1b[?1049heditor\x1b[?1049l$ ",
		"wide":             "日本語 ok e\u0301 👍🏽 ",
		"line drawing":     "\x1b(0lqqk\x1b(B done",
		"margins":          "\x1b[3;6r\x1b[3;1Ha\r\nb\r\nc\r\nd\r\ne\r\nf",
		"hidden cursor":    "\x1b[?25l\x1b[5;5H*",
		"modes":            "\x1b[?1h\x1b=\x1b[?1002h\x1b[?1006h\x1b[?2004h",
		"title":            "\x1b]2;what I do\x07x",
		"full line":        strings.Repeat("x", 80),
	} {
		s := New(24, 80)
		_, _ = s.Write([]byte(text))
		late := again(s)
		if a, b := s.emu.Render(), late.emu.Render(); a != b {
			t.Errorf("%s: the repaint shows\n%q\nnot\n%q", name, b, a)
		}
		if a, b := s.emu.CursorPosition(), late.emu.CursorPosition(); a != b {
			t.Errorf("%s: the cursor is at %v, not %v", name, b, a)
		}
		if s.emu.CursorHidden() != late.emu.CursorHidden() || s.emu.IsAltScreen() != late.emu.IsAltScreen() || s.title != late.title || s.keypad != late.keypad || s.sets != late.sets {
			t.Errorf("%s: the state differs", name)
		}
		for _, m := range kept {
			if s.modes[m] != late.modes[m] {
				t.Errorf("%s: mode %d is %t, not %t", name, m, late.modes[m], s.modes[m])
			}
		}
		// What comes next does the same to both.
		next := []byte("next\x1b[2;2Hq\r\n\n\n\n\n\n")
		_, _ = s.Write(next)
		_, _ = late.Write(next)
		if a, b := s.emu.Render(), late.emu.Render(); a != b {
			t.Errorf("%s: what follows shows\n%q\nnot\n%q", name, b, a)
		}
		s.Close()
		late.Close()
	}
}

// Scenario 59: bytes cut anywhere show the same, and whoever takes a repaint
// at a cut and goes on with the rest sees the same.
func TestBytesCutAnywhere(t *testing.T) {
	text := []byte("\x1b[1;32mgrün\x1b[0m 日本語 e\u0301 \x1b]2;títle\x07\x1b[?1049h\x1b[3;3H👍🏽 \x1b[38;2;10;20;30m€\x1b[0m\x1b(0q\x1b(Bend")
	whole := New(24, 80)
	defer whole.Close()
	_, _ = whole.Write(text)
	for cut := range text {
		s := New(24, 80)
		_, _ = s.Write(text[:cut])
		late := again(s)
		_, _ = late.Write(text[cut-s.Pending():])
		_, _ = s.Write(text[cut:])
		for who, got := range map[string]*Screen{"the screen": s, "the late one": late} {
			if a, b := whole.emu.Render(), got.emu.Render(); a != b {
				t.Fatalf("cut at %d, %s shows\n%q\nnot\n%q", cut, who, b, a)
			}
			got.Close()
		}
	}
}

func TestNoBytesBreakIt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := New(24, 80)
	defer s.Close()
	alphabet := []byte("\x1b\x1b\x1b[[;?0123456789mHJKhlr(0B\x0e\x0f\r\n\t c7\xe2\x82\xac")
	for range 60 {
		b := make([]byte, 300)
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		_, _ = s.Write(b)
		s.Resize(r.IntN(300), r.IntN(600))
		if !bytes.HasPrefix(s.Repaint(), []byte("\x18")) && s.Failed == 0 {
			t.Fatal("no repaint")
		}
	}
	_, _ = s.Write([]byte("\x1b[6n\x1b[c")) // questions do not block
	if s.Rows() < MinRows || s.Cols() > MaxCols {
		t.Fatalf("%d x %d", s.Rows(), s.Cols())
	}
}

func TestPendingIsBounded(t *testing.T) {
	s := New(24, 80)
	defer s.Close()
	_, _ = s.Write(append([]byte("\x1b]2;"), bytes.Repeat([]byte("x"), 3*holdBack)...))
	if s.Pending() > holdBack {
		t.Fatalf("%d bytes wait", s.Pending())
	}
	_, _ = s.Write(bytes.Repeat([]byte{0x80}, 3*holdBack))
	if s.Pending() > holdBack {
		t.Fatalf("%d bytes wait", s.Pending())
	}
}
