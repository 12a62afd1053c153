package providertest

import (
	"bytes"
	"context"
	"errors"
	"io"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// screenShown holds capability `screen` to what it says: a terminal that is
// typed into and looked at by several, from the whole screen on, to its end.
func screenShown(b *bench) {
	claimed := b.capabilities().Screen
	t, ok := b.raw.(providers.Terminal)
	switch {
	case !claimed:
		b.notClaimed("the driver says that its seats have no screen")
	case !ok:
		b.Fatalf("the driver claims a screen and has no terminal (providers.Terminal)")
	}
	s := b.seat()
	if n, err := t.Input(b.ctx, s.id, "", []byte("x")); err == nil || n != 0 || fault.From(err).Outcome != fault.NotExecuted {
		b.Errorf("input to an environment that is not there: %d bytes, %v, want a refusal with nothing executed", n, err)
	}
	s.until(events.VerbStart)
	first := s.look(t)
	defer first.Close()
	s.typed(t, first, "z1z1z1")
	late := s.look(t)
	defer late.Close()
	s.typed(t, late, "z2z2z2")
	first.shows("z2z2z2")

	size := providers.Size{Rows: 31, Cols: 101}
	if err := t.Resize(b.ctx, s.id, s.ref, size); err != nil {
		b.Fatalf("resize: %v", err)
	}
	for late.size != size {
		late.next()
	}
	s.must(events.VerbStop, events.Arguments{Grace: "0s"})
	for !first.ended {
		first.next()
	}
	n, err := t.Input(b.ctx, s.id, s.ref, []byte("x"))
	if f := fault.From(err); err == nil || n != 0 || f.Code != fault.FailedPrecondition || f.Outcome != fault.NotExecuted {
		b.Errorf("input to a seat that has ended: %d bytes, %v, want failed-precondition and nothing executed", n, err)
	}
}

// watched is one view of a check, with what it showed last.
type watched struct {
	b *bench
	providers.View
	size  providers.Size
	shown []byte
	ended bool
}

// maxShown bounds what is kept of a view's output: enough to find a text cut
// by parts.
const maxShown = 4 << 10

// look opens a view and takes its first part, which paints the whole screen.
func (s *seat) look(t providers.Terminal) *watched {
	s.b.Helper()
	v, err := t.View(s.b.ctx, s.id, s.ref)
	if err != nil {
		s.b.Fatalf("view: %v", err)
	}
	w := &watched{b: s.b, View: v}
	if p := w.next(); p.Kind != providers.PartRepaint || len(p.Data) == 0 || p.Size.Check() != nil || p.Dropped != 0 {
		s.b.Errorf("a view begins with %+v, want a repaint of a whole screen", p)
	}
	return w
}

func (w *watched) next() providers.Part {
	w.b.Helper()
	p, err := w.Next()
	switch {
	case errors.Is(err, io.EOF):
		w.ended = true
	case errors.Is(err, context.DeadlineExceeded) || err != nil && w.b.ctx.Err() != nil:
		w.b.Fatalf("a view showed nothing more within the patience; last was %q", w.shown)
	case err != nil:
		w.b.Fatalf("a view broke: %v", err)
	}
	if p.Kind == providers.PartRepaint || p.Kind == providers.PartSize {
		w.size = p.Size
	}
	w.shown = append(w.shown, p.Data...)
	w.shown = w.shown[max(0, len(w.shown)-maxShown):]
	return p
}

// shows reads on until a text was shown.
func (w *watched) shows(text string) {
	w.b.Helper()
	for !bytes.Contains(w.shown, []byte(text)) {
		if w.next(); w.ended {
			w.b.Fatalf("a view ended before it showed %q; last was %q", text, w.shown)
		}
	}
}

// typed types a text and waits for its echo.
func (s *seat) typed(t providers.Terminal, w *watched, text string) {
	s.b.Helper()
	if n, err := t.Input(s.b.ctx, s.id, s.ref, []byte(text)); err != nil || n != len(text) {
		s.b.Fatalf("input: %d bytes of %d were taken: %v", n, len(text), err)
	}
	w.shows(text)
}
