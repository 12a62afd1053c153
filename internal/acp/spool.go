package acp

import (
	"fmt"
	"io"
	"sync"
)

// MaxSpool bounds what waits to be shown, in bytes.
const MaxSpool = 8 << 20

// spool takes what is written at once and shows it as fast as the terminal takes
// it: the library gives an agent up whose messages are not taken fast enough.
// Beyond MaxSpool what comes is left out, and how much that was is said.
type spool struct {
	to io.Writer

	mu    sync.Mutex
	more  *sync.Cond
	held  []byte
	lost  int
	over  bool
	ended chan struct{}
}

func newSpool(to io.Writer) *spool {
	s := &spool{to: to, ended: make(chan struct{})}
	s.more = sync.NewCond(&s.mu)
	go s.run()
	return s
}

// Write implements io.Writer. It never waits and never fails.
func (s *spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held)+len(p) > MaxSpool {
		s.lost += len(p)
	} else {
		s.held = append(s.held, p...)
	}
	s.more.Signal()
	return len(p), nil
}

// close returns when all that was written is shown.
func (s *spool) close() {
	s.mu.Lock()
	s.over = true
	s.more.Signal()
	s.mu.Unlock()
	<-s.ended
}

func (s *spool) run() {
	defer close(s.ended)
	for {
		s.mu.Lock()
		for len(s.held) == 0 && s.lost == 0 && !s.over {
			s.more.Wait()
		}
		b, lost := s.held, s.lost
		s.held, s.lost = nil, 0
		s.mu.Unlock()
		if len(b) == 0 && lost == 0 {
			return
		}
		_, _ = s.to.Write(b)
		if lost > 0 {
			_, _ = fmt.Fprintf(s.to, "\n[%d bytes are not shown]\n", lost)
		}
	}
}
