//go:build linux

package machine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"berth/events/fault"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/wire"
)

// maxConnections bounds the connections that are open at a time.
const maxConnections = 64

// deadlineCheck is how often the deadline is looked at though no timer of it
// is due: a suspended host stops timers and not the boot-time clock. slack
// keeps the end from being seen before its time on a slower wall clock.
const (
	deadlineCheck = time.Minute
	slack         = 20 * time.Millisecond
)

func (s *supervisor) serve() {
	defer close(s.served)
	slots := make(chan struct{}, maxConnections)
	for {
		conn, err := s.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		select {
		case slots <- struct{}{}:
			s.busy.Add(1)
			go func() {
				defer s.busy.Done()
				defer func() { <-slots }()
				s.answer(conn.(*net.UnixConn))
			}()
		default:
			_ = conn.Close()
		}
	}
}

func (s *supervisor) answer(conn *net.UnixConn) {
	defer conn.Close()
	if !custodian.Trusted(conn) {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(askPatience))
	var r custodian.Request
	if err := json.NewDecoder(io.LimitReader(conn, custodian.MaxRequest)).Decode(&r); err != nil {
		return
	}
	resp, leave := custodian.Response{}, func() {}
	var err error
	if r.Ask == custodian.AskAttach || r.Ask == custodian.AskView {
		leave, err = s.out.Enter()
	} else {
		err = s.do(r)
	}
	defer leave()
	if err != nil {
		resp.Fault = fault.From(err)
	}
	first, next := s.out.Span()
	resp.From, resp.Next = max(first, r.From), next
	s.mu.Lock()
	resp.Frozen = s.frozen
	s.mu.Unlock()
	b, err := json.Marshal(resp)
	if err == nil {
		_, err = conn.Write(append(b, '\n'))
	}
	if err == nil && resp.Fault == nil && r.Ask == custodian.AskAttach {
		_ = s.out.CopyTo(conn, resp.From)
	}
	if err == nil && resp.Fault == nil && r.Ask == custodian.AskView {
		_ = s.out.View(conn)
	}
}

func (s *supervisor) do(r custodian.Request) error {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	switch r.Ask {
	case custodian.AskStatus:
		return nil
	case custodian.AskFreeze:
		return s.acting(func() error {
			if r.Change && s.frozen {
				return custodian.Unchanged(true)
			}
			return s.pause(ctx)
		})
	case custodian.AskThaw:
		return s.actingThen(func() (func(), error) {
			if r.Change && !s.frozen {
				return nil, custodian.Unchanged(false)
			}
			return s.resume(ctx)
		})
	case custodian.AskStop:
		return s.stop(r.Grace)
	case custodian.AskDeadline:
		select {
		case s.wake <- struct{}{}:
		default:
		}
		return nil
	case AskSave:
		return s.acting(func() error { return s.save(r.Data) })
	case custodian.AskInput, custodian.AskResize:
		return s.acting(func() error { return s.terminal(ctx, r) })
	}
	return fault.New(fault.Unimplemented, "a microVM's supervisor does not know %q", r.Ask)
}

// acting runs one action at a time; none on a machine that ends.
func (s *supervisor) acting(f func() error) error {
	return s.actingThen(func() (func(), error) { return nil, f() })
}

// actingThen is acting for an action with an end that nobody waits for but the
// next one.
func (s *supervisor) actingThen(f func() (rest func(), err error)) error {
	s.act.Lock()
	s.mu.Lock()
	ending := s.ending
	s.mu.Unlock()
	if ending {
		s.act.Unlock()
		return fault.New(fault.FailedPrecondition, "the machine has ended or is ending")
	}
	rest, err := f()
	if rest == nil {
		s.act.Unlock()
		return err
	}
	go func() {
		defer s.act.Unlock()
		rest()
	}()
	return err
}

func (s *supervisor) terminal(ctx context.Context, r custodian.Request) error {
	if s.frozen {
		return fault.New(fault.FailedPrecondition, "the machine is paused; resume it first").WithOutcome(fault.NotExecuted)
	}
	if r.Ask == custodian.AskResize {
		if r.Rows < 1 || r.Cols < 1 || r.Rows > 1000 || r.Cols > 1000 {
			return fault.New(fault.BadRequest, "a terminal of %d rows and %d columns: each from 1 to 1000", r.Rows, r.Cols)
		}
		err := s.peer.call(ctx, wire.Frame{Do: wire.DoResize, Rows: r.Rows, Cols: r.Cols}, nil, nil)
		if err == nil {
			s.out.Resize(r.Rows, r.Cols)
		}
		return err
	}
	if len(r.Data) > custodian.MaxInput {
		return fault.New(fault.BadRequest, "input of %d bytes: at most %d at a time", len(r.Data), custodian.MaxInput)
	}
	return s.peer.call(ctx, wire.Frame{Do: wire.DoInput, Data: r.Data}, nil, nil)
}

// pause stops the machine for a person. Only what may be saved while it stands
// has to wait for its agent: under emulation, or on a busy host, that takes
// longer than all the rest. It needs s.act.
func (s *supervisor) pause(ctx context.Context) error {
	if s.start.Memory {
		return s.freeze(ctx)
	}
	if s.frozen {
		return nil
	}
	if err := s.mon.Do(ctx, "stop", nil, nil); err != nil {
		return err
	}
	s.setFrozen(true)
	return nil
}

// resume lets the machine go on. What is left to do is to send it the time of
// now: the agent reads that before anything that is asked of it later, so nobody
// waits for its answer, and one that does not come is an agent that answers
// nothing any more. Whoever resumes does not even wait for the sending, for which
// the guest's processors leave little time. It needs s.act.
func (s *supervisor) resume(ctx context.Context) (rest func(), err error) {
	if !s.frozen {
		return nil, nil
	}
	if err := s.goOn(ctx); err != nil {
		return nil, err
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), askPatience)
		defer cancel()
		if hello, err := s.greeting(); err == nil {
			_, _ = s.peer.begin(ctx, hello, nil, nil)
		}
	}, nil
}

// goOn needs s.act.
func (s *supervisor) goOn(ctx context.Context) error {
	if err := s.mon.Do(ctx, "cont", nil, nil); err != nil {
		return err
	}
	s.setFrozen(false)
	return nil
}

// freeze stops the machine between two frames of its agent, so that what is
// saved of it later begins with a whole one. It needs s.act.
func (s *supervisor) freeze(ctx context.Context) error {
	if s.frozen {
		return nil
	}
	err := s.peer.call(ctx, wire.Frame{Do: wire.DoQuiesce}, nil, nil)
	if err == nil {
		err = s.mon.Do(ctx, "stop", nil, nil)
	}
	if err != nil {
		_ = s.hello(ctx) // whatever was held goes on
		return err
	}
	s.setFrozen(true)
	return nil
}

// thaw is resume that waits for the agent. It needs s.act.
func (s *supervisor) thaw(ctx context.Context) error {
	if !s.frozen {
		return nil
	}
	if err := s.goOn(ctx); err != nil {
		return err
	}
	return s.hello(ctx)
}

func (s *supervisor) setFrozen(v bool) {
	s.mu.Lock()
	s.frozen = v
	s.mu.Unlock()
}

// stop asks the seat to end (SIGTERM to all of it), waits for the grace, ends
// the machine, and returns when the proof is written.
func (s *supervisor) stop(grace time.Duration) error {
	s.mu.Lock()
	if !s.ending {
		s.why = seatdir.EndStopped
	}
	s.mu.Unlock()
	if grace > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), min(grace, custodian.MaxGrace))
		err := s.acting(func() error {
			if err := s.thaw(ctx); err != nil {
				return err
			}
			return s.peer.call(ctx, wire.Frame{Do: wire.DoSignal, Signal: int(unix.SIGTERM)}, nil, nil)
		})
		if err == nil {
			select {
			case <-s.done:
			case <-ctx.Done():
			}
		}
		cancel()
	}
	_ = s.cmd.Process.Kill()
	<-s.done
	return nil
}

// watchDeadline ends the machine when its lifetime is over, whoever else
// lives (scenario 30).
func (s *supervisor) watchDeadline() {
	for {
		wait := deadlineCheck
		var d seatdir.Deadline
		boot, err := identity.BootID()
		if err == nil {
			err = s.dir.ReadJSON(seatdir.FileDeadline, &d)
		}
		if err == nil {
			if left, ok := d.Left(boot, identity.Boottime(), time.Now()); ok && left <= -slack {
				s.mu.Lock()
				if !s.ending && s.why == seatdir.EndExited {
					s.why = seatdir.EndExpired
				}
				s.mu.Unlock()
				_ = s.cmd.Process.Kill()
				wait = 100 * time.Millisecond // until keep has seen it
			} else if ok {
				wait = min(wait, left+slack)
			}
		}
		select {
		case <-s.wake:
		case <-time.After(wait):
		case <-s.done:
			return
		}
	}
}
