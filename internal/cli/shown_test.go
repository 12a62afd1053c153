package cli

import (
	"strings"
	"testing"

	"berth/events"
)

// What others wrote (a seat's note, a reason, a provider's words) neither draws
// on a terminal nor reads otherwise than it is; what it says is left as it is.
func TestTextsOfOthersSteerNothing(t *testing.T) {
	hostile := "a\x1b[2J\u009b\u202edeliaf\u202c\u2066x\u2069\u2028y\r\b\x7f\nz\tשלום\u200f"
	for name, show := range map[string]func(string) string{"oneLine": oneLine, "paragraphs": paragraphs} {
		got := show(hostile)
		for _, r := range got {
			if events.Steers(r) && (name == "oneLine" || r != '\n' && r != '\t') {
				t.Errorf("%s: %U in %q", name, r, got)
			}
		}
		if !strings.Contains(got, "deliaf") || !strings.HasSuffix(got, "שלום\u200f") {
			t.Errorf("%s took from what it says: %q", name, got)
		}
	}
	if got := paragraphs("one\n\ttwo\n\n"); got != "one\n\ttwo" {
		t.Errorf("%q", got)
	}
}
