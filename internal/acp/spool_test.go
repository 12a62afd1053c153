package acp

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// gate is a terminal that takes nothing until it is opened.
type gate struct {
	open chan struct{}
	got  bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	return g.got.Write(p)
}

// Whoever writes never waits; at the end all is shown, in its order, and what was
// too much is counted.
func TestASpoolTakesAtOnce(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	s := newSpool(g)
	_, _ = s.Write([]byte("first "))
	for s.waits() { // until it is on its way to the terminal
		runtime.Gosched()
	}
	_, _ = s.Write(bytes.Repeat([]byte("x"), MaxSpool))
	_, _ = s.Write([]byte("too much"))
	close(g.open)
	s.close()
	want := "first " + strings.Repeat("x", MaxSpool) + fmt.Sprintf("\n[%d bytes are not shown]\n", len("too much"))
	if g.got.String() != want {
		t.Errorf("%d bytes are shown, and %d were wanted: ... %q", g.got.Len(), len(want), g.got.String()[max(0, g.got.Len()-60):])
	}
}

func (s *spool) waits() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.held) > 0 }
