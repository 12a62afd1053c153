package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// corpus is what real programs wrote (record.py there), each beside what
// xterm.js shows for it (golden.js).
const corpus = "testdata/xterm"

// differing are the recordings that show a known difference: the lines, from
// 0, that are not what xterm.js shows, and the words of docs/terminals.md about
// it. A difference that is gone has to be taken off both lists.
var differing = map[string]struct {
	lines  []int
	cursor bool
	says   string
}{
	"wide":                  {lines: []int{11}, says: "half of a wide character that is deleted"},
	"monitor":               {lines: []int{7, 8, 9}, says: "erasing to the end of a line whose last column was just written"},
	"difference-wide-last":  {lines: []int{0, 1, 2}, cursor: true, says: "right behind one that fills the last two columns"},
	"difference-narrower":   {lines: []int{1, 3, 4, 5}, cursor: true, says: "a screen that becomes narrower is cut"},
	"difference-left-twice": {lines: []int{4, 9}, cursor: true, says: "on the main screen does not restore the cursor"},
}

// shown is what a terminal shows, as golden.js writes it.
type shown struct {
	Rows      int        `json:"rows"`
	Cols      int        `json:"cols"`
	Alternate bool       `json:"alternate"`
	Cursor    [2]int     `json:"cursor"`
	Lines     [][]styled `json:"lines"`
}

// styled is a run of cells of one style: text, and "foreground/background/flags".
type styled [2]string

// showing is what the emulator shows, in the same form.
func showing(s *Screen) shown {
	p := s.emu.CursorPosition()
	out := shown{Rows: s.Rows(), Cols: s.Cols(), Alternate: s.emu.IsAltScreen(), Cursor: [2]int{p.Y, p.X}}
	for y := range s.Rows() {
		var cells []styled
		for x := 0; x < s.Cols(); {
			c := s.emu.CellAt(x, y)
			if c == nil || c.Width == 0 {
				x++
				continue
			}
			cells = append(cells, styled{c.Content, styleOf(c.Style)})
			x += c.Width
		}
		for len(cells) > 0 && cells[len(cells)-1] == (styled{" ", "-/-/"}) {
			cells = cells[:len(cells)-1]
		}
		runs := []styled{}
		for _, c := range cells {
			if n := len(runs); n > 0 && runs[n-1][1] == c[1] {
				runs[n-1][0] += c[0]
			} else {
				runs = append(runs, c)
			}
		}
		out.Lines = append(out.Lines, runs)
	}
	return out
}

func styleOf(s uv.Style) string {
	flags := ""
	for _, f := range []struct {
		name string
		on   bool
	}{
		{"b", s.Attrs&uv.AttrBold != 0}, {"d", s.Attrs&uv.AttrFaint != 0}, {"i", s.Attrs&uv.AttrItalic != 0},
		{"u", s.Underline != 0}, {"k", s.Attrs&(uv.AttrBlink|uv.AttrRapidBlink) != 0}, {"r", s.Attrs&uv.AttrReverse != 0},
		{"h", s.Attrs&uv.AttrConceal != 0}, {"s", s.Attrs&uv.AttrStrikethrough != 0},
	} {
		if f.on {
			flags += f.name
		}
	}
	return colourOf(s.Fg) + "/" + colourOf(s.Bg) + "/" + flags
}

func colourOf(c color.Color) string {
	switch c := c.(type) {
	case nil:
		return "-"
	case ansi.BasicColor:
		return fmt.Sprintf("p%d", c)
	case ansi.IndexedColor:
		return fmt.Sprintf("p%d", c)
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

// play feeds a recording, and gives the terminal the sizes that it was given.
func play(t *testing.T, raw []byte) *Screen {
	t.Helper()
	s := New(24, 80)
	for {
		before, rest, resized := bytes.Cut(raw, []byte("\x00SIZE"))
		_, _ = s.Write(before)
		if !resized {
			return s
		}
		size, after, _ := bytes.Cut(rest, []byte{0})
		var rows, cols int
		if _, err := fmt.Sscanf(string(size), "%d,%d", &rows, &cols); err != nil {
			t.Fatal(err)
		}
		s.Resize(rows, cols)
		raw = after
	}
}

// compare returns the lines, from 0, that differ, and whether something else
// does.
func compare(t *testing.T, who string, got, want shown) (lines []int, cursor bool) {
	t.Helper()
	if got.Rows != want.Rows || got.Cols != want.Cols || got.Alternate != want.Alternate {
		t.Errorf("%s: %dx%d, alternate %t; xterm.js has %dx%d, %t", who, got.Rows, got.Cols, got.Alternate, want.Rows, want.Cols, want.Alternate)
	}
	for y := range got.Lines {
		var line []styled
		if y < len(want.Lines) {
			line = want.Lines[y]
		}
		if !slices.Equal(got.Lines[y], line) {
			lines = append(lines, y)
		}
	}
	return lines, got.Cursor != want.Cursor
}

// Whoever comes late sees what xterm.js shows for all that the program wrote,
// but for the differences that are written down.
func TestARepaintShowsWhatXtermShows(t *testing.T) {
	told, err := os.ReadFile("../../docs/terminals.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(corpus, "*.raw"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".raw")
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden, err := os.ReadFile(strings.TrimSuffix(file, "raw") + "json")
			if err != nil {
				t.Fatal(err)
			}
			var want shown
			if err := json.Unmarshal(golden, &want); err != nil {
				t.Fatal(err)
			}
			s := play(t, raw)
			defer s.Close()
			late := again(s)
			defer late.Close()
			known := differing[name]
			if !strings.Contains(string(told), known.says) {
				t.Errorf("docs/terminals.md does not say %q", known.says)
			}
			for who, got := range map[string]shown{"the emulator": showing(s), "the repaint": showing(late)} {
				lines, cursor := compare(t, who, got, want)
				if !slices.Equal(lines, known.lines) || cursor != known.cursor {
					t.Errorf("%s differs in lines %v, cursor %v (%v), known are %v, %t", who, lines, got.Cursor, want.Cursor, known.lines, known.cursor)
					for _, y := range lines {
						t.Logf("line %d:\n%q", y, got.Lines[y])
						if y < len(want.Lines) {
							t.Logf("xterm.js:\n%q", want.Lines[y])
						}
					}
				}
			}
		})
	}
}

// With BERTH_XTERM, the node_modules that has @xterm/headless, xterm.js itself
// is asked: the goldens are what it shows, and it shows the same for a repaint.
func TestXtermItself(t *testing.T) {
	modules := os.Getenv("BERTH_XTERM")
	if modules == "" {
		t.Skip("XTERM.JS IS NOT ASKED: BERTH_XTERM=.../node_modules with @xterm/headless does it; the stored answers are compared")
	}
	files, err := filepath.Glob(filepath.Join(corpus, "*.raw"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(in []byte, rows, cols int) (out shown, raw []byte) {
		c := exec.CommandContext(t.Context(), "node", filepath.Join(corpus, "golden.js"), fmt.Sprint(rows), fmt.Sprint(cols))
		c.Env, c.Stdin, c.Stderr = append(os.Environ(), "NODE_PATH="+modules), bytes.NewReader(in), os.Stderr
		raw, err := c.Output()
		if err == nil {
			err = json.Unmarshal(raw, &out)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out, raw
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".raw")
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, text := ask(raw, 24, 80)
		if golden, err := os.ReadFile(strings.TrimSuffix(file, "raw") + "json"); err != nil || !bytes.Equal(golden, text) {
			t.Errorf("%s: xterm.js shows something else than is stored (%v)", name, err)
		}
		s := play(t, raw)
		got, _ := ask(s.Repaint(), s.Rows(), s.Cols())
		s.Close()
		lines, cursor := compare(t, name, padded(got), want)
		if known := differing[name]; !slices.Equal(lines, known.lines) || cursor != known.cursor {
			t.Errorf("%s: xterm.js shows for the repaint other lines %v, cursor %v (%v), known are %v, %t", name, lines, got.Cursor, want.Cursor, known.lines, known.cursor)
		}
	}
}

// padded has a line for every row.
func padded(s shown) shown {
	for len(s.Lines) < s.Rows {
		s.Lines = append(s.Lines, []styled{})
	}
	return s
}
