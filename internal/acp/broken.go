package acp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"unicode/utf8"
)

const (
	// MaxBroken is how many messages of an agent may be none of the protocol
	// before it is given up.
	MaxBroken = 16
	// maxExcerpt bounds what is shown of one, in bytes.
	maxExcerpt = 200
)

// errBroken is the end of an agent that does not keep to the protocol.
var errBroken = fmt.Errorf("the agent sent %d messages that can't be read: it does not speak the Agent Client Protocol", MaxBroken)

// broken shows what the library could not read of the agent, which it only tells
// its log, and counts it.
type broken struct {
	page *page
	all  chan struct{} // closed at MaxBroken

	mu sync.Mutex
	n  int
}

func newBroken(p *page) *broken { return &broken{page: p, all: make(chan struct{})} }

// Enabled implements slog.Handler.
func (b *broken) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

// Handle implements slog.Handler.
func (b *broken) Handle(_ context.Context, r slog.Record) error {
	raw := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "raw" {
			raw = excerpt(a.Value.String())
		}
		return raw == ""
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n == MaxBroken {
		return errors.New("it was given up")
	}
	b.n++
	if raw == "" {
		b.page.line("[the connection to the agent: %s]", r.Message)
	} else {
		b.page.line("[a message of the agent can't be read: %s]", raw)
	}
	if b.n == MaxBroken {
		close(b.all)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (b *broken) WithAttrs([]slog.Attr) slog.Handler { return b }

// WithGroup implements slog.Handler.
func (b *broken) WithGroup(string) slog.Handler { return b }

// excerpt is the beginning of a text, whole characters of it.
func excerpt(s string) string {
	if len(s) <= maxExcerpt {
		return s
	}
	n := maxExcerpt
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
