package attach_test

import (
	"context"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"

	"berth/commands/commandstest"
	"berth/events"
	"berth/internal/embedded"
	"berth/providers"
	"berth/terminal"
)

// TestMain holds the server's process-wide clock outside of every bubble.
func TestMain(m *testing.M) {
	ats.Register()
	code := m.Run()
	ats.Unregister()
	os.Exit(code)
}

// emptyPools collects twice, which empties every pool: the client library keeps
// timers in one of the process, and one of outside is fatal in a bubble, as one
// of a bubble is outside.
func emptyPools() {
	runtime.GC()
	runtime.GC()
}

// lasting is a terminal that shows one screen for ever.
type lasting struct{}

func (lasting) Input(_ context.Context, _ events.EnvironmentID, _ string, p []byte) (int, error) {
	return len(p), nil
}

func (lasting) Resize(context.Context, events.EnvironmentID, string, providers.Size) error {
	return nil
}

func (lasting) View(ctx context.Context, _ events.EnvironmentID, _ string) (providers.View, error) {
	return &still{ctx: ctx}, nil
}

type still struct {
	ctx   context.Context
	shown bool
}

func (s *still) Next() (providers.Part, error) {
	if s.shown {
		<-s.ctx.Done()
		return providers.Part{}, s.ctx.Err()
	}
	s.shown = true
	return providers.Part{Kind: providers.PartRepaint, Size: providers.Size{Rows: 24, Cols: 80}}, nil
}

func (*still) Close() error { return nil }

// In virtual time: a holder that says nothing is closed after 30 s and not
// before, and one that speaks is told after 24 h that its time is over.
func TestSilenceAndExpiry(t *testing.T) {
	emptyPools()
	defer emptyPools()
	synctest.Test(t, func(t *testing.T) {
		w := worldWith(t, embedded.Options{}, lasting{})
		o := w.offer(false)
		sub, err := w.nc.SubscribeSync(terminal.Subject(commandstest.Space, string(commandstest.Instance), o.Session, terminal.Out))
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		silent, err := terminal.Begin(t.Context(), w.nc, w.key, o, 24, 80, false)
		if err != nil {
			t.Fatal(err)
		}
		_ = silent // Next is not called, so that it sends no ping
		end := func() terminal.Frame {
			for {
				m, err := sub.NextMsg(48 * time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				if f, err := terminal.Decode(m.Data); err == nil && f.Kind == terminal.KindEnd {
					return f
				}
			}
		}
		f := end()
		if took := time.Since(begun); f.Reason != terminal.EndClosed || took < 30*time.Second || took > 40*time.Second {
			t.Errorf("silence ended with %+v after %s", f, took)
		}

		o = w.offer(true)
		begun = time.Now()
		speaks, err := terminal.Begin(t.Context(), w.nc, w.key, o, 24, 80, false)
		if err != nil {
			t.Fatal(err)
		}
		for {
			if f, err = speaks.Next(context.Background()); err != nil || f.Kind == terminal.KindEnd {
				break
			}
		}
		if took := time.Since(begun); f.Reason != terminal.EndExpired || took < 24*time.Hour-time.Minute || took > 24*time.Hour+time.Minute {
			t.Errorf("it ended with %+v (%v) after %s", f, err, took)
		}
	})
}
