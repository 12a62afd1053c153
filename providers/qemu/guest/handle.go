//go:build linux

package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"berth/internal/tree"
	"berth/providers/qemu/wire"
)

// put is a tar that is being received.
type put struct {
	w    *io.PipeWriter
	done chan error
}

// handle does one request. What takes long answers from a goroutine of its
// own, so that input and signals are heard meanwhile.
func (a *agent) handle(f wire.Frame) {
	if a.held && f.Do == wire.DoHello {
		a.held = false
		a.out.Release()
	}
	switch f.Do {
	case wire.Door:
		if a.door != nil {
			a.door.deliver(f)
		}
	case wire.DoHello:
		a.answer(f.N, a.hello(f))
	case wire.DoPut:
		a.put(f)
	case wire.DoGet:
		go a.get(f)
	case wire.DoLaunch:
		a.answer(f.N, a.equip(f))
	case wire.DoInput:
		a.answer(f.N, a.withSeat(func(s *seat) error { return s.input(f.Data) }))
	case wire.DoResize:
		a.answer(f.N, a.withSeat(func(s *seat) error { return s.resize(f.Rows, f.Cols) }))
	case wire.DoSignal:
		a.answer(f.N, ignoreGone(unix.Kill(-1, unix.Signal(f.Signal))))
	case wire.DoQuiesce:
		if err := a.out.SendAndHold(wire.Frame{N: f.N}); err != nil {
			say("the port: %s", err)
		}
		a.held = true
	case wire.DoOff:
		a.answer(f.N, nil)
		off()
	default:
		a.answer(f.N, fmt.Errorf("the agent does not know %q", f.Do))
	}
}

func ignoreGone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

func (a *agent) answer(n uint64, err error) {
	f := wire.Frame{N: n}
	if err != nil {
		f.Error = err.Error()
	}
	if err := a.out.Send(f); err != nil {
		say("answering: %s", err)
	}
}

func (a *agent) put(f wire.Frame) {
	p := a.puts[f.N]
	if p == nil {
		r, w := io.Pipe()
		p = &put{w: w, done: make(chan error, 1)}
		a.puts[f.N] = p
		go func() {
			err := Unpack(r, f.Path)
			_ = r.CloseWithError(errors.Join(err, io.ErrClosedPipe))
			p.done <- err
		}()
	}
	if len(f.Data) > 0 {
		_, _ = p.w.Write(f.Data) // a failure is what Unpack says
	}
	if f.More {
		return
	}
	_ = p.w.Close()
	delete(a.puts, f.N)
	a.answer(f.N, <-p.done)
}

// get archives a tree. Every process but this one is stopped meanwhile, so
// that the capture is of one moment.
func (a *agent) get(f wire.Frame) {
	_ = unix.Kill(-1, unix.SIGSTOP)
	w := &chunks{n: f.N, out: a.out}
	err := tree.Pack(context.Background(), w, f.Path, 0)
	_ = unix.Kill(-1, unix.SIGCONT)
	if err == nil {
		err = w.flush()
	}
	a.answer(f.N, err)
}

// chunks turns a stream into frames.
type chunks struct {
	n   uint64
	out *wire.Writer
	buf []byte
}

func (c *chunks) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		k := min(len(p), wire.Chunk-len(c.buf))
		c.buf, p = append(c.buf, p[:k]...), p[k:]
		if len(c.buf) == wire.Chunk {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (c *chunks) flush() error {
	if len(c.buf) == 0 {
		return nil
	}
	err := c.out.Send(wire.Frame{N: c.n, More: true, Data: c.buf})
	c.buf = c.buf[:0]
	return err
}

func (a *agent) withSeat(do func(*seat) error) error {
	a.mu.Lock()
	s := a.seat
	a.mu.Unlock()
	if s == nil {
		return os.ErrProcessDone
	}
	return do(s)
}
