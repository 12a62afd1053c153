package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/creack/pty"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"berth/commands"
	"berth/commands/client"
	"berth/events/fault"
	"berth/terminal"
)

const (
	// idleViewers look at the seat that is typed into, and type nothing.
	idleViewers = 20
	// attachRows and attachCols are the terminal's size.
	attachRows, attachCols = 24, 80
	// attachFor bounds what is waited for: a round trip, or the next output.
	attachFor = time.Minute
)

// echoing answers every byte as a program does, not as the terminal's own
// echo would: both sides run it.
var echoing = []string{"sh", "-c", "stty raw -echo; printf ready; exec cat"}

// measureAttach measures a terminal over NATS beside a bare one.
func measureAttach(ctx context.Context, o Options) ([]Row, error) {
	d, err := openDesk(ctx, o)
	if err != nil {
		return nil, err
	}
	defer d.close()
	rows, err := d.echoes(ctx)
	if err != nil {
		return rows, err
	}
	flow, err := d.flows(ctx)
	return append(rows, flow...), err
}

// looker is one session, over a connection of its own.
type looker struct {
	nc  *nats.Conn
	s   *terminal.Session
	end func()
}

func (d *desk) attach(ctx context.Context, name string, readOnly bool) (_ *looker, err error) {
	l := &looker{}
	if l.nc, err = nats.Connect(d.server.Endpoint.NATS); err != nil {
		return nil, err
	}
	l.end = l.nc.Close
	defer func() {
		if err != nil {
			l.end()
		}
	}()
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	holder, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	r, err := client.Call(ctx, d.c, commands.Attach, commands.AttachInput{Named: commands.Named{Name: name}, Holder: holder, ReadOnly: readOnly})
	if err != nil {
		return nil, err
	}
	if l.s, err = terminal.Begin(ctx, l.nc, key, r.Offer, attachRows, attachCols, false); err != nil {
		return nil, err
	}
	l.end = func() { l.s.Close(); l.nc.Close() }
	return l, nil
}

// reads gives every frame to f until that says that it has enough.
func (l *looker) reads(ctx context.Context, f func(terminal.Frame) (enough bool)) error {
	for {
		wait, cancel := context.WithTimeout(ctx, attachFor)
		got, err := l.s.Next(wait)
		cancel()
		if err != nil {
			return err
		}
		if got.Kind == terminal.KindEnd {
			return fault.New(fault.Internal, "a session of the benchmark ended: %s %s", got.Reason, got.Detail)
		}
		if f(got) {
			return nil
		}
	}
}

// shows reads until the text was shown; it may be cut by frames.
func (l *looker) shows(ctx context.Context, text string) error {
	var tail []byte
	return l.reads(ctx, func(f terminal.Frame) bool {
		tail = append(tail, f.Data...)
		found := bytes.Contains(tail, []byte(text))
		tail = tail[max(0, len(tail)-len(text)):]
		return found
	})
}

// terminalOf is a seat of the command and a session that writes; its end
// retires the seat too.
func (d *desk) terminalOf(ctx context.Context, name string, command []string) (*looker, error) {
	if err := spawnOne(ctx, d.c, commands.SpawnInput{Name: name, CPUs: "0.01", Memory: "1MiB", Options: plain, Command: command}); err != nil {
		return nil, err
	}
	gone := func() { _ = d.retire(context.WithoutCancel(ctx), name) }
	l, err := d.attach(ctx, name, false)
	if err != nil {
		gone()
		return nil, err
	}
	leave := l.end
	l.end = func() { leave(); gone() }
	if err := l.shows(ctx, "ready"); err != nil {
		l.end()
		return nil, err
	}
	return l, nil
}

// echoes is the time from a key to its echo, while others look, beside the
// same on a terminal of this process.
func (d *desk) echoes(ctx context.Context) ([]Row, error) {
	d.Progress(fmt.Sprintf("attach: echo of keys with %d idle viewers", idleViewers))
	writer, err := d.terminalOf(ctx, "echo", echoing)
	if err != nil {
		return nil, err
	}
	defer writer.end()
	looking, stop := context.WithCancel(ctx)
	var idle sync.WaitGroup
	defer idle.Wait()
	defer stop()
	for range idleViewers {
		l, err := d.attach(ctx, "echo", true)
		if err != nil {
			return nil, err
		}
		defer l.end()
		idle.Go(func() {
			for looking.Err() == nil {
				if _, err := l.s.Next(looking); err != nil || !l.nc.IsConnected() {
					return
				}
			}
		})
	}
	bare, err := newBarePty(echoing)
	if err != nil {
		return nil, err
	}
	defer bare.close()
	var raws, ours []time.Duration
	for n := range warmUps + d.Samples {
		key := byte('a' + n%26)
		for side := range 2 {
			if (side+n)%2 == 0 {
				err = timed(&raws, func() error { return bare.types(key) })
			} else {
				err = timed(&ours, func() error { return writer.types(ctx, key) })
			}
			if err != nil {
				return nil, err
			}
		}
	}
	raws, ours = raws[warmUps:], ours[warmUps:]
	slices.Sort(raws)
	slices.Sort(ours)
	over := alone("attach-echo-p50-over-pty", millis(percentile(ours, 50)-percentile(raws, 50)), "ms").atMost(2).
		noted("a key to its echo by a program, over NATS, less the same on a terminal of this process; %d idle viewers", idleViewers)
	over.Raw = new(round(millis(percentile(raws, 50))))
	last := alone("attach-echo-p99", millis(percentile(ours, 99)), "ms").atMost(10).noted("of %d keys; raw is the terminal of this process", len(ours))
	last.Raw = new(round(millis(percentile(raws, 99))))
	return []Row{over, last}, nil
}

func (l *looker) types(ctx context.Context, key byte) error {
	l.s.Type([]byte{key})
	return l.reads(ctx, func(f terminal.Frame) bool { return bytes.IndexByte(f.Data, key) >= 0 })
}

// barePty is the same program on a terminal of this process.
type barePty struct {
	master *os.File
	cmd    *exec.Cmd
	buf    []byte
}

func newBarePty(command []string) (*barePty, error) {
	b := &barePty{cmd: exec.Command(command[0], command[1:]...), buf: make([]byte, 64)}
	var err error
	if b.master, err = pty.Start(b.cmd); err != nil {
		return nil, err
	}
	for shown := []byte(nil); !bytes.Contains(shown, []byte("ready")); {
		n, err := b.master.Read(b.buf)
		if err != nil {
			b.close()
			return nil, err
		}
		shown = append(shown, b.buf[:n]...)
	}
	return b, nil
}

func (b *barePty) types(key byte) error {
	if _, err := b.master.Write([]byte{key}); err != nil {
		return err
	}
	_, err := b.master.Read(b.buf)
	return err
}

func (b *barePty) close() {
	_ = b.cmd.Process.Kill()
	_ = b.master.Close()
	_ = b.cmd.Wait()
}
