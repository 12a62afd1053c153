package attach_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"berth/commands/attach"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/terminal"
)

// dim is a provider whose views can't be opened, or end.
type dim struct {
	attach.Providers
	providers.Terminal
	open, next error
}

func (d *dim) Get(name string) (providers.Entry, error) {
	e, err := d.Providers.Get(name)
	d.Terminal, e.Terminal = e.Terminal, d
	return e, err
}

func (d *dim) View(context.Context, events.EnvironmentID, string) (providers.View, error) {
	return d, d.open
}
func (d *dim) Next() (providers.Part, error) { return providers.Part{}, d.next }
func (d *dim) Close() error                  { return nil }

// A seat that can't be reached has not ended: what is unknown is not told as
// an end (law 2). A proof that it does not run is.
func TestWhatCannotBeReachedHasNotEnded(t *testing.T) {
	w := newWorld(t)
	w.srv.Stop()
	idle := fault.New(fault.FailedPrecondition, "the seat is not running").WithOutcome(fault.NotExecuted)
	for name, c := range map[string]struct {
		open, next error
		want       terminal.Reason
	}{
		"its provider does not answer": {open: fault.New(fault.Unavailable, "no answer"), want: terminal.EndClosed},
		"the view was cut":             {next: io.ErrUnexpectedEOF, want: terminal.EndClosed},
		"it does not run":              {open: idle, want: terminal.EndExit},
		"it ended":                     {next: io.EOF, want: terminal.EndExit},
	} {
		key, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		w.Plane.Sign = func(o terminal.Offer) (terminal.Offer, error) { return o.Sign(key) }
		srv, err := attach.Start(attach.Options{
			Conn: w.nc, Space: commandstest.Space, Self: w.Plane.Self, Key: key, Log: w.Log, Shelf: w.Shelf,
			Providers: &dim{Providers: w.Plane.Providers, open: c.open, next: c.next}, IDs: w.IDs, Now: time.Now, Caller: commandstest.Caller,
		})
		if err != nil {
			t.Fatal(err)
		}
		s := w.begin(true, false)
		if f, _ := w.until(s, terminal.KindEnd); f.Reason != c.want {
			t.Errorf("%s: %s (%s), not %s", name, f.Reason, f.Detail, c.want)
		}
		s.Close()
		srv.Stop()
	}
}
