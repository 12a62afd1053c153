package attach

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/terminal"
)

const (
	// silence is how long a holder may say nothing; it pings more often.
	silence = 30 * time.Second
	// queued is how many frames of input wait for the seat to read.
	queued = 1024
	// queuedBytes is how much they hold, however few they are.
	queuedBytes = 4 << 20
	// typeFor bounds one input, resizeFor one resize.
	typeFor   = 10 * time.Second
	resizeFor = 5 * time.Second
	whyFor    = 2 * time.Second
	// leaveIn bounds what is still typed of a holder that has left.
	leaveIn = 10 * time.Second
)

// session is one holder's.
type session struct {
	srv    *Server
	offer  terminal.Offer
	ref    string
	out    string // subject of frames to the holder
	frame  []byte // the newest with output; show's alone
	t      providers.Terminal
	ctx    context.Context
	cancel context.CancelFunc
	in     chan terminal.Frame
	held   atomic.Int64 // bytes in it
	leave  sync.Once    // arms leaveIn

	mu     sync.Mutex
	room   sync.Cond // the window has room, or it is over
	size   providers.Size
	sent   uint64 // data frames sent
	acked  uint64
	heard  time.Time
	over   bool
	writer bool
}

// begin takes a session in whose offer is used up.
func (s *Server) begin(r terminal.Redemption, ref string, t providers.Terminal) (*session, error) {
	x := &session{srv: s, offer: r.Offer, ref: ref, out: terminal.Subject(s.Space, string(s.Self.Instance), r.Offer.Session, terminal.Out), t: t, in: make(chan terminal.Frame, queued), size: providers.Size{Rows: r.Rows, Cols: r.Cols}, heard: time.Now()}
	x.room.L = &x.mu
	x.ctx, x.cancel = context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.seats[r.Offer.Environment]
	switch {
	case s.stopped:
		x.cancel()
		return nil, stopping()
	case len(s.sessions) >= MaxSessions || at != nil && len(at.all) >= MaxPerSeat:
		x.cancel()
		return nil, fault.New(fault.ResourceExhausted, "at most %d sessions are held at a time, and %d of one seat", MaxSessions, MaxPerSeat).WithOutcome(fault.NotExecuted)
	}
	if at == nil {
		at = &seat{}
		s.seats[r.Offer.Environment] = at
	}
	s.sessions[r.Offer.Session] = x
	at.all = append(at.all, x)
	if !x.offer.ReadOnly && (at.writer == nil || r.Take) {
		if at.writer != nil {
			at.writer.write(false)
		}
		at.writer, x.writer = x, true
	}
	return x, nil
}

// leave forgets a session. If it was the writer, the oldest that may write is
// now, and the seat gets its size.
func (s *Server) leave(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, x.offer.Session)
	at := s.seats[x.offer.Environment]
	for i, other := range at.all {
		if other == x {
			at.all = append(at.all[:i:i], at.all[i+1:]...)
			break
		}
	}
	if len(at.all) == 0 {
		delete(s.seats, x.offer.Environment)
	}
	if at.writer != x {
		return
	}
	at.writer = nil
	for _, other := range at.all {
		if !other.offer.ReadOnly {
			at.writer = other
			other.write(true)
			return
		}
	}
}

// write makes the session the writer, or ends that.
func (x *session) write(on bool) {
	x.mu.Lock()
	x.writer = on
	size := x.size
	x.mu.Unlock()
	x.publish(terminal.Frame{Kind: terminal.KindWriter, Writer: on})
	if on && size.Check() == nil {
		x.push(terminal.Frame{Kind: terminal.KindResize, Rows: size.Rows, Cols: size.Cols})
	}
}

func (x *session) publish(f terminal.Frame) { x.publishIn(nil, f) }

// publishIn publishes a frame that it writes into b, and gives the memory back.
func (x *session) publishIn(b []byte, f terminal.Frame) []byte {
	b, err := f.Append(b[:0])
	if err == nil {
		err = x.srv.Conn.Publish(x.out, b)
	}
	if err != nil {
		x.srv.Logger.Warn("a terminal frame could not be sent", "error", events.Scrub(err.Error()))
	}
	return b
}

// end ends the session once, and says why.
func (x *session) end(why terminal.Reason, detail string) {
	x.mu.Lock()
	was := x.over
	x.over = true
	x.room.Broadcast()
	x.mu.Unlock()
	if was {
		return
	}
	x.publish(terminal.Frame{Kind: terminal.KindEnd, Reason: why, Detail: detail})
	x.cancel()
}

// run serves the session to its end.
func (x *session) run() {
	defer x.srv.leave(x)
	if x.isWriter() && x.size.Check() == nil {
		x.resize(x.size) // before take, which has the size from then on
	}
	var wg sync.WaitGroup
	wg.Go(x.take)
	wg.Go(x.watch)
	x.show()
	x.cancel()
	wg.Wait()
}

func (x *session) isWriter() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.writer
}

// show sends what the seat's terminal shows until the seat or the session
// ends. While the window is full nothing is asked of the view, which then
// drops output by itself: neither the seat nor another view waits.
func (x *session) show() {
	v, err := x.t.View(x.ctx, x.offer.Environment, x.ref)
	if err != nil {
		x.lost(err)
		return
	}
	defer v.Close()
	for first := true; ; {
		p, err := v.Next()
		switch {
		case x.ctx.Err() != nil:
			return
		case errors.Is(err, io.EOF):
			x.end(x.why(), "")
			return
		case err != nil:
			x.lost(err)
			return
		}
		if p.Kind == providers.PartRepaint && first {
			x.publish(terminal.Frame{Kind: terminal.KindReady, Rows: p.Size.Rows, Cols: p.Size.Cols, Writer: x.isWriter()})
			first = false
		} else if p.Kind == providers.PartRepaint {
			x.publish(terminal.Frame{Kind: terminal.KindDrop, Bytes: p.Dropped})
		}
		if p.Kind != providers.PartData {
			x.publish(terminal.Frame{Kind: terminal.KindResize, Rows: p.Size.Rows, Cols: p.Size.Cols})
		}
		if !x.send(p.Data) {
			return
		}
	}
}

// send cuts output into frames, each as the window has room.
func (x *session) send(data []byte) bool {
	for len(data) > 0 {
		x.mu.Lock()
		for !x.over && x.sent-x.acked >= terminal.Window {
			x.room.Wait()
		}
		over := x.over
		x.sent++
		seq := x.sent
		x.mu.Unlock()
		if over {
			return false
		}
		n := min(len(data), terminal.MaxFrame)
		x.frame = x.publishIn(x.frame, terminal.Frame{Kind: terminal.KindData, Seq: seq, Data: data[:n]})
		data = data[n:]
	}
	return true
}

// lost ends a session whose view failed. Only a refusal that proves that the
// seat does not run is its end: of one that can't be reached nothing is known
// (law 2).
func (x *session) lost(err error) {
	f, why := fault.From(err), x.why()
	if proved := f.Code == fault.FailedPrecondition || f.Code == fault.NotFound; why == terminal.EndExit && !proved {
		why = terminal.EndClosed
	}
	x.end(why, events.Scrub(f.Message))
}

// why tells the end of the seat's life from the end of its process.
func (x *session) why() terminal.Reason {
	ctx, cancel := context.WithTimeout(context.Background(), whyFor)
	defer cancel()
	st, err := x.srv.Shelf.Seat(ctx, x.offer.Owner, x.offer.Name)
	if err != nil {
		return terminal.EndExit
	}
	switch s := st.Status(); {
	case !st.Slot.Held(), st.Slot.UID != x.offer.UID,
		s == aggregates.StatusStopping, s == aggregates.StatusRetiring, s == aggregates.StatusRetired, s == aggregates.StatusWrittenOff:
		return terminal.EndDespawn
	}
	return terminal.EndExit
}

// watch ends a session whose time is over or whose holder says nothing.
func (x *session) watch() {
	t := time.NewTicker(silence / 6)
	defer t.Stop()
	for {
		select {
		case <-x.ctx.Done():
			return
		case <-t.C:
		}
		x.mu.Lock()
		quiet := time.Since(x.heard) > silence
		x.mu.Unlock()
		switch {
		case x.srv.Now().UnixMilli() > x.offer.Expires:
			x.end(terminal.EndExpired, "")
		case quiet:
			x.end(terminal.EndClosed, "the holder said nothing for "+silence.String())
		}
	}
}
