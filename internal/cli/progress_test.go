package cli

import (
	"strings"
	"testing"
	"time"
)

// TestProgressBar (R37): a person sees how far an export is, on one line that
// is gone at the end; a script sees nothing.
func TestProgressBar(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := &progress{w: &out, clock: func() time.Time { return now }}
	p.at(0, 4<<20)
	p.at(1<<20, 4<<20) // too soon
	now = now.Add(barEvery)
	p.at(2<<20, 4<<20)
	p.at(4<<20, 4<<20) // the end is always drawn
	lines := strings.Split(out.String(), "\r")[1:]
	if len(lines) != 3 || !strings.Contains(lines[1], " 50%") || strings.Count(lines[1], "#") != barWidth/2 || !strings.Contains(lines[2], "100%") {
		t.Errorf("%q", lines)
	}
	p.end()
	if s := out.String(); !strings.HasSuffix(s, " \r") || strings.Contains(s, "\n") {
		t.Errorf("%q", s)
	}
	for _, odd := range [][2]int64{{5, 0}, {9, 3}, {-1, 3}} {
		if b := bar(odd[0], odd[1]); strings.Count(b, "#")+strings.Count(b, ".") < barWidth {
			t.Errorf("%v: %q", odd, b)
		}
	}
	quiet := &progress{clock: time.Now}
	quiet.at(1, 2)
	quiet.end()
}
