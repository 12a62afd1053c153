package acp

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"
)

const (
	// maxAhead is how many updates the library may hold before more are read: it
	// gives an agent up of whom 1,024 wait.
	maxAhead = 256
	// maxGulp bounds one read, in bytes, so that it adds fewer than that leaves.
	maxGulp = 16 << 10
	// maxPace bounds the wait for updates that the library does not pass on, since
	// it can't read them.
	maxPace = time.Second
	// maxMessage is the longest message the library reads, in bytes: at a longer
	// one it closes the connection.
	maxMessage = 10 << 20
)

// update is in every message with an update, and in no text: there it is quoted.
var update = []byte(`"session/update"`)

// paced reads what an agent says as fast as its updates are taken. On a busy
// machine the library reads them faster than it passes them on.
type paced struct {
	from  io.Reader
	ready chan struct{} // closed when the connection is set up: it reads from its making on
	more  chan struct{}
	taken atomic.Int64
	given int64
	tail  []byte // the last bytes given, which may begin an update
	line  int    // bytes given of a message that has not ended
	long  atomic.Bool
}

func newPaced(from io.Reader) *paced {
	return &paced{from: from, ready: make(chan struct{}), more: make(chan struct{}, 1)}
}

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	<-p.ready
	for p.given-p.taken.Load() > maxAhead {
		select {
		case <-p.more:
		case <-time.After(maxPace):
			p.given = p.taken.Load()
		}
	}
	n, err := p.from.Read(b[:min(len(b), maxGulp)])
	p.measure(b[:n])
	p.tail = append(p.tail, b[:n]...)
	p.given += int64(bytes.Count(p.tail, update))
	p.tail = append(p.tail[:0], p.tail[max(0, len(p.tail)-len(update)+1):]...)
	return n, err
}

// measure notes a message that is longer than the library reads.
func (p *paced) measure(b []byte) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			end = len(b)
		}
		if p.line += end; p.line >= maxMessage {
			p.long.Store(true)
		}
		if end == len(b) {
			return
		}
		b, p.line = b[end+1:], 0
	}
}

// take says that one update was taken.
func (p *paced) take() {
	p.taken.Add(1)
	select {
	case p.more <- struct{}{}:
	default:
	}
}
