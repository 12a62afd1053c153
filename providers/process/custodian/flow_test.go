//go:build linux

package custodian

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"berth/providers"
	"berth/providers/process/seatdir"
)

// What flows comes in large parts, and whoever types waits for nothing.
func TestAFlowIsGathered(t *testing.T) {
	o, err := newOutput(seatdir.Dir{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	o.moment = time.Hour
	next, stop := look(t, o)
	defer stop()
	must(t, next, providers.PartRepaint)
	for _, key := range []string{"a", "b"} { // an echo follows no flow
		_, _ = o.Write([]byte(key))
		if p := must(t, next, providers.PartData); string(p.Data) != key {
			t.Fatalf("%q", p.Data)
		}
	}
	piece := bytes.Repeat([]byte("x"), flowing)
	_, _ = o.Write(piece)
	must(t, next, providers.PartData)
	for range maxData / len(piece) {
		_, _ = o.Write(piece)
	}
	if p := must(t, next, providers.PartData); len(p.Data) != maxData {
		t.Fatalf("a part of %d bytes", len(p.Data))
	}
	_, _ = o.Write([]byte("the rest"))
	if err := o.resize(providers.Size{Rows: 3, Cols: 4}, func(providers.Size) error { return nil }); err != nil {
		t.Fatal(err)
	}
	must(t, next, providers.PartSize) // and not behind what gathers
	o.close()
	if p := must(t, next, providers.PartData); string(p.Data) != "the rest" {
		t.Fatalf("%q", p.Data)
	}
}

// Less than a large part comes after a moment.
func TestWhatIsGatheredComesSoon(t *testing.T) {
	o, err := newOutput(seatdir.Dir{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	next, stop := look(t, o)
	defer stop()
	must(t, next, providers.PartRepaint)
	for range 3 {
		_, _ = o.Write(bytes.Repeat([]byte("x"), flowing))
		for got := 0; got < flowing; {
			got += len(must(t, next, providers.PartData).Data)
		}
	}
}

// Output that has passed the emulator costs nothing more while it goes on, and
// is shown when it is calm.
func TestTheScreenWaitsForCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := newOutput(seatdir.Dir{Path: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		fed := func() int64 { synctest.Wait(); o.mu.Lock(); defer o.mu.Unlock(); return o.fed }
		synctest.Wait()
		_, _ = o.Write(make([]byte, 3*RingBytes))
		for range 100 {
			_, _ = o.Write(make([]byte, calmAt))
			if at := fed(); at != 0 {
				t.Fatalf("the screen was fed up to %d in the middle of a flood", at)
			}
			time.Sleep(calmIn / 2)
		}
		_, _ = o.Write([]byte("\x1b[H\x1b[2Jthe end"))
		time.Sleep(2 * calmIn)
		if at := fed(); at != o.total {
			t.Fatalf("the screen was fed up to %d of %d", at, o.total)
		}
		if p, _ := o.repaint(); !bytes.Contains(p.Data, []byte("the end")) {
			t.Fatalf("%q", p.Data)
		}
		o.close()
		synctest.Wait()
		o.screen.s.Close()
	})
}

// summed is what was written, as a length and a hash.
type summed struct {
	n int
	h hash.Hash
}

func (s *summed) Write(p []byte) (int, error) { s.n += len(p); return s.h.Write(p) }

// Of a terminal's output nothing is lost, doubled or out of order, up to its end.
func TestATerminalIsDrainedWhole(t *testing.T) {
	master, slave, err := openTerminal()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	mode, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	mode.Oflag, mode.Lflag = 0, 0 // bytes as they are
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, mode); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 1<<20)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(want)
	go func() {
		defer slave.Close()
		for p := want; len(p) > 0; { // in pieces of any length
			n := min(1+int(r.Uint64()%20000), len(p))
			if m, err := slave.Write(p[:n]); err != nil || m != n {
				t.Errorf("wrote %d of %d: %v", m, n, err)
				return
			}
			p = p[n:]
		}
	}()
	got := &summed{h: sha256.New()}
	drain(got, master)
	if sum := sha256.Sum256(want); got.n != len(want) || !bytes.Equal(got.h.Sum(nil), sum[:]) {
		t.Fatalf("%d of %d bytes came, or others", got.n, len(want))
	}
}
