//go:build linux

package custodian

import (
	"bytes"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"berth/events"
	"berth/providers/process/seatdir"
)

// Sign is what is known of a seat's readiness. A seat without a sign never has
// one.
type Sign struct {
	dir  seatdir.Dir
	want *events.ReadySign

	mu    sync.Mutex
	ready *events.Readiness
	given chan struct{} // closed when ready is set
}

func newSign(d seatdir.Dir, want *events.ReadySign) *Sign {
	return &Sign{dir: d, want: want, given: make(chan struct{})}
}

// Is says that the seat's sign is of that kind.
func (s *Sign) Is(k events.SignKind) bool { return s.want != nil && s.want.Kind == k }

// Give takes the sign as given: by a line on the descriptor, or by the port.
func (s *Sign) Give() {
	switch {
	case s.Is(events.SignFD):
		s.give(fmt.Sprintf("it wrote a line on descriptor %d", events.ReadyFD))
	case s.Is(events.SignPort):
		s.give(fmt.Sprintf("it listens on port %d", s.want.Port))
	}
}

// now is the readiness as it is known; nil: none.
func (s *Sign) now() *events.Readiness {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// give keeps the first sign: in the seat's directory, for whoever asks when
// this process is gone, and then for those who wait for it.
func (s *Sign) give(evidence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready != nil {
		return
	}
	r := events.Readiness{Since: events.MillisUTC(time.Now()), Evidence: evidence}
	// A full disk costs the proof of a seat that has ended, not its readiness.
	_ = s.dir.WriteJSON(seatdir.FileReady, r)
	s.ready = &r
	close(s.given)
}

// watch looks for a pattern in what the seat writes, if that is its sign.
func (s *Sign) watch(o *output) {
	if m := s.matcher(); m != nil {
		o.watch(m, func() { s.give("its output matched the pattern") })
	}
}

// matchWindow is how much of the newest output a pattern is looked for in, in
// bytes: a match is no longer than that.
const matchWindow = 8 << 10

// matcher looks for a pattern in what the seat writes, as a person reads it:
// without the sequences that move and colour, and with plain line ends.
type matcher struct {
	re   *regexp.Regexp
	tail []byte
}

// matcher is nil for a seat whose sign is no pattern.
func (s *Sign) matcher() *matcher {
	if !s.Is(events.SignPattern) {
		return nil
	}
	re, err := s.want.Regexp()
	if err != nil {
		return nil // it was checked when the seat was planned
	}
	return &matcher{re: re}
}

// matches takes the next output in and says whether the pattern is in what is
// known by now.
func (m *matcher) matches(p []byte) bool {
	for len(p) > 0 {
		n := min(len(p), matchWindow)
		m.tail = append(m.tail, p[:n]...)
		p = p[n:]
		seen := bytes.ReplaceAll([]byte(ansi.Strip(string(m.tail))), []byte("\r"), nil)
		if m.re.Match(seen) {
			return true
		}
		if over := len(m.tail) - matchWindow; over > 0 {
			m.tail = append(m.tail[:0], m.tail[over:]...)
		}
	}
	return false
}
