package barrier_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"berth/events"
	"berth/events/eventlog/logtest"
	"berth/events/eventlog/stream"
	"berth/internal/embedded"
	"berth/internal/prove/loopdisk"
)

// Environment of the process whose power is cut.
const (
	envStore   = "BERTH_POWERCUT_STORE"
	envProfile = "BERTH_POWERCUT_PROFILE"
)

func TestMain(m *testing.M) {
	if store := os.Getenv(envStore); store != "" {
		if err := writeUntilDead(store, os.Getenv(envProfile)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// writeUntilDead commits from several writers and prints each commit that was
// acknowledged as durable.
func writeUntilDead(store, profile string) error {
	ctx := context.Background()
	s, err := embedded.Start(ctx, embedded.Options{StoreDir: store, SyncAlways: profile == "strict", SyncInterval: time.Hour})
	if err != nil {
		return err
	}
	var l *stream.Log
	if profile == "group" {
		l, _, err = openGroup(ctx, store, s, true)
	} else {
		nc, cerr := s.Connect()
		if cerr != nil {
			return cerr
		}
		l, err = stream.Open(ctx, nc, stream.Config{Space: space, Create: true})
	}
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			b, last := events.SeatBoundary("local", events.Alias(fmt.Sprintf("w%d", w))), uint64(0)
			for n := 0; ; n++ {
				r, err := l.Commit(ctx, logtest.Commit(n*8+w, b, last))
				if err != nil {
					return
				}
				last = r.Sequence
				mu.Lock()
				fmt.Println("acked", r.Sequence, r.Meta.ID)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return nil
}

// TestPowerCut cuts the power of the file system under a running log, in both
// profiles: what had been acknowledged is there again. It needs root and a
// loop device.
func TestPowerCut(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, durability is not shown here: cutting the power takes seconds")
	}
	if !loopdisk.Privately(t) {
		return
	}
	for _, profile := range []string{"group", "strict", "group"} {
		t.Run(profile, func(t *testing.T) { cutPower(t, profile) })
	}
}

func cutPower(t *testing.T, profile string) {
	d := loopdisk.New(t)
	store := filepath.Join(d.Mount, "js")
	if err := os.Mkdir(store, 0o755); err != nil {
		t.Fatal(err)
	}
	d.Sync()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), envStore+"="+store, envProfile+"="+profile)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { child.Process.Kill(); child.Wait() }()
	// Only what was read before the cut counts as acknowledged.
	const enough = 400
	lines := make(chan string, 1<<16)
	go func() {
		defer close(lines)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			lines <- sc.Text()
		}
	}()
	acked := map[uint64]string{}
	deadline := time.After(within)
	for len(acked) < enough {
		select {
		case <-deadline:
			t.Fatalf("only %d commits in %s", len(acked), within)
		case line, ok := <-lines:
			var seq uint64
			var id string
			if n, _ := fmt.Sscanf(line, "acked %d %s", &seq, &id); !ok || n != 2 {
				t.Fatalf("the writer says %q", line)
			}
			acked[seq] = id
		}
	}
	d.Cut()
	child.Process.Kill()
	child.Wait()
	d.Remount()
	recovered := readAll(t, store)
	for seq, id := range acked {
		if recovered[seq] != id {
			t.Fatalf("commit %s was acknowledged at %d and is lost: %d of %d recovered", id, seq, len(recovered), len(acked))
		}
	}
}

func readAll(t *testing.T, store string) map[uint64]string {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := embedded.Start(ctx, embedded.Options{StoreDir: store})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	l, err := stream.Open(ctx, nc, stream.Config{Space: space})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out := map[uint64]string{}
	if err := l.Scan(ctx, 0, func(r events.Record) error { out[r.Sequence] = string(r.Meta.ID); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}
