package embedded_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"berth/internal/embedded"
)

func TestInProcessOnly(t *testing.T) {
	s, nc := embedded.ForTest(t, nil)
	if s.Addr() != nil {
		t.Fatalf("it listens on %s", s.Addr())
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "X", Subjects: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "x", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if blocks, _ := filepath.Glob(filepath.Join(s.StreamDir("$G", "X"), "*.blk")); len(blocks) != 1 {
		t.Fatalf("blocks %v", blocks)
	}
	if s.Addr() != nil {
		t.Fatal("it listens")
	}
}

func TestListensOnLoopback(t *testing.T) {
	s, _ := embedded.ForTest(t, func(o *embedded.Options) { o.Listen = true })
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

func TestStartFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Start(t.Context(), embedded.Options{StoreDir: filepath.Join(file, "x")}); err == nil || !strings.Contains(err.Error(), "JetStream") {
		t.Fatalf("a server without a place for its files: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := embedded.Start(ctx, embedded.Options{StoreDir: t.TempDir()})
	if err == nil {
		s.Stop() // it was quicker than the look at the context
	} else if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
