//go:build linux

package machine

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"sync"
	"time"

	"berth/events/fault"
	"berth/providers/process/custodian"
	"berth/providers/process/seatdir"
)

// Prepare implements custodian.Beside: the machine has its whole memory, or has
// booted and has its home, and its command does not run.
func (s *supervisor) Prepare(ctx context.Context) (seatdir.Ident, error) {
	ctx, cancel := context.WithTimeout(ctx, slotPatience)
	defer cancel()
	free, err := takeSlot(ctx, s.start.SlotsDir)
	if err != nil {
		return seatdir.Ident{}, err
	}
	defer free()
	s.said.hold()
	err = s.bootFault(s.boot(ctx))
	return seatdir.Ident{Seat: s.who, Group: s.start.Group}, err
}

// Begin implements custodian.Beside.
func (s *supervisor) Begin(ctx context.Context) error {
	return s.bootFault(s.during(ctx, s.goes))
}

// Taken implements custodian.Beside.
func (s *supervisor) Taken() {
	_ = os.Rename(s.start.name(fileLog), fileLog)
	s.said.pass()
}

// hush passes on what a machine says, and holds it back while the machine is not
// the seat. More than maxHeld is not read from its agent meanwhile.
type hush struct {
	post *custodian.Post

	mu     sync.Mutex
	heard  sync.Cond // of mu: it is passed on from here
	held   bool
	data   []byte
	signed bool
}

const maxHeld = 4 << 20

func newHush(p *custodian.Post) *hush {
	h := &hush{post: p}
	h.heard.L = &h.mu
	return h
}

func (h *hush) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = true
}

func (h *hush) output(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.held && len(h.data)+len(b) > maxHeld {
		h.heard.Wait()
	}
	if h.held {
		h.data = append(h.data, b...)
		return
	}
	_, _ = h.post.Output().Write(b)
}

// sign is called when the agent has seen the seat's sign. A trial has none.
func (h *hush) sign() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held {
		h.signed = true
	} else if h.post.Sign != nil {
		h.post.Sign.Give()
	}
}

// pass lets out what was held back.
func (h *hush) pass() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.data) > 0 {
		_, _ = h.post.Output().Write(h.data)
	}
	if h.signed && h.post.Sign != nil {
		h.post.Sign.Give()
	}
	h.held, h.data = false, nil
	h.heard.Broadcast()
}

// quietPatience is for how long an agent may finish what it says before its
// machine is stopped all the same: one that hangs is what is put back most.
const quietPatience = 5 * time.Second

// stand has the machine stand still while another one takes its place. What
// follows is run on the connection. It needs s.act.
func (s *supervisor) stand(ctx context.Context, data []byte) (after func(net.Conn), err error) {
	var st custodian.Standing
	if err := json.Unmarshal(data, &st); err != nil {
		return nil, fault.New(fault.BadRequest, "not a request to stand still: %s", err)
	}
	s.setStanding(true) // before it is frozen, so that it is at no moment seen as paused
	qctx, cancel := context.WithTimeout(ctx, quietPatience)
	defer cancel()
	if s.freeze(qctx) != nil {
		if err := s.mon.Do(ctx, "stop", nil, nil); err != nil {
			s.setStanding(false)
			return nil, err
		}
		s.setFrozen(true)
	}
	return func(conn net.Conn) { s.stood(conn, st) }, nil
}

// stood goes on as before, unless the place is taken.
func (s *supervisor) stood(conn net.Conn, st custodian.Standing) {
	if s.Stood(conn, st) {
		s.Yield()
		return
	}
	_ = s.Dir.SweepGroups(s.start.Group.Name, endPatience) // the other one's, if it was killed
	s.act.Lock()
	defer s.act.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	if !s.wasFrozen {
		_ = s.goOn(ctx) // the monitor answers, or the machine has ended
	}
	s.setStanding(false)
	if !s.Frozen {
		_ = s.hello(ctx) // an agent that does not answer did not before
	}
}

// setStanding needs s.act.
func (s *supervisor) setStanding(is bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Standing, s.wasFrozen = is, s.Frozen
}
