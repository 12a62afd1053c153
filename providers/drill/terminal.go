package drill

import (
	"context"
	"io"

	"berth/events"
	"berth/events/fault"
	"berth/internal/screen"
	"berth/providers"
)

// terminalBytes is how much output of a simulated terminal is kept for views
// that are slow.
const terminalBytes = 64 << 10

// terminal is that of a simulated seat: it shows the seat's output and echoes
// what is typed. It is kept in memory alone, and begins anew with the process.
type terminal struct {
	s     *screen.Screen
	buf   []byte // the newest output
	total int64  // bytes ever written
	logs  int64  // how far the seat's own output has been shown
	size  providers.Size
}

// terminal finds the terminal of a running seat. Called under the lock.
func (d *Driver) terminal(id events.EnvironmentID, ref string) (*terminal, error) {
	if d.shut {
		return nil, fault.New(fault.Unavailable, "the drill provider is closed").WithOutcome(fault.NotExecuted)
	}
	d.m.Advance(d.now())
	e, why := d.m.mine(Call{Environment: id, Ref: ref})
	if t := d.terminals[id]; t != nil && (why != nil || ended(e.State)) {
		t.s.Close()
		delete(d.terminals, id)
	}
	switch {
	case why != nil:
		return nil, why.WithOutcome(fault.NotExecuted)
	case e.State != events.StateRunning:
		return nil, fault.New(fault.FailedPrecondition, "the seat of environment %s is %s, not running", id, e.State).WithOutcome(fault.NotExecuted)
	}
	t := d.terminals[id]
	if t == nil {
		t = &terminal{s: screen.New(24, 80), size: providers.Size{Rows: 24, Cols: 80}}
		d.terminals[id] = t
	}
	out := e.output()
	for _, b := range from(out, t.logs) {
		t.print(b)
	}
	t.logs = int64(len(out))
	return t, nil
}

// print shows one byte of output as a terminal does: a line feed is also a
// carriage return.
func (t *terminal) print(b byte) {
	out := []byte{b}
	if b == '\n' {
		out = []byte("\r\n")
	}
	_, _ = t.s.Write(out)
	t.buf = append(t.buf, out...)
	t.total += int64(len(out))
	if over := len(t.buf) - terminalBytes; over > terminalBytes {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
}

// Input echoes what is typed, as a terminal with nothing behind it does.
func (d *Driver) Input(_ context.Context, id events.EnvironmentID, ref string, data []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, err := d.terminal(id, ref)
	if err != nil {
		return 0, err
	}
	for _, b := range data {
		switch {
		case b == '\r':
			t.print('\n')
		case b < ' ' && b != '\n' && b != '\t':
			t.print('^')
			t.print(b + '@')
		default:
			t.print(b)
		}
	}
	d.wake(true)
	return len(data), nil
}

// Resize gives the simulated terminal another size.
func (d *Driver) Resize(_ context.Context, id events.EnvironmentID, ref string, size providers.Size) error {
	if err := size.Check(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t, err := d.terminal(id, ref)
	if err != nil {
		return err
	}
	t.size = size
	t.s.Resize(int(size.Rows), int(size.Cols))
	d.wake(true)
	return nil
}

// View looks at the simulated terminal.
func (d *Driver) View(ctx context.Context, id events.EnvironmentID, ref string) (providers.View, error) {
	d.mu.Lock()
	_, err := d.terminal(id, ref)
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	return &view{d: d, id: id, ref: ref, ctx: ctx, cancel: cancel, watch: d.watch(true), at: -1}, nil
}

// view is one look; at is the offset of its next byte, negative before the
// first repaint.
type view struct {
	d      *Driver
	id     events.EnvironmentID
	ref    string
	ctx    context.Context
	cancel context.CancelFunc
	watch  *watcher
	at     int64
	size   providers.Size
}

// Next implements providers.View.
func (v *view) Next() (providers.Part, error) {
	for {
		p, ok, err := v.ready()
		if ok || err != nil {
			return p, err
		}
		if err := v.d.await(v.ctx, v.watch); err != nil {
			return providers.Part{}, err
		}
	}
}

func (v *view) ready() (p providers.Part, ok bool, err error) {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	t, err := v.d.terminal(v.id, v.ref)
	if err != nil {
		if e, why := v.d.m.mine(Call{Environment: v.id, Ref: v.ref}); why == nil && !ended(e.State) {
			return p, false, nil // paused: it goes on when it is resumed
		}
		return p, false, io.EOF
	}
	kept := t.total - int64(len(t.buf))
	switch {
	case v.at < 0, v.at < kept:
		p = providers.Part{Kind: providers.PartRepaint, Data: t.s.Repaint(), Size: t.size}
		if v.at >= 0 {
			p.Dropped = t.total - v.at
		}
		v.at, v.size = t.total-int64(t.s.Pending()), t.size
	case v.size != t.size:
		v.size = t.size
		p = providers.Part{Kind: providers.PartSize, Size: t.size}
	case v.at < t.total:
		p = providers.Part{Kind: providers.PartData, Data: append([]byte(nil), t.buf[v.at-kept:]...)}
		v.at = t.total
	default:
		return p, false, nil
	}
	return p, true, nil
}

// Close implements providers.View.
func (v *view) Close() error {
	v.cancel()
	v.d.unwatch(v.watch)
	return nil
}
