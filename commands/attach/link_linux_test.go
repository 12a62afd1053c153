package attach_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"berth/commands/commandstest"
	"berth/events"
	"berth/internal/embedded"
	"berth/internal/prove/link"
	"berth/providers"
	"berth/providers/process/custodian"
	"berth/providers/process/seatdir"
	"berth/terminal"
)

// kept is a terminal over the output of a real custodian, that echoes.
type kept struct{ *custodian.Output }

func (k kept) Input(_ context.Context, _ events.EnvironmentID, _ string, p []byte) (int, error) {
	return k.Write(p)
}

func (k kept) Resize(_ context.Context, _ events.EnvironmentID, _ string, s providers.Size) error {
	k.Output.Resize(s.Rows, s.Cols)
	return nil
}

func (k kept) View(ctx context.Context, _ events.EnvironmentID, _ string) (providers.View, error) {
	r, w := net.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = r.Close() })
	go func() { _ = k.Output.View(w) }()
	return &providers.PartStream{R: r, C: closed(func() error { stop(); return r.Close() })}, nil
}

type closed func() error

func (c closed) Close() error { return c() }

// Scenario 61: the link is cut while the seat writes 100 MB. The holder is told
// that the link was lost, another who looks gets on, the next session begins
// with the whole screen, and input works.
func TestALinkCutUnderOutput(t *testing.T) {
	out, err := custodian.OpenOutput(seatdir.Dir{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	w := worldWith(t, embedded.Options{Listen: true}, kept{out})
	p, err := link.New(strings.TrimPrefix(w.url, "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	nc, err := nats.Connect("nats://"+p.Addr(), nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	far, err := terminal.Begin(t.Context(), nc, w.key, w.offer(false), 24, 80, false)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	w.until(far, terminal.KindReady)
	near := w.begin(true, false)
	defer near.Close()
	w.until(near, terminal.KindReady)

	block := bytes.Repeat([]byte(strings.Repeat("y", 78)+"\r\n"), 1<<20/80)
	const blocks = 100
	half, cut := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for i := range blocks {
			if i == blocks/2 {
				close(half)
				<-cut
			}
			_, _ = out.Write(block)
		}
		_, _ = out.Write([]byte("\x1b[H\x1b[2Jthe last screen\r\n"))
	})
	wg.Go(func() { <-half; p.Cut(); close(cut) })
	if f := ended(w, far); f.Reason != terminal.EndLinkLost {
		t.Fatalf("a cut link ends the session with %+v", f)
	}
	w.shows(near, "the last screen") // though nobody takes the other's frames
	p.Mend()

	// Another connection is made and another session asked for, as berth attach
	// does.
	anew, err := nats.Connect("nats://" + p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer anew.Close()
	again, err := terminal.Begin(t.Context(), anew, w.key, w.offer(false), 24, 80, true)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if f, _ := w.until(again, terminal.KindReady); !f.Writer {
		t.Fatalf("%+v", f)
	}
	w.shows(again, "the last screen")
	again.Type([]byte("typed afterwards"))
	w.shows(again, "typed afterwards")
}

// ended reads to the end of a session.
func ended(w *world, s *terminal.Session) terminal.Frame {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), commandstest.Patience)
	defer cancel()
	for {
		f, err := s.Next(ctx)
		if err != nil {
			w.t.Fatalf("it did not end: %v", err)
		}
		if f.Kind == terminal.KindEnd {
			return f
		}
	}
}
