package cli

import (
	"bytes"
	"strings"
)

// maxKeys bounds the keys that leave a session.
const maxKeys = 8

// parseKeys reads ctrl-LETTER, ctrl-], ctrl-\, ctrl-^, ctrl-_ and single
// characters, with commas between them.
func parseKeys(s string) ([]byte, error) {
	var out []byte
	for k := range strings.SplitSeq(s, ",") {
		name, ctrl := strings.CutPrefix(strings.ToLower(k), "ctrl-")
		switch {
		case ctrl && len(name) == 1 && (name[0] >= 'a' && name[0] <= 'z' || strings.Contains(`[\]^_@`, name)):
			out = append(out, strings.ToUpper(name)[0]&0x1f)
		case !ctrl && len(k) == 1 && k[0] > ' ' && k[0] < 0x7f:
			out = append(out, k[0])
		default:
			return nil, usage("--detach-keys %q: keys are ctrl-LETTER, ctrl-] or single characters, with commas between them", clip(s))
		}
	}
	if len(out) > maxKeys {
		return nil, usage("--detach-keys: at most %d keys", maxKeys)
	}
	return out, nil
}

// keyFilter finds the keys to leave in what is typed, wherever it is cut. What
// may be their beginning is kept back until it is known.
type keyFilter struct {
	keys []byte
	held int // how many of the keys were typed just now
}

// pass returns what goes on to the seat, and whether the person leaves.
func (f *keyFilter) pass(p []byte) (out []byte, leave bool) {
	for _, b := range p {
		for f.held > 0 && b != f.keys[f.held] {
			// What was held back is not the keys; a later part of it may be.
			typed := append(bytes.Clone(f.keys[:f.held]), b)
			out = append(out, typed[0])
			f.held = longestStart(f.keys, typed[1:len(typed)-1])
			out = append(out, typed[1:len(typed)-1-f.held]...)
		}
		if b != f.keys[f.held] {
			out = append(out, b)
			continue
		}
		if f.held++; f.held == len(f.keys) {
			return out, true
		}
	}
	return out, false
}

// longestStart is the longest end of p that is a beginning of keys.
func longestStart(keys, p []byte) int {
	for n := min(len(p), len(keys)-1); n > 0; n-- {
		if bytes.HasPrefix(keys, p[len(p)-n:]) {
			return n
		}
	}
	return 0
}

// read reads what is typed until it ends. It is the one reader of standard
// input and outlives sessions.
func (v *viewer) read() {
	f := keyFilter{keys: v.leave}
	b := make([]byte, 4096)
	for {
		n, err := v.a.Stdin.Read(b)
		out, leave := f.pass(b[:n])
		if len(out) > 0 {
			v.typed <- out
		}
		if leave {
			close(v.left)
			return
		}
		if err != nil {
			return
		}
	}
}
