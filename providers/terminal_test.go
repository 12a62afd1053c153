package providers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"testing"

	"berth/events"
	"berth/events/fault"
)

func TestPartsComeThrough(t *testing.T) {
	parts := []Part{
		{Kind: PartRepaint, Data: []byte("\x1bc"), Size: Size{24, 80}, Dropped: 1 << 40, Partial: true},
		{Kind: PartData, Data: []byte("日本")},
		{Kind: PartSize, Data: []byte{}, Size: Size{1, MaxTerminalSide}},
	}
	var b bytes.Buffer
	for _, p := range parts {
		if err := WritePart(&b, p); err != nil {
			t.Fatal(err)
		}
	}
	whole := bytes.Clone(b.Bytes())
	for _, want := range parts {
		if got, err := ReadPart(&b); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %v; not %+v", got, err, want)
		}
	}
	if _, err := ReadPart(&b); err != io.EOF {
		t.Fatalf("at the end: %v", err)
	}
	if _, err := ReadPart(bytes.NewReader(whole[:19])); err != io.ErrUnexpectedEOF {
		t.Fatalf("within a part: %v", err)
	}
	if err := WritePart(io.Discard, Part{Kind: PartData, Data: make([]byte, MaxPart+1)}); err == nil {
		t.Fatal("a part beyond the limit was written")
	}
}

func FuzzReadPart(f *testing.F) {
	var b bytes.Buffer
	_ = WritePart(&b, Part{Kind: PartRepaint, Data: []byte("x"), Size: Size{2, 3}, Dropped: 4})
	f.Add(b.Bytes())
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := ReadPart(bytes.NewReader(raw))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := WritePart(&again, p); err != nil || !bytes.Equal(again.Bytes(), raw[:again.Len()]) {
			t.Fatalf("%+v is written as %x, %v", p, again.Bytes(), err)
		}
	})
}

// shaky is a driver whose terminal panics and lies.
type shaky struct {
	Driver
	input func() (int, error)
}

func (shaky) Name() string { return "shaky" }

func (s shaky) Input(context.Context, events.EnvironmentID, string, []byte) (int, error) {
	return s.input()
}

func (shaky) Resize(context.Context, events.EnvironmentID, string, Size) error { panic("no") }

func (shaky) View(context.Context, events.EnvironmentID, string) (View, error) { return nil, nil }

func TestTerminalsAreGuarded(t *testing.T) {
	d := shaky{input: func() (int, error) { return 1 << 20, errors.New("password: hunter2 is wrong") }}
	e, err := freeze(BundleOf(d, nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if n, err := e.Terminal.Input(ctx, "", "", []byte("abc")); n != 3 || err == nil || bytes.Contains([]byte(err.Error()), []byte("hunter2")) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := e.Terminal.Input(ctx, "", "", make([]byte, MaxTerminalInput+1)); n != 0 || fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("beyond the limit: %d, %v", n, err)
	}
	for _, s := range []Size{{}, {0, 1}, {1, 0}, {MaxTerminalSide + 1, 1}, {1, MaxTerminalSide + 1}} {
		if err := e.Terminal.Resize(ctx, "", "", s); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("size %v: %v", s, err)
		}
	}
	if err := e.Terminal.Resize(ctx, "", "", Size{1, 1}); err == nil {
		t.Error("a panic was an answer")
	}
	if _, err := e.Terminal.View(ctx, "", ""); err == nil {
		t.Error("no view was an answer")
	}
}

// A driver without a terminal says so at registration (R11).
func TestNoTerminalIsSaid(t *testing.T) {
	var d Driver = plainDriver{}
	if s := BundleOf(d, nil).Surfaces[SurfaceTerminal]; s.Supported || s.Reason == "" {
		t.Fatalf("%+v", s)
	}
}

type plainDriver struct{ Driver }
