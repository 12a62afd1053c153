package hosted_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted"
	"berth/providers/hosted/server"
)

// screenOf begins a view, whose first part is the whole screen.
func screenOf(t *testing.T, d *hosted.Driver, id events.EnvironmentID, ref string) (providers.View, providers.Part) {
	t.Helper()
	v, err := d.View(within(t), id, ref)
	if err != nil {
		t.Fatal(err)
	}
	p, err := v.Next()
	if err != nil || p.Kind != providers.PartRepaint {
		t.Fatalf("%+v %v", p, err)
	}
	return v, p
}

// TestTerminalOverHTTPS (capability screen, R11): what is typed there is seen
// here, the size follows, a stop is the end, and a cut is none.
func TestTerminalOverHTTPS(t *testing.T) {
	t.Parallel()
	e, d := overDrill(t, faithful)
	id, ref := provisioned(t, d)
	if out := d.Do(within(t), operation(id, events.VerbStart, ref)); out.Kind != providers.Done {
		t.Fatalf("%s %v", out.Kind, out.Fault)
	}
	v, _ := screenOf(t, d, id, ref)
	defer v.Close()
	if n, err := d.Input(within(t), id, ref, []byte("hello")); n != 5 || err != nil {
		t.Fatalf("%d %v", n, err)
	}
	if p, err := v.Next(); err != nil || p.Kind != providers.PartData || string(p.Data) != "hello" {
		t.Fatalf("%+v %v", p, err)
	}
	size := providers.Size{Rows: 30, Cols: 90}
	if err := d.Resize(within(t), id, ref, size); err != nil {
		t.Fatal(err)
	}
	if p, err := v.Next(); err != nil || p.Kind != providers.PartSize || p.Size != size {
		t.Fatalf("%+v %v", p, err)
	}
	if err := d.Resize(within(t), id, ref, providers.Size{}); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("no size: %v", err)
	}
	long := bytes.Repeat([]byte("x"), providers.MaxTerminalInput+1)
	if n, err := d.Input(within(t), id, ref, long); n != 0 || fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("%d bytes of too much input: %v", n, err)
	}
	if n, err := d.Input(within(t), id, ref, long[1:]); n != len(long)-1 || err != nil {
		t.Errorf("%d bytes of as much as may be: %v", n, err)
	}
	if _, err := d.View(within(t), newEnvironment(), ""); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a screen of nothing: %v", err)
	}

	// The provider goes away and comes back: the view breaks off.
	e.stop()
	for err := error(nil); err == nil; {
		if _, err = v.Next(); errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal("a line that was cut looks like the end of the seat")
		}
	}
	e.start()
	d.Close()
	v, p := screenOf(t, d, id, ref)
	defer v.Close()
	if p.Size != size {
		t.Errorf("%+v", p.Size)
	}
	if out := d.Do(within(t), operation(id, events.VerbStop, ref)); out.Kind != providers.Done {
		t.Fatalf("%s %v", out.Kind, out.Fault)
	}
	for err := error(nil); !errors.Is(err, io.EOF); {
		if _, err = v.Next(); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
}

// TestNoTerminalThere (R5): a driver without one refuses, before anything.
func TestNoTerminalThere(t *testing.T) {
	t.Parallel()
	e := serve(t, server.Config{Driver: &stub{}, Log: memory.New()})
	defer e.stop()
	d := client(t, config(e.addr))
	defer d.Close()
	id := newEnvironment()
	_, err := d.Input(within(t), id, "", []byte("x"))
	_, verr := d.View(within(t), id, "")
	for _, err := range []error{err, verr, d.Resize(within(t), id, "", providers.Size{Rows: 1, Cols: 1})} {
		if fault.CodeOf(err) != fault.Unimplemented {
			t.Errorf("%v", err)
		}
	}
}

// TestTypingStaysSecret (R55): what is typed is in no failure.
func TestTypingStaysSecret(t *testing.T) {
	t.Parallel()
	const canary = "canary-5up3r-53cr3t-b3rth"
	e := serve(t, server.Config{Driver: &chatty{stub{say: canary}}, Log: memory.New()})
	defer e.stop()
	d := client(t, config(e.addr))
	defer d.Close()
	n, err := d.Input(within(t), newEnvironment(), "", []byte(canary))
	if n != 3 || err == nil || bytes.Contains(fmt.Appendf(nil, "%v %+v", err, err), []byte(canary)) {
		t.Errorf("%d %v", n, err)
	}
}

// chatty repeats what was typed in its failures.
type chatty struct{ stub }

func (c *chatty) Input(context.Context, events.EnvironmentID, string, []byte) (int, error) {
	return 3, c.fault()
}

func (c *chatty) Resize(context.Context, events.EnvironmentID, string, providers.Size) error {
	return c.fault()
}

func (c *chatty) View(context.Context, events.EnvironmentID, string) (providers.View, error) {
	return nil, c.fault()
}
