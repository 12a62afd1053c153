//go:build linux

package machine

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/custodian"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/wire"
)

// acting runs one action at a time; none on a machine that ends.
func (s *supervisor) acting(f func() error) error {
	return s.actingThen(func() (func(), error) { return nil, f() })
}

// errEnding refuses what comes too late.
var errEnding = fault.New(fault.FailedPrecondition, "the machine has ended or is ending")

func (s *supervisor) ending() bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Ending
}

// actingThen is acting for an action with an end that nobody waits for but the
// next one.
func (s *supervisor) actingThen(f func() (rest func(), err error)) error {
	s.act.Lock()
	s.Mu.Lock()
	ending, standing := s.Ending, s.Standing
	s.Mu.Unlock()
	if standing {
		s.act.Unlock()
		return fault.New(fault.Unavailable, "another machine is about to take the place of this one").WithOutcome(fault.NotExecuted)
	}
	if ending {
		s.act.Unlock()
		return errEnding
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
	if s.Frozen {
		return fault.New(fault.FailedPrecondition, "the machine is paused; resume it first").WithOutcome(fault.NotExecuted)
	}
	if r.Ask == custodian.AskResize {
		if err := (providers.Size{Rows: r.Rows, Cols: r.Cols}).Check(); err != nil {
			return err
		}
		err := s.peer.call(ctx, wire.Frame{Do: wire.DoResize, Rows: r.Rows, Cols: r.Cols}, nil, nil)
		if err == nil {
			s.Output().Resize(r.Rows, r.Cols)
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
	if s.Frozen {
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
	if !s.Frozen {
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
	if s.Frozen {
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
	if !s.Frozen {
		return nil
	}
	if err := s.goOn(ctx); err != nil {
		return err
	}
	return s.hello(ctx)
}

func (s *supervisor) setFrozen(v bool) {
	s.Mu.Lock()
	s.Frozen = v
	s.Mu.Unlock()
	s.thawed.Broadcast()
}

// stop asks the seat to end (SIGTERM to all of it), waits for the grace, ends
// the machine, and returns when the proof is written.
func (s *supervisor) stop(grace time.Duration) error {
	s.Mu.Lock()
	if !s.Ending {
		s.Why = seatdir.EndStopped
	}
	s.Mu.Unlock()
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
			case <-s.Done:
			case <-ctx.Done():
			}
		}
		cancel()
	}
	_ = s.cmd.Process.Kill()
	<-s.Done
	return nil
}
