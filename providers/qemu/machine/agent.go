//go:build linux

package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"berth/providers/qemu/wire"
)

// peer is the supervisor's end of the agent's port.
type peer struct {
	conn   net.Conn
	w      *wire.Writer
	output func([]byte)
	sign   func()           // the seat has given its sign
	door   func(wire.Frame) // a frame of a stream of the door
	ready  chan struct{}    // closed when the agent has said so
	exited chan int         // the command's exit code, once
	broken chan struct{}    // closed when nothing comes any more

	mu    sync.Mutex
	n     uint64
	calls map[uint64]*pending
	err   error
}

type pending struct {
	chunk func([]byte) error // of a streamed answer
	err   error
	done  chan error
}

// newPeer takes over conn. Numbers begin at first, so that answers to
// requests of another supervisor, before a restore, are told apart.
func newPeer(conn net.Conn, first uint64, output func([]byte), sign func(), door func(*peer) func(wire.Frame)) *peer {
	p := &peer{conn: conn, w: wire.NewWriter(conn), output: output, sign: sign, n: first, ready: make(chan struct{}),
		exited: make(chan int, 1), broken: make(chan struct{}), calls: map[uint64]*pending{}}
	p.door = door(p)
	go p.read()
	return p
}

func (p *peer) read() {
	r := bufio.NewReaderSize(p.conn, wire.Chunk)
	var once sync.Once
	for {
		f, err := wire.Read(r)
		if err != nil {
			p.fail(err)
			return
		}
		switch {
		case f.N != 0:
			p.answer(f)
		case f.Do == wire.SayOutput:
			p.output(f.Data)
		case f.Do == wire.Door:
			p.door(f)
		case f.Do == wire.SaySign:
			p.sign()
		case f.Do == wire.SayReady && f.Version != wire.Version:
			p.fail(fmt.Errorf("the guest's agent speaks version %d, and this is %d", f.Version, wire.Version))
			return
		case f.Do == wire.SayReady:
			once.Do(func() { close(p.ready) })
		case f.Do == wire.SayExit:
			select {
			case p.exited <- f.Code:
			default:
			}
		}
	}
}

func (p *peer) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = fmt.Errorf("the guest's agent: %w", err)
	for n, c := range p.calls {
		c.done <- p.err
		delete(p.calls, n)
	}
	close(p.broken)
}

func (p *peer) answer(f wire.Frame) {
	p.mu.Lock()
	c := p.calls[f.N]
	if c != nil && !f.More {
		delete(p.calls, f.N)
	}
	p.mu.Unlock()
	if c == nil {
		return
	}
	if c.chunk != nil && c.err == nil && len(f.Data) > 0 {
		c.err = c.chunk(f.Data)
	}
	if f.More {
		return
	}
	if f.Error != "" {
		c.err = errors.Join(c.err, errors.New(f.Error))
	}
	c.done <- c.err
}

// call sends a request, with the stream body if there is one, and waits for
// its answer.
func (p *peer) call(ctx context.Context, f wire.Frame, body io.Reader, chunk func([]byte) error) error {
	wait, err := p.begin(ctx, f, body, chunk)
	if err != nil {
		return err
	}
	return wait(ctx)
}

// begin is call without the wait. The agent takes requests up in their order;
// an answer that nobody waits for is dropped when it comes.
func (p *peer) begin(ctx context.Context, f wire.Frame, body io.Reader, chunk func([]byte) error) (wait func(context.Context) error, err error) {
	c := &pending{chunk: chunk, done: make(chan error, 1)}
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return nil, p.err
	}
	p.n++
	f.N = p.n
	p.calls[f.N] = c
	p.mu.Unlock()
	forget := func() {
		p.mu.Lock()
		delete(p.calls, f.N)
		p.mu.Unlock()
	}
	if err := p.send(ctx, f, body); err != nil {
		forget()
		return nil, err
	}
	return func(ctx context.Context) error {
		select {
		case err := <-c.done:
			return err
		case <-ctx.Done():
			forget()
			return fmt.Errorf("the guest's agent did not answer %s: %w", f.Do, ctx.Err())
		}
	}, nil
}

func (p *peer) send(ctx context.Context, f wire.Frame, body io.Reader) error {
	// A guest that reads nothing must not block its supervisor for ever.
	dl, ok := ctx.Deadline()
	if !ok {
		dl = time.Time{}
	}
	_ = p.conn.SetWriteDeadline(dl)
	if body == nil {
		return p.w.Send(f)
	}
	buf := make([]byte, wire.Chunk)
	for {
		n, err := io.ReadFull(body, buf)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		f.Data, f.More = buf[:n], err == nil
		if serr := p.w.Send(f); serr != nil || !f.More {
			return serr
		}
	}
}
