package drill

import (
	"bytes"
	"context"
	"io"
	"testing"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// The simulated screen shows the seat's output and echoes what is typed; a
// view sees the whole screen first, and ends with the seat.
func TestSimulatedTerminal(t *testing.T) {
	d := openDir(t, t.TempDir())
	ctx := t.Context()
	op := realOp(1, events.VerbReserve)
	if _, err := d.Input(ctx, op.Environment, "", []byte("x")); fault.CodeOf(err) != fault.NotFound {
		t.Fatalf("before there is anything: %v", err)
	}
	for i, v := range []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart} {
		o := realOp(1, v)
		o.ID = events.OperationID("operation-0000000" + string(rune('1'+i)))
		if out := d.Do(ctx, o); out.Kind != providers.Done {
			t.Fatalf("%s: %+v", v, out)
		}
	}
	if n, err := d.Input(ctx, op.Environment, "", []byte("early\r")); n != 6 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	v, err := d.View(ctx, op.Environment, "")
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	p, err := v.Next()
	if err != nil || p.Kind != providers.PartRepaint || !bytes.Contains(p.Data, []byte("early")) || !bytes.Contains(p.Data, []byte("drill web-1 start")) {
		t.Fatalf("%q, %v", p.Data, err)
	}
	if _, err := d.Input(ctx, op.Environment, "", []byte("late\x03")); err != nil {
		t.Fatal(err)
	}
	if p, err := v.Next(); err != nil || p.Kind != providers.PartData || string(p.Data) != "late^C" {
		t.Fatalf("%q, %v", p.Data, err)
	}
	if err := d.Resize(ctx, op.Environment, "", providers.Size{Rows: 30, Cols: 90}); err != nil {
		t.Fatal(err)
	}
	if p, err := v.Next(); err != nil || p.Kind != providers.PartSize || p.Size != (providers.Size{Rows: 30, Cols: 90}) {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := d.Input(ctx, op.Environment, "", bytes.Repeat([]byte("x"), 4*terminalBytes)); err != nil {
		t.Fatal(err)
	}
	if p, err := v.Next(); err != nil || p.Kind != providers.PartRepaint || p.Dropped != 4*terminalBytes {
		t.Fatalf("kind %d, %d dropped, %v", p.Kind, p.Dropped, err)
	}
	stop := realOp(1, events.VerbStop)
	stop.ID = "operation-00000009"
	if out := d.Do(ctx, stop); out.Kind != providers.Done {
		t.Fatalf("%+v", out)
	}
	if p, err := v.Next(); err != io.EOF {
		t.Fatalf("after the stop: %+v, %v", p, err)
	}
	if _, err := d.Input(context.Background(), op.Environment, "", []byte("x")); fault.CodeOf(err) != fault.FailedPrecondition || fault.From(err).Outcome != fault.NotExecuted {
		t.Fatalf("after the stop: %v", err)
	}
}
