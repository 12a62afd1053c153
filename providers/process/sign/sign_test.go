//go:build linux

package sign

import (
	"slices"
	"strings"
	"testing"
)

// A line is the sign; its end without one is none, nor is one that is too long.
func TestLine(t *testing.T) {
	for said, want := range map[string]bool{
		"ready\n": true, "\n": true, "ready": false, "": false,
		strings.Repeat("x", MaxLine-1) + "\n": true, strings.Repeat("x", MaxLine) + "\n": false,
	} {
		if got := Line(strings.NewReader(said)); got != want {
			t.Errorf("%.10q: %t", said, got)
		}
	}
}

func TestPortIsNotWaitedForForEver(t *testing.T) {
	done := make(chan struct{})
	close(done)
	if Port(1, 65535, done) {
		t.Error("a port on which nobody listens")
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
