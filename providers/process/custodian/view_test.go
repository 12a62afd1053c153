//go:build linux

package custodian

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"berth/providers"
	"berth/providers/process/seatdir"
)

// look opens a view and returns its parts as they are asked for.
func look(t *testing.T, o *output) (next func() (providers.Part, error), stop func()) {
	t.Helper()
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(errors.Join(o.view(&follower{Writer: w}), io.EOF)) }()
	return func() (providers.Part, error) { return providers.ReadPart(r) }, func() { _ = r.Close() }
}

func must(t *testing.T, next func() (providers.Part, error), kind providers.PartKind) providers.Part {
	t.Helper()
	p, err := next()
	if err != nil || p.Kind != kind {
		t.Fatalf("part %+v, %v; wanted kind %d", p, err, kind)
	}
	return p
}

func TestALateViewBeginsWithTheWholeScreen(t *testing.T) {
	o, err := newOutput(seatdir.Dir{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = o.Write([]byte("before\r\n\x1b[31mred\xe6\x97")) // half a character
	next, stop := look(t, o)
	defer stop()
	p := must(t, next, providers.PartRepaint)
	if !bytes.Contains(p.Data, []byte("before")) || !bytes.Contains(p.Data, []byte("red")) || p.Dropped != 0 || p.Partial || p.Size != (providers.Size{Rows: defaultRows, Cols: defaultCols}) {
		t.Fatalf("%+v", p)
	}
	_, _ = o.Write([]byte("\xa5!"))
	var live []byte
	for len(live) < 4 {
		live = append(live, must(t, next, providers.PartData).Data...)
	}
	if string(live) != "\xe6\x97\xa5!" { // scenario 59: the whole character
		t.Fatalf("%q", live)
	}
	for _, failed := range []error{errors.New("no"), nil} { // of a size that the terminal did not take nobody is told
		err := o.resize(providers.Size{Rows: 10, Cols: 20}, func(providers.Size) error {
			if o.screen.mu.TryLock() {
				t.Error("a nudge may come between the terminal's size and the one that is told")
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.size.Rows == 10 {
				t.Error("the size was told before the terminal had it")
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
	}
	if p := must(t, next, providers.PartSize); p.Size != (providers.Size{Rows: 10, Cols: 20}) {
		t.Fatalf("%+v", p)
	}
	_, _ = o.Write([]byte("last"))
	o.close()
	if p := must(t, next, providers.PartData); string(p.Data) != "last" {
		t.Fatalf("%q", p.Data)
	}
	if p, err := next(); err == nil {
		t.Fatalf("after the end: %+v", p)
	}
}

// Scenario 62: a reader that stalls costs neither the seat, but for a moment, nor
// another reader anything; it is told how much it missed and sees the whole screen.
func TestAStalledViewIsToldWhatItMissed(t *testing.T) {
	o, err := newOutput(seatdir.Dir{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	slow, stop := look(t, o)
	defer stop()
	must(t, slow, providers.PartRepaint)
	line := []byte(strings.Repeat("y", 1022) + "\r\n")
	for range 8 * RingBytes / len(line) { // nobody reads, and this does not block
		_, _ = o.Write(line)
	}
	_, _ = o.Write([]byte("\x1b[H\x1b[2Jthe end"))
	got, dropped, shown := int64(0), int64(0), []byte(nil)
	total := int64(8*RingBytes/len(line)*len(line) + 14)
	for got+dropped < total {
		p, err := slow()
		if err != nil {
			t.Fatal(err)
		}
		if p.Kind == providers.PartRepaint {
			dropped, shown = dropped+p.Dropped, nil
		} else {
			got += int64(len(p.Data))
		}
		shown = append(shown, p.Data...)
	}
	if got+dropped != total || dropped == 0 || !bytes.Contains(shown, []byte("the end")) {
		t.Fatalf("%d bytes came and %d were dropped, of %d; the last was %q", got, dropped, total, shown[max(0, len(shown)-100):])
	}
	_, _ = o.Write([]byte("more"))
	if p := must(t, slow, providers.PartData); string(p.Data) != "more" {
		t.Fatalf("%q", p.Data)
	}
	o.close()
}

// A program that owns the whole screen is asked to paint again when output was
// too fast to be followed.
func TestAPartialScreenIsNudged(t *testing.T) {
	o, err := newOutput(seatdir.Dir{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	nudged := 0
	o.nudge = func() { nudged++ }
	_, _ = o.Write([]byte("\x1b[?1049h"))
	if p, _ := o.repaint(); p.Partial {
		t.Fatal("partial though nothing is missing")
	}
	o.screen.mu.Lock() // the emulator is busy
	_, _ = o.Write(bytes.Repeat([]byte("x"), 3*RingBytes))
	o.screen.mu.Unlock()
	o.screen.mu.Lock()
	o.catchUp()
	missed := o.screen.partial
	o.screen.mu.Unlock()
	p, _ := o.repaint()
	if !missed || !p.Partial || nudged != 1 {
		t.Fatalf("missed %t, partial %t, nudged %d", missed, p.Partial, nudged)
	}
	if p, _ = o.repaint(); p.Partial || nudged != 1 {
		t.Fatalf("again: partial %t, nudged %d", p.Partial, nudged)
	}
}
