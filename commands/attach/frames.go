package attach

import (
	"context"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"

	"berth/events"
	"berth/providers"
	"berth/terminal"
)

// sessionID is what a session's id looks like: where a frame of a session that
// is not here is answered, a subject is made of it.
var sessionID = regexp.MustCompile(`^[a-z0-9]{52}$`)

// onFrame takes one frame of any holder. It never blocks.
func (s *Server) onFrame(m *nats.Msg) {
	name := id(m.Subject)
	f, err := terminal.Decode(m.Data)
	if err != nil {
		return // nobody is answered for what is no frame
	}
	s.mu.Lock()
	x := s.sessions[name]
	s.mu.Unlock()
	if x == nil {
		// A session of the manager that was here before, or one that ended.
		if f.Kind != terminal.KindClose && sessionID.MatchString(name) {
			end, err := terminal.Frame{Kind: terminal.KindEnd, Reason: terminal.EndRestart, Detail: "this manager does not hold the session"}.Encode()
			if err == nil {
				_ = s.Conn.Publish(terminal.Subject(s.Space, string(s.Self.Instance), name, terminal.Out), end)
			}
		}
		return
	}
	x.hear(f)
}

func (x *session) hear(f terminal.Frame) {
	x.mu.Lock()
	x.heard = time.Now()
	if f.Kind == terminal.KindAck && f.Seq > x.acked && f.Seq <= x.sent {
		x.acked = f.Seq
		x.room.Broadcast()
	}
	x.mu.Unlock()
	switch f.Kind {
	case terminal.KindPing:
		x.publish(terminal.Frame{Kind: terminal.KindPong})
	case terminal.KindClose:
		// What was typed before is still taken, if the seat reads it in time.
		x.push(f)
		x.leave.Do(func() { time.AfterFunc(leaveIn, func() { x.end(terminal.EndClosed, "") }) })
	case terminal.KindData, terminal.KindResize:
		x.push(f)
	}
}

// push queues what the seat has to take, in order.
func (x *session) push(f terminal.Frame) {
	if !x.queue(f) {
		go x.end(terminal.EndClosed, "input came faster than the seat reads it")
	}
}

// queue is false when too much waits already.
func (x *session) queue(f terminal.Frame) bool {
	n := int64(len(f.Data))
	if x.held.Add(n) <= queuedBytes {
		select {
		case x.in <- f:
			return true
		default:
		}
	}
	x.held.Add(-n)
	return false
}

// take types what the holder typed, and resizes as it resized, while it is the
// writer.
func (x *session) take() {
	for {
		var f terminal.Frame
		select {
		case <-x.ctx.Done():
			return
		case f = <-x.in:
			x.held.Add(-int64(len(f.Data)))
		}
		if f.Kind == terminal.KindClose {
			x.end(terminal.EndClosed, "")
			return
		}
		if f.Kind == terminal.KindResize {
			size := providers.Size{Rows: f.Rows, Cols: f.Cols}
			if size.Check() != nil {
				continue
			}
			x.mu.Lock()
			x.size = size
			x.mu.Unlock()
			if x.isWriter() {
				x.resize(size)
			}
			continue
		}
		if !x.isWriter() {
			x.publish(terminal.Frame{Kind: terminal.KindWriter, Writer: false})
			continue
		}
		ctx, cancel := context.WithTimeout(x.ctx, typeFor)
		_, err := x.t.Input(ctx, x.offer.Environment, x.ref, f.Data)
		cancel()
		if err != nil && x.ctx.Err() == nil {
			x.srv.Logger.Info("input of a session was not delivered whole", "session", x.offer.Session[:8], "error", events.Scrub(err.Error()))
		}
	}
}

func (x *session) resize(size providers.Size) {
	ctx, cancel := context.WithTimeout(x.ctx, resizeFor)
	defer cancel()
	if err := x.t.Resize(ctx, x.offer.Environment, x.ref, size); err != nil && x.ctx.Err() == nil {
		x.srv.Logger.Info("a terminal was not resized", "error", events.Scrub(err.Error()))
	}
}
