package cli

import (
	"strings"
	"testing"

	"berth/internal/screen"
)

// Whoever leaves a terminal still sees all that it showed, and what is said
// then stands below it, whatever the seat's program asked of the terminal.
func TestLeavingWritesOverNothing(t *testing.T) {
	for name, painted := range map[string]string{
		"lines":            "\r\n\r\n\r\none\r\ntwo\r\n$ ",
		"the cursor above": "\r\n\r\n\r\none\r\ntwo\r\n$ \x1b[1;1H",
		"margins":          "\r\n\r\n\r\none\r\ntwo\r\n$ \x1b[1;2r\x1b[2;1H",
		"origin mode":      "\r\n\r\n\r\none\r\ntwo\r\n$ \x1b[2;3r\x1b[?6h\x1b[1;1H",
	} {
		s := screen.New(10, 40)
		_, _ = s.Write([]byte(painted + leaveScreen + "left demo; it goes on\r\n"))
		got := strings.Join(s.Lines(), "\n")
		if want := "two\n$"; !strings.Contains(got, want) || !strings.HasSuffix(strings.TrimSpace(got), "left demo; it goes on") || strings.Contains(got, "$ left") {
			t.Errorf("%s: the screen shows\n%s", name, got)
		}
		s.Close()
	}
}
