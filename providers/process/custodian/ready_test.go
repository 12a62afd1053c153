//go:build linux

package custodian

import (
	"strings"
	"testing"

	"berth/events"
	"berth/providers/process/seatdir"
)

func signOf(t *testing.T, want *events.ReadySign) *Sign {
	t.Helper()
	return newSign(seatdir.Dir{Path: t.TempDir()}, want)
}

// What is given is kept in the seat's directory for whoever asks later, once; a
// kind that is given otherwise is not given by that.
func TestASignIsKept(t *testing.T) {
	for kind, want := range map[events.SignKind]string{events.SignFD: "it wrote a line on descriptor 3", events.SignPort: "it listens on port 80", events.SignPattern: ""} {
		s := signOf(t, &events.ReadySign{Kind: kind, Port: 80, Pattern: "x"})
		s.Give()
		s.Give()
		var kept events.Readiness
		err := s.dir.ReadJSON(seatdir.FileReady, &kept)
		if (err == nil) != (want != "") || kept.Evidence != want || (s.now() != nil) != (want != "") {
			t.Errorf("%s: kept %+v, %v", kind, kept, err)
		}
	}
	none := signOf(t, nil)
	if none.Give(); none.now() != nil {
		t.Error("a seat without a sign is ready by one")
	}
}

// A pattern is found in any chunks, without colours and carriage returns, and
// not across more than the window.
func TestSignByPattern(t *testing.T) {
	s := signOf(t, &events.ReadySign{Kind: events.SignPattern, Pattern: "^server ready$"})
	match := func(chunks ...string) bool {
		m := s.matcher()
		for i, c := range chunks {
			if m.matches([]byte(c)) {
				return i == len(chunks)-1 // not before the last
			}
		}
		return false
	}
	for _, chunks := range [][]string{
		{"server ready\n"}, {"boot\r\nserv", "er rea", "dy\r\n"}, {"\x1b[32mserver \x1b[1mready\x1b[0m\r\n"}, {strings.Repeat("noise\n", 10_000), "server ready\n"},
		{strings.Repeat("noise\n", 10_000) + "server ready\n" + strings.Repeat("noise\n", 1000)},
	} {
		if !match(chunks...) {
			t.Errorf("%.40q: no match", chunks)
		}
	}
	for _, chunks := range [][]string{{"the server ready\n"}, {"server", strings.Repeat("x", matchWindow), " ready\n"}, {""}} {
		if match(chunks...) {
			t.Errorf("%.40q: a match", chunks)
		}
	}
	if signOf(t, &events.ReadySign{Kind: events.SignFD}).matcher() != nil || signOf(t, nil).matcher() != nil {
		t.Error("a pattern is looked for where it is not the sign")
	}
}

// The output calls once, with the match, and looks no more.
func TestOutputFindsThePattern(t *testing.T) {
	o, err := newOutput(seatdir.Dir{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	found := 0
	o.watch(signOf(t, &events.ReadySign{Kind: events.SignPattern, Pattern: "up"}).matcher(), func() { found++ })
	for range 3 {
		_, _ = o.Write([]byte("it is up\n"))
	}
	if found != 1 {
		t.Errorf("called %d times", found)
	}
}
