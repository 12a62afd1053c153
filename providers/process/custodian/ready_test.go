//go:build linux

package custodian

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/events"
	"berth/providers/process/seatdir"
)

func signalOf(t *testing.T, sign *events.ReadySign) *signal {
	t.Helper()
	c := &custodian{Post: NewPost(t.TempDir())}
	c.start.Seat.Ready = sign
	return newSignal(c)
}

// A line on the descriptor is the sign; its end without one is none. What was
// said is kept in the seat's directory for whoever asks later.
func TestSignByDescriptor(t *testing.T) {
	for said, want := range map[string]bool{"ready\n": true, "\n": true, "ready": false, "": false, strings.Repeat("x", signLine) + "\n": false} {
		s := signalOf(t, &events.ReadySign{Kind: events.SignFD})
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		s.listen(r, os.Getpid())
		if _, err := w.WriteString(said); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		select {
		case <-s.heard:
		case <-time.After(time.Minute):
			t.Fatal("its end is not heard")
		}
		if got := s.now() != nil; got != want {
			t.Errorf("%.10q: ready is %t", said, got)
		}
		var kept events.Readiness
		if err := s.c.Dir.ReadJSON(seatdir.FileReady, &kept); (err == nil) != want {
			t.Errorf("%.10q: kept %+v, %v", said, kept, err)
		}
	}
}

// A pattern is found in any chunks, without colours and carriage returns, and
// not across more than the window.
func TestSignByPattern(t *testing.T) {
	s := signalOf(t, &events.ReadySign{Kind: events.SignPattern, Pattern: "^server ready$"})
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
	if signalOf(t, &events.ReadySign{Kind: events.SignFD}).matcher() != nil || signalOf(t, nil).matcher() != nil {
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
	o.watch(signalOf(t, &events.ReadySign{Kind: events.SignPattern, Pattern: "up"}).matcher(), func() { found++ })
	for range 3 {
		_, _ = o.Write([]byte("it is up\n"))
	}
	if found != 1 {
		t.Errorf("called %d times", found)
	}
}

// Only sockets that listen on the port count, of both families.
func TestListeners(t *testing.T) {
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 222 1 0 100 0 0 10 0
   2: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 333 1
   3: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 444 1
   4: short
`
	if got := listeners(strings.NewReader(table), 8080); !slices.Equal(got, []string{"111", "333"}) {
		t.Errorf("%q", got)
	}
}
