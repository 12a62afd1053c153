package attach_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"berth/commands"
	"berth/commands/attach"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/fault"
	"berth/internal/embedded"
	"berth/providers"
	"berth/terminal"
)

// world is a manager's end with a seat, and a key of a holder.
type world struct {
	*commandstest.World
	t   *testing.T
	nc  *nats.Conn
	srv *attach.Server
	key nkeys.KeyPair
	pub string
	env events.EnvironmentID
	url string // of the server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return worldWith(t, embedded.Options{Listen: true}, nil)
}

// worldWith has another terminal for its seats, unless show is nil.
func worldWith(t *testing.T, server embedded.Options, show providers.Terminal) *world {
	t.Helper()
	server.StoreDir = t.TempDir()
	w := &world{World: commandstest.New(t, commandstest.Config{}), t: t}
	s, err := embedded.Start(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	w.url = s.ClientURL()
	t.Cleanup(s.Stop)
	if w.nc, err = s.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.nc.Close)
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	w.Plane.Sign = func(o terminal.Offer) (terminal.Offer, error) { return o.Sign(key) }
	w.srv, err = attach.Start(attach.Options{
		Conn: w.nc, Space: commandstest.Space, Self: w.Plane.Self, Key: key, Log: w.Log, Shelf: w.Shelf, Providers: terminals{w.Plane.Providers, show},
		IDs: w.IDs, Now: time.Now, Caller: commandstest.Caller,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.srv.Stop)
	if w.key, err = nkeys.CreateUser(); err != nil {
		t.Fatal(err)
	}
	w.pub, _ = w.key.PublicKey()
	w.env = w.Spawn("demo").Environment
	return w
}

// terminals gives every provider another terminal, unless there is none.
type terminals struct {
	attach.Providers
	show providers.Terminal
}

func (p terminals) Get(name string) (providers.Entry, error) {
	e, err := p.Providers.Get(name)
	if p.show != nil {
		e.Terminal = p.show
	}
	return e, err
}

func (w *world) offer(readOnly bool) terminal.Offer {
	w.t.Helper()
	r, err := commandstest.Ask(w.World, commands.Attach, "", commands.AttachInput{Named: commands.Named{Name: "demo"}, Holder: w.pub, ReadOnly: readOnly})
	if err != nil {
		w.t.Fatal(err)
	}
	return r.Offer
}

func (w *world) begin(readOnly, take bool) *terminal.Session {
	w.t.Helper()
	s, err := terminal.Begin(w.t.Context(), w.nc, w.key, w.offer(readOnly), 24, 80, take)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// until reads frames until one is of the kind, and returns it with the output
// that came before.
func (w *world) until(s *terminal.Session, kind terminal.Kind) (terminal.Frame, string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), commandstest.Patience)
	defer cancel()
	var out strings.Builder
	for {
		f, err := s.Next(ctx)
		if err != nil {
			w.t.Fatalf("no %s came: %v; output was %q", kind, err, out.String())
		}
		out.Write(f.Data)
		if f.Kind == kind {
			return f, out.String()
		}
		if f.Kind == terminal.KindEnd {
			w.t.Fatalf("it ended (%s %s) before %s", f.Reason, f.Detail, kind)
		}
	}
}

// shows reads output until it has a text.
func (w *world) shows(s *terminal.Session, text string) {
	w.t.Helper()
	for all := ""; !strings.Contains(all, text); {
		f, before := w.until(s, terminal.KindData)
		all += before
		_ = f
	}
}

// An offer is for one holder, one time, one manager's life; the commit on the
// session's boundary is the fence (law 3).
func TestAnOfferIsRedeemedOnce(t *testing.T) {
	w := newWorld(t)
	o := w.offer(false)
	begin := func(key nkeys.KeyPair, o terminal.Offer) error {
		s, err := terminal.Begin(t.Context(), w.nc, key, o, 24, 80, false)
		if err == nil {
			s.Close()
		}
		return err
	}
	other, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error, code fault.Code) {
		t.Helper()
		if c, outcome := commandstest.Code(err); c != code || outcome != fault.NotExecuted {
			t.Errorf("%s: %s %s, %v", what, c, outcome, err)
		}
	}
	refused("another holder", begin(other, o), fault.PermissionDenied)
	changed := o
	changed.ReadOnly = true
	refused("a changed offer", begin(w.key, changed), fault.PermissionDenied)
	forged, err := changed.Sign(other)
	if err != nil {
		t.Fatal(err)
	}
	refused("an offer of somebody else", begin(w.key, forged), fault.PermissionDenied)
	changed = o
	changed.Version++
	refused("another version", begin(w.key, changed), fault.UnsupportedVersion)
	for what, change := range map[string]func(*terminal.Offer){
		"another epoch":  func(o *terminal.Offer) { o.Epoch++ },
		"too late":       func(o *terminal.Offer) { o.RedeemBy = 1 },
		"a session over": func(o *terminal.Offer) { o.Expires = 1 },
		"another life":   func(o *terminal.Offer) { o.UID = "00000000000000000000000000" },
	} {
		x := o
		change(&x)
		if x, err = w.Plane.Sign(x); err != nil {
			t.Fatal(err)
		}
		refused(what, begin(w.key, x), fault.Expired)
	}
	tip := w.Tip()

	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = begin(w.key, o) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		refused("a second time", err, fault.Conflict)
	}
	if won != 1 || w.Tip() != tip+1 {
		t.Errorf("%d of %d redemptions won, with %d commits", won, len(errs), w.Tip()-tip)
	}
}

// Several look, one writes, and the terminal has the writer's size. When the
// writer leaves, the next one that may write does.
func TestOneWrites(t *testing.T) {
	w := newWorld(t)
	first := w.begin(false, false)
	if f, _ := w.until(first, terminal.KindReady); !f.Writer || f.Rows != 24 || f.Cols != 80 {
		t.Fatalf("%+v", f)
	}
	looker, second := w.begin(true, false), w.begin(false, false)
	defer looker.Close()
	for _, s := range []*terminal.Session{looker, second} {
		if f, _ := w.until(s, terminal.KindReady); f.Writer {
			t.Fatalf("%+v", f)
		}
	}
	second.Type([]byte("not this"))
	if f, _ := w.until(second, terminal.KindWriter); f.Writer {
		t.Fatal("two write")
	}
	first.Type([]byte("but this"))
	w.shows(looker, "but this")
	second.Resize(30, 90)
	first.Resize(25, 81)
	if f, _ := w.until(looker, terminal.KindResize); f.Rows == 30 {
		t.Fatal("somebody who only looks changed the size")
	}
	first.Close()
	if f, _ := w.until(second, terminal.KindWriter); !f.Writer {
		t.Fatal("nobody writes")
	}
	second.Type([]byte("and that"))
	w.shows(looker, "and that")
	third := w.begin(false, true)
	defer third.Close()
	if f, _ := w.until(third, terminal.KindReady); !f.Writer {
		t.Fatal("the writer was not replaced")
	}
	if f, _ := w.until(second, terminal.KindWriter); f.Writer {
		t.Fatal("the old writer was not told")
	}
	second.Close()
}

// What was typed right before the holder left is not lost.
func TestTypedBeforeLeaving(t *testing.T) {
	w := newWorld(t)
	looker := w.begin(true, false)
	defer looker.Close()
	for i := range 20 {
		s := w.begin(false, true)
		text := fmt.Sprintf("<%d>", i)
		s.Type([]byte(text))
		s.Close()
		w.shows(looker, text)
	}
}

// The ends are told apart.
func TestEndsAreToldApart(t *testing.T) {
	w := newWorld(t)
	reason := func(s *terminal.Session) terminal.Reason {
		t.Helper()
		f, _ := w.until(s, terminal.KindEnd)
		return f.Reason
	}
	a, b := w.begin(false, false), w.begin(true, false)
	a.Close()
	w.until(b, terminal.KindReady)
	if _, err := commandstest.Ask(w.World, commands.Retire, "r-1", commands.RetireInput{Named: commands.Named{Name: "demo"}}); err != nil {
		t.Fatal(err)
	}
	if got := reason(b); got != terminal.EndDespawn {
		t.Errorf("a retired seat ends its sessions with %s", got)
	}
	w.Spawn("other")
	r, err := commandstest.Ask(w.World, commands.Attach, "", commands.AttachInput{Named: commands.Named{Name: "other"}, Holder: w.pub})
	if err != nil {
		t.Fatal(err)
	}
	c, err := terminal.Begin(t.Context(), w.nc, w.key, r.Offer, 0, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	w.until(c, terminal.KindReady)
	w.srv.Stop()
	if got := reason(c); got != terminal.EndRestart {
		t.Errorf("a manager that stops ends its sessions with %s", got)
	}
}

// A holder of a manager that is gone is told to ask again by the next one.
func TestAnUnknownSessionIsToldToAskAgain(t *testing.T) {
	w := newWorld(t)
	name := strings.Repeat("a", 52)
	sub, err := w.nc.SubscribeSync(terminal.Subject(commandstest.Space, string(commandstest.Instance), name, terminal.Out))
	if err != nil {
		t.Fatal(err)
	}
	ping, err := terminal.Frame{Kind: terminal.KindPing}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.nc.Publish(terminal.Subject(commandstest.Space, string(commandstest.Instance), name, terminal.In), ping); err != nil {
		t.Fatal(err)
	}
	m, err := sub.NextMsg(commandstest.Patience)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := terminal.Decode(m.Data); err != nil || f.Kind != terminal.KindEnd || f.Reason != terminal.EndRestart {
		t.Fatalf("%+v, %v", f, err)
	}
}

// Scenario 62: a holder that does not read has a bounded window; it is told
// what it missed and sees the whole screen, and nobody else waits for it.
func TestAHolderThatStalls(t *testing.T) {
	w := newWorld(t)
	slow, quick := w.begin(true, false), w.begin(true, false)
	defer slow.Close()
	defer quick.Close()
	w.until(slow, terminal.KindReady)
	w.until(quick, terminal.KindReady)
	typeIn := func(text string) {
		t.Helper()
		if _, err := w.Drill.Input(t.Context(), w.env, "", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 * terminal.Window { // each comes to who reads, and fills the window of who does not
		text := fmt.Sprintf("<%d>", i)
		typeIn(text)
		w.shows(quick, text)
	}
	// More at once than the seat keeps for anybody.
	typeIn(strings.Repeat("y", 160<<10) + "\rthe end")
	w.shows(quick, "the end")
	f, before := w.until(slow, terminal.KindDrop)
	if f.Bytes <= 0 || len(before) > (terminal.Window+terminal.Window/4+1)*terminal.MaxFrame {
		t.Fatalf("%d bytes came before a drop of %d", len(before), f.Bytes)
	}
	w.shows(slow, "the end")
}
