package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"berth/events"
	"berth/events/fault"
)

const (
	// pingEvery is how often a holder says that it is there, and deaf how long
	// it hears nothing before it takes the link for lost.
	pingEvery = 5 * time.Second
	deaf      = 20 * time.Second
	// redeemIn bounds the answer to a redemption.
	redeemIn = 20 * time.Second
	// pendingBytes bounds what the client library keeps unread: more than a
	// window of frames.
	pendingBytes = 2 * Window * MaxFrame
)

// Session is the holder's end. Next is called by one goroutine; everything
// else may be called by any.
type Session struct {
	nc    *nats.Conn
	offer Offer
	sub   *nats.Subscription
	again uint64 // how often the connection was made again, at the beginning

	mu    sync.Mutex
	sent  uint64 // input frames
	seen  uint64 // output frames
	acked uint64
	heard time.Time
	pung  time.Time
}

// Begin redeems an offer with the holder's key. A refusal says that nothing
// was begun; a lost answer is unknown, and the offer may be used up.
func Begin(ctx context.Context, nc *nats.Conn, key nkeys.KeyPair, o Offer, rows, cols uint16, take bool) (*Session, error) {
	s := &Session{nc: nc, offer: o, again: nc.Stats().Reconnects, heard: time.Now()}
	proof, err := Prove(o, key)
	if err != nil {
		return nil, fault.New(fault.Internal, "the redemption can't be signed").WithOutcome(fault.NotExecuted)
	}
	body, err := json.Marshal(Redemption{Offer: o, Proof: proof, Rows: rows, Cols: cols, Take: take})
	if err != nil {
		return nil, fault.New(fault.Internal, "the redemption can't be written as JSON").WithOutcome(fault.NotExecuted)
	}
	if s.sub, err = nc.SubscribeSync(s.subject(Out)); err == nil {
		err = s.sub.SetPendingLimits(-1, pendingBytes)
	}
	if err != nil {
		return nil, lost(err)
	}
	ctx, cancel := context.WithTimeout(ctx, redeemIn)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, s.subject(Redeem), body)
	if err != nil {
		_ = s.sub.Unsubscribe()
		return nil, lost(err)
	}
	var r struct {
		OK    bool         `json:"ok"`
		Error *fault.Error `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &r); err != nil || !r.OK {
		_ = s.sub.Unsubscribe()
		if r.Error != nil {
			return nil, r.Error
		}
		return nil, fault.New(fault.ContractMismatch, "the answer to the redemption is not one that this program reads").WithOutcome(fault.Unknown)
	}
	return s, nil
}

func lost(err error) error {
	outcome := fault.Unknown
	if errors.Is(err, nats.ErrNoResponders) {
		outcome = fault.NotExecuted
	}
	return fault.New(fault.Unavailable, "the session was not begun: %s", events.Scrub(err.Error())).WithOutcome(outcome).WithHint("attach again")
}

func (s *Session) subject(end string) string {
	return Subject(s.offer.Space, string(s.offer.Instance), s.offer.Session, end)
}

// Next is the next frame for the holder. A link that was lost, also one that
// came back, and a gap in what came end the session with EndLinkLost: what is
// missing does not come again, so ask for a new session. An error is ctx's.
func (s *Session) Next(ctx context.Context) (Frame, error) {
	for {
		wait, cancel := context.WithTimeout(ctx, pingEvery/10)
		m, err := s.sub.NextMsgWithContext(wait)
		cancel()
		if ctx.Err() != nil {
			return Frame{}, ctx.Err()
		}
		if !s.nc.IsConnected() || s.nc.Stats().Reconnects != s.again {
			return s.gone("the connection was lost")
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return s.gone(events.Scrub(err.Error()))
		}
		if s.ping(err == nil) {
			return s.gone("the manager is silent")
		}
		if err != nil {
			continue
		}
		f, err := Decode(m.Data)
		if err != nil || f.Kind == KindPong {
			continue
		}
		if f.Kind == KindData && !s.take(f.Seq) {
			return s.gone("output was lost on the way")
		}
		return f, nil
	}
}

func (s *Session) gone(why string) (Frame, error) {
	return Frame{Kind: KindEnd, Reason: EndLinkLost, Detail: why}, nil
}

// ping keeps the session alive, and says whether the manager is silent.
func (s *Session) ping(heard bool) bool {
	s.mu.Lock()
	now := time.Now()
	if heard {
		s.heard = now
	}
	due := now.Sub(s.pung) > pingEvery
	if due {
		s.pung = now
	}
	silent := now.Sub(s.heard) > deaf
	s.mu.Unlock()
	if due {
		s.send(Frame{Kind: KindPing})
	}
	return silent
}

// take counts a data frame, and acknowledges now and then, well before the
// window is full.
func (s *Session) take(seq uint64) bool {
	s.mu.Lock()
	ok := seq == s.seen+1
	s.seen = seq
	ack := ok && seq-s.acked >= Window/4
	if ack {
		s.acked = seq
	}
	s.mu.Unlock()
	if ack {
		s.send(Frame{Kind: KindAck, Seq: seq})
	}
	return ok
}

// Type sends what was typed, as it is and in order. It does not wait; what is
// on its way when the link is lost is lost too.
func (s *Session) Type(p []byte) {
	for len(p) > 0 {
		n := min(len(p), MaxFrame)
		s.mu.Lock()
		s.sent++
		f := Frame{Kind: KindData, Seq: s.sent, Data: p[:n]}
		s.send(f)
		s.mu.Unlock()
		p = p[n:]
	}
}

// Resize tells the size of the holder's terminal.
func (s *Session) Resize(rows, cols uint16) { s.send(Frame{Kind: KindResize, Rows: rows, Cols: cols}) }

// Close leaves the session; the seat goes on.
func (s *Session) Close() {
	s.send(Frame{Kind: KindClose})
	_ = s.nc.FlushTimeout(time.Second)
	_ = s.sub.Unsubscribe()
}

// send publishes a frame. What fails here is seen by Next as a lost link.
func (s *Session) send(f Frame) {
	if b, err := f.Encode(); err == nil {
		_ = s.nc.Publish(s.subject(In), b)
	}
}
