//go:build linux

package custodian

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"berth/events"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// portCheck is how often it is looked whether a seat listens: nothing tells.
const portCheck = 100 * time.Millisecond

// signLine bounds the line by which a seat says that it is ready, in bytes.
const signLine = 4096

// signal is what the custodian knows of its seat's readiness. A seat without
// a sign never has one.
type signal struct {
	c    *custodian
	sign *events.ReadySign

	mu    sync.Mutex
	ready *events.Readiness
	given chan struct{} // closed when ready is set
	heard chan struct{} // closed when nothing more comes by the descriptor
}

func newSignal(c *custodian) *signal {
	return &signal{c: c, sign: c.start.Seat.Ready, given: make(chan struct{}), heard: make(chan struct{})}
}

// now is the readiness as it is known; nil: none.
func (s *signal) now() *events.Readiness {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// give keeps the first sign: in the seat's directory, for whoever asks when
// this process is gone, and then for those who wait for it.
func (s *signal) give(evidence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready != nil {
		return
	}
	r := events.Readiness{Since: events.MillisUTC(time.Now()), Evidence: evidence}
	// A full disk costs the proof of a seat that has ended, not its readiness.
	_ = s.c.Dir.WriteJSON(seatdir.FileReady, r)
	s.ready = &r
	close(s.given)
}

// listen begins to look for the sign of the seat whose first process is pid;
// said is the seat's descriptor, if that is its sign.
func (s *signal) listen(said *os.File, pid int) {
	if said != nil {
		go s.read(said)
		return
	}
	close(s.heard)
	if s.sign != nil && s.sign.Kind == events.SignPort {
		go s.look(pid)
	}
}

// read waits for one line, or for the end of all who could write it.
func (s *signal) read(said *os.File) {
	defer close(s.heard)
	defer said.Close()
	line, err := bufio.NewReaderSize(io.LimitReader(said, signLine), signLine).ReadSlice('\n')
	if err == nil && len(line) > 0 {
		s.give(fmt.Sprintf("it wrote a line on descriptor %d", events.ReadyFD))
	}
}

// look waits until a process of the seat listens on the port. The tables of
// its network namespace say who does; no connection is made.
func (s *signal) look(pid int) {
	for {
		if listens(pid, s.sign.Port) {
			s.give("it listens on port " + strconv.Itoa(s.sign.Port))
			return
		}
		select {
		case <-s.c.Done:
			return
		case <-time.After(portCheck):
		}
	}
}

// listens says that a process below this one holds a TCP socket that listens
// on the port, in the network namespace of pid: another program of the host
// that has the port is not the seat.
func listens(pid, port int) bool {
	held := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		if f, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, table)); err == nil {
			for _, inode := range listeners(f, port) {
				held["socket:["+inode+"]"] = true
			}
			_ = f.Close()
		}
	}
	if len(held) == 0 {
		return false
	}
	for _, p := range identity.Descendants(os.Getpid()) {
		dir := fmt.Sprintf("/proc/%d/fd", p.PID)
		fds, err := os.ReadDir(dir)
		if err != nil {
			continue // it has just ended
		}
		for _, fd := range fds {
			if to, err := os.Readlink(dir + "/" + fd.Name()); err == nil && held[to] {
				return true
			}
		}
	}
	return false
}

// listeners reads the inodes of the sockets that listen on the port out of a
// table of the kernel (proc(5), /proc/net/tcp).
func listeners(table io.Reader, port int) []string {
	const stateListen = "0A"
	var inodes []string
	sc := bufio.NewScanner(table)
	for sc.Scan() {
		f := bytes.Fields(sc.Bytes())
		if len(f) < 10 || string(f[3]) != stateListen {
			continue
		}
		if colon := bytes.LastIndexByte(f[1], ':'); colon >= 0 && string(f[1][colon+1:]) == fmt.Sprintf("%04X", port) {
			inodes = append(inodes, string(f[9]))
		}
	}
	return inodes
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
func (s *signal) matcher() *matcher {
	if s.sign == nil || s.sign.Kind != events.SignPattern {
		return nil
	}
	re, err := s.sign.Regexp()
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
