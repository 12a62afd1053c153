//go:build linux

package custodian

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"os"
	"time"

	"berth/events/fault"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// maxConnections bounds the connections that are open at a time.
const maxConnections = 64

// requestPatience is how long a peer may take to send its request.
const requestPatience = 30 * time.Second

// deadlineCheck is how often the deadline is looked at though no timer of it
// is due: a suspended host stops timers and not the boot-time clock. slack
// keeps the end from being seen before its time on a wall clock that runs a
// little slower than the boot-time clock.
const (
	deadlineCheck = time.Minute
	slack         = 20 * time.Millisecond
)

func (p *Post) serve() {
	defer close(p.served)
	slots := make(chan struct{}, maxConnections)
	for {
		conn, err := p.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		select {
		case slots <- struct{}{}:
			p.busy.Add(1)
			go func() {
				defer p.busy.Done()
				defer func() { <-slots }()
				p.answer(conn.(*net.UnixConn))
			}()
		default:
			_ = conn.Close()
		}
	}
}

func (p *Post) answer(conn *net.UnixConn) {
	defer conn.Close()
	// The socket is 0600; this holds where the filesystem does not keep modes.
	if cred, err := peer(conn); err != nil || int(cred.Uid) != os.Getuid() && cred.Uid != 0 {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(requestPatience))
	line, err := readLine(bufio.NewReader(conn), MaxRequest)
	if err != nil {
		return
	}
	var r Request
	resp, leave := Response{}, func() {}
	var after func(net.Conn)
	err = json.Unmarshal(line, &r)
	switch {
	case err != nil:
		err = fault.New(fault.BadRequest, "not a request: %s", err)
	case r.Ask == AskAttach || r.Ask == AskView:
		leave, err = p.out.enter()
	default:
		after, err = p.do(r, &resp)
	}
	defer leave()
	if err != nil {
		resp.Fault = fault.From(err)
	}
	first, next := p.out.span()
	resp.From, resp.Next = max(first, r.From), next
	p.Mu.Lock()
	resp.Frozen, resp.Standing = p.seat.Paused(), p.Standing
	p.Mu.Unlock()
	resp.Ready = p.Sign.now()
	b, err := json.Marshal(resp)
	if err == nil {
		_, err = conn.Write(append(b, '\n'))
	}
	switch {
	case resp.Fault != nil:
	case after != nil: // also where nobody heard the answer
		after(conn)
	case r.Ask == AskAttach && err == nil:
		_ = p.out.follow(conn, func(f *follower) error { return p.out.copyTo(f, resp.From) })
	case r.Ask == AskView && err == nil:
		_ = p.out.follow(conn, p.out.view)
	}
}

func (p *Post) do(r Request, resp *Response) (func(net.Conn), error) {
	switch r.Ask {
	case AskStatus:
		return nil, nil
	case AskDeadline:
		select {
		case p.wake <- struct{}{}:
		default:
		}
		return nil, nil
	}
	if r.Ask == AskReady {
		select {
		case <-p.Sign.given:
		case <-p.Done:
		}
		return nil, nil
	}
	return p.seat.Do(r, resp)
}

// watchDeadline ends the seat when its lifetime is over, whoever else lives
// (scenario 30).
func (p *Post) watchDeadline() {
	for {
		wait := deadlineCheck
		var d seatdir.Deadline
		boot, err := identity.BootID()
		if err == nil {
			err = p.Dir.ReadJSON(seatdir.FileDeadline, &d)
		}
		if err == nil {
			if left, ok := d.Left(boot, identity.Boottime(), time.Now()); ok && left <= -slack {
				p.Mu.Lock()
				if !p.Ending && p.Why == seatdir.EndExited {
					p.Why = seatdir.EndExpired
				}
				p.Mu.Unlock()
				p.seat.Kill()
				wait = 100 * time.Millisecond // until Keep has seen it
			} else if ok {
				wait = min(wait, left+slack)
			}
		}
		select {
		case <-p.wake:
		case <-time.After(wait):
		case <-p.Done:
			return
		}
	}
}
