package embedded

import (
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// recorder passes the server's log on, if anybody wants it, and keeps the
// first fatal message: an embedded server must not end the process, but Start
// has to know that it gave up. It also tells of the first write error: the
// server has no other word for it that does not have to be asked for.
type recorder struct {
	to         server.Logger // may be nil
	once       sync.Once
	fatal      chan struct{}
	text       string // written before fatal is closed
	torn       sync.Once
	unwritable chan struct{}
}

// writeError is in the message of a stream that takes no more writes.
const writeError = "critical write error"

var _ server.Logger = (*recorder)(nil)

func newRecorder(to server.Logger) *recorder {
	return &recorder{to: to, fatal: make(chan struct{}), unwritable: make(chan struct{})}
}

func (r *recorder) Fatalf(format string, v ...any) {
	r.once.Do(func() {
		r.text = fmt.Sprintf(format, v...)
		close(r.fatal)
	})
	r.Errorf(format, v...)
}

func (r *recorder) Errorf(format string, v ...any) {
	if strings.Contains(format, writeError) {
		r.torn.Do(func() { close(r.unwritable) })
	}
	if r.to != nil {
		r.to.Errorf(format, v...)
	}
}

func (r *recorder) Warnf(format string, v ...any) {
	if r.to != nil {
		r.to.Warnf(format, v...)
	}
}

func (r *recorder) Noticef(format string, v ...any) {
	if r.to != nil {
		r.to.Noticef(format, v...)
	}
}

func (r *recorder) Debugf(string, ...any) {}

func (r *recorder) Tracef(string, ...any) {}
