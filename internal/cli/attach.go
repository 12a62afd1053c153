package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"berth/commands"
	"berth/commands/client"
	"berth/events/fault"
	"berth/terminal"
)

// attachAgain are the pauses before another session is asked for.
var attachAgain = []time.Duration{0, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second}

// leaveScreen undoes what a seat's program may have asked of this terminal:
// the other screen, a hidden cursor, margins, colours, mouse and paste modes.
// To give margins up takes the cursor home, so that it ends on a line of its own
// below all that is shown: what follows is written over nothing.
const leaveScreen = "\x1b[?6l\x1b[r\x1b[?1049l\x1b[?1l\x1b>\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?2004l\x1b(B\x0f\x1b[?7h\x1b[?25h\x1b[0m\x1b[999;1H\r\n"

func (a *app) attachCommand() *cobra.Command {
	v := &viewer{a: a}
	c := &cobra.Command{
		Use: "attach NAME", Short: "The terminal of a running seat, here", Args: args("NAME"), ValidArgsFunction: a.completeNames,
		Example: "  berth attach demo\n  berth attach demo --read-only\n  berth attach demo --detach-keys ctrl-p,ctrl-q",
		Long: `The terminal of a running seat, here: the whole screen at once, then what comes, and
what you type goes to it. Ctrl-] leaves; the seat goes on. Any number of people may
look; the first who may type is the writer, and the seat's terminal has the size of the
writer's. When the link is lost or the manager is restarted, it attaches again by
itself. At the end of standard input it goes on to look. Keys are ctrl-LETTER, ctrl-]
or single characters, several with commas.`,
		RunE: func(c *cobra.Command, names []string) (err error) {
			v.in.Name = names[0]
			if v.leave, err = parseKeys(v.keys); err != nil {
				return err
			}
			return v.run(c.Context())
		},
	}
	c.Flags().BoolVar(&v.in.ReadOnly, "read-only", false, "look, and do not type")
	c.Flags().BoolVar(&v.take, "take", false, "become the writer though somebody else is")
	c.Flags().StringVar(&v.keys, "detach-keys", "ctrl-]", "what leaves")
	c.Flags().StringVar(&v.in.UID, "uid", "", "only if this is the name's current lifecycle uid")
	return c
}

// viewer is one run of attach.
type viewer struct {
	a       *app
	in      commands.AttachInput
	take    bool
	keys    string // what is typed to leave, in words
	leave   []byte // and in bytes
	typed   chan []byte
	left    chan struct{} // closed when the keys to leave were typed
	sizes   chan os.Signal
	dropped int64
	gaps    int // how often the link was lost
	pauses  []time.Duration
}

// run attaches, again and again while the seat is there, and gives this
// terminal back as it was however it ends: by return, panic or signal.
func (v *viewer) run(ctx context.Context) error {
	key, err := nkeys.CreateUser()
	if err == nil {
		v.in.Holder, err = key.PublicKey()
	}
	if err != nil {
		return fault.New(fault.Internal, "a key can't be made: %s", err)
	}
	if err := v.in.Check(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	v.typed, v.left, v.sizes, v.pauses = make(chan []byte, 16), make(chan struct{}), make(chan os.Signal, 1), attachAgain
	signal.Notify(v.sizes, syscall.SIGWINCH)
	defer signal.Stop(v.sizes)
	var restore func()
	defer func() {
		if restore != nil {
			restore()
		}
	}()
	for begun := false; ; begun = true {
		l, s, err := v.begin(ctx, key)
		if err != nil {
			if !begun || !again(err) || !v.pause(ctx) {
				return err
			}
			continue
		}
		if restore == nil {
			v.a.say("attached to %s; %s", v.in.Name, v.how())
			restore = v.raw()
			go v.read()
		}
		end, err := v.watch(ctx, s)
		s.Close()
		l.close()
		if end.Reason != terminal.EndRestart && end.Reason != terminal.EndLinkLost && end.Reason != terminal.EndExpired {
			restore() // before anything is said
			restore = nil
			return v.over(end, err)
		}
		if end.Reason == terminal.EndLinkLost {
			if v.gaps++; !isTerminal(v.a.Stdout) {
				v.tell("the link was lost (%s); output may be missing, the whole screen follows", end.Detail)
			}
		}
		if !v.pause(ctx) {
			return nil
		}
	}
}

func (v *viewer) how() string {
	if v.in.ReadOnly {
		return "you only look; " + v.keys + " leaves"
	}
	return v.keys + " leaves"
}

// begin asks for an offer and redeems it.
func (v *viewer) begin(ctx context.Context, key nkeys.KeyPair) (*link, *terminal.Session, error) {
	l, err := v.a.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err := client.Call(ctx, l.Client, commands.Attach, v.in)
	if err != nil {
		l.close()
		return nil, nil, err
	}
	rows, cols := v.size()
	s, err := terminal.Begin(ctx, l.Conn(), key, r.Offer, rows, cols, v.take)
	if err != nil {
		l.close()
		return nil, nil, err
	}
	return l, s, nil
}

// again says that a later attempt may succeed: nobody answered.
func again(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Unavailable, fault.DeadlineExceeded, fault.ResourceExhausted, fault.Expired, fault.Conflict:
		return true
	}
	return false
}

// pause waits longer each time, until a session was begun again.
func (v *viewer) pause(ctx context.Context) bool {
	d := v.pauses[0]
	if len(v.pauses) > 1 {
		v.pauses = v.pauses[1:]
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-v.left:
	case <-t.C:
		return true
	}
	return false
}

// watch shows one session until it ends, the person leaves, or ctx ends.
func (v *viewer) watch(ctx context.Context, s *terminal.Session) (terminal.Frame, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer func() { <-done }()
	defer cancel()
	go func() {
		defer close(done)
		v.forward(ctx, cancel, s)
	}()
	for {
		f, err := s.Next(ctx)
		if err != nil {
			return terminal.Frame{Kind: terminal.KindEnd, Reason: terminal.EndClosed}, nil
		}
		switch f.Kind {
		case terminal.KindReady:
			v.pauses = attachAgain
		case terminal.KindData:
			if _, err := v.a.Stdout.Write(f.Data); err != nil {
				return f, fault.New(fault.FailedPrecondition, "standard output: %s", err)
			}
		case terminal.KindDrop:
			if v.dropped += f.Bytes; !isTerminal(v.a.Stdout) {
				v.tell("%d bytes of output were skipped; the whole screen follows", f.Bytes)
			}
		case terminal.KindEnd:
			return f, nil
		}
	}
}

// forward sends what is typed, and the size of this terminal.
func (v *viewer) forward(ctx context.Context, cancel context.CancelFunc, s *terminal.Session) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.left:
			for len(v.typed) > 0 { // what was typed before
				v.pass(s, <-v.typed)
			}
			cancel()
			return
		case p := <-v.typed:
			v.pass(s, p)
		case <-v.sizes:
			if rows, cols := v.size(); rows > 0 {
				s.Resize(rows, cols)
			}
		}
	}
}

func (v *viewer) pass(s *terminal.Session, typed []byte) {
	if !v.in.ReadOnly {
		s.Type(typed)
	}
}

// tell says on standard error what a script wants to know too.
func (v *viewer) tell(format string, args ...any) { fmt.Fprintf(v.a.Stderr, format+"\n", args...) }

// over is how it ended, in words.
func (v *viewer) over(end terminal.Frame, err error) error {
	if v.dropped > 0 {
		v.tell("%d bytes of output were skipped", v.dropped)
	}
	if v.gaps > 0 {
		v.tell("the link was lost %d times; output in between was not shown", v.gaps)
	}
	select {
	case <-v.left:
		v.tell("left %s; it goes on", v.in.Name)
		return nil
	default:
	}
	switch {
	case err != nil:
		return err
	case end.Reason == terminal.EndExit:
		v.tell("the seat of %s has ended", v.in.Name)
	case end.Reason == terminal.EndDespawn:
		v.tell("%s was retired", v.in.Name)
	case end.Detail != "":
		return fault.New(fault.Unavailable, "the session with %s ended: %s", v.in.Name, end.Detail).
			WithOutcome(fault.NotExecuted).WithHint("its seat is not touched by that: attach again; `berth doctor` asks its provider")
	}
	return nil
}

// raw makes this terminal one that only passes on, if it is one, and returns
// what gives it back.
func (v *viewer) raw() (restore func()) {
	in, ok := v.a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return func() {}
	}
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return func() {}
	}
	return func() {
		if isTerminal(v.a.Stdout) {
			_, _ = v.a.Stdout.Write([]byte(leaveScreen))
		}
		_ = term.Restore(int(in.Fd()), old)
	}
}

// size is that of this terminal; zero if there is none.
func (v *viewer) size() (rows, cols uint16) {
	out, ok := v.a.Stdout.(*os.File)
	if !ok {
		return 0, 0
	}
	c, r, err := term.GetSize(int(out.Fd()))
	if err != nil || r < 1 || c < 1 {
		return 0, 0
	}
	return uint16(min(r, 1000)), uint16(min(c, 1000))
}
