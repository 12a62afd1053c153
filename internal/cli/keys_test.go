package cli

import (
	"strings"
	"testing"
)

func TestKeysToLeave(t *testing.T) {
	for s, want := range map[string]string{"ctrl-]": "\x1d", "ctrl-p,ctrl-q": "\x10\x11", "CTRL-A,d": "\x01d", `ctrl-\`: "\x1c", "~,.": "~."} {
		if got, err := parseKeys(s); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "ctrl-", "ctrl-1", "ab", "é", "a,,b", strings.Repeat("a,", maxKeys) + "a"} {
		if got, err := parseKeys(s); err == nil {
			t.Errorf("%q is %q", s, got)
		}
	}
}

// What is typed reaches the seat unchanged but for the keys to leave, wherever
// it is cut.
func TestTypingIsFiltered(t *testing.T) {
	for _, c := range []struct{ keys, typed, want string }{
		{"\x1d", "abc\x1dnot this", "abc"},
		{"\x10\x11", "a\x10b\x10\x10\x11x", "a\x10b\x10"},
		{"aab", "aaaab!", "aa"},
		{"abab", "aabababab", "aab"[:1]},
		{"\x10\x11", "日本\x10語", "日本\x10語"},
	} {
		for cut := range len(c.typed) {
			f := keyFilter{keys: []byte(c.keys)}
			out, leave := f.pass([]byte(c.typed[:cut]))
			if !leave {
				var more []byte
				more, leave = f.pass([]byte(c.typed[cut:]))
				out = append(out, more...)
			}
			if string(out) != c.want || leave != strings.Contains(c.typed, c.keys) {
				t.Errorf("keys %q, typed %q cut at %d: %q, leaves %t; want %q", c.keys, c.typed, cut, out, leave, c.want)
			}
		}
	}
}

func FuzzParseKeys(f *testing.F) {
	for _, s := range []string{"ctrl-]", "ctrl-p,ctrl-q", "a", ",", "ctrl-é"} {
		f.Add(s, "typed\x1d")
	}
	f.Fuzz(func(t *testing.T, s, typed string) {
		keys, err := parseKeys(s)
		if err != nil {
			return
		}
		if len(keys) == 0 || len(keys) > maxKeys {
			t.Fatalf("%d keys", len(keys))
		}
		out, leave := (&keyFilter{keys: keys}).pass([]byte(typed))
		if at := strings.Index(typed, string(keys)); leave != (at >= 0) || leave && string(out) != typed[:at] {
			t.Fatalf("keys %q, typed %q: %q, %t", keys, typed, out, leave)
		}
	})
}
