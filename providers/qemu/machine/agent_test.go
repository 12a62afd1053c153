//go:build linux

package machine

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/providers/process/seatdir"
	"berth/providers/qemu/wire"
)

// scripted is the other end of a port, played by a function.
func scripted(t *testing.T, play func(c net.Conn)) *peer {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	go play(theirs)
	return newPeer(ours, 100, func([]byte) {}, func() {}, func(*peer) func(wire.Frame) { return func(wire.Frame) {} })
}

// An answer from before a restore has another number and changes nothing.
func TestAnswersAreTakenByNumber(t *testing.T) {
	p := scripted(t, func(c net.Conn) {
		w := wire.NewWriter(c)
		f, _ := wire.Read(c)
		_ = w.Send(wire.Frame{N: 3, Error: "of another life"})
		_ = w.Send(wire.Frame{N: f.N, More: true, Data: []byte("one ")})
		_ = w.Send(wire.Frame{N: f.N, Data: []byte("two")})
		f, _ = wire.Read(c)
		_ = w.Send(wire.Frame{N: f.N, Error: "no"})
	})
	var got bytes.Buffer
	err := p.call(t.Context(), wire.Frame{Do: wire.DoGet}, nil, func(b []byte) error { got.Write(b); return nil })
	if err != nil || got.String() != "one two" {
		t.Errorf("%q %v", got.String(), err)
	}
	if err := p.call(t.Context(), wire.Frame{Do: wire.DoInput}, nil, nil); err == nil || err.Error() != "no" {
		t.Errorf("a refusal: %v", err)
	}
}

func TestStreamsAreSentInChunks(t *testing.T) {
	body := bytes.Repeat([]byte("x"), wire.Chunk+10)
	p := scripted(t, func(c net.Conn) {
		w := wire.NewWriter(c)
		n := 0
		for {
			f, err := wire.Read(c)
			if err != nil {
				return
			}
			n += len(f.Data)
			if !f.More {
				answer := wire.Frame{N: f.N}
				if n != len(body) {
					answer.Error = "bytes are missing"
				}
				_ = w.Send(answer)
			}
		}
	})
	if err := p.call(t.Context(), wire.Frame{Do: wire.DoPut, Path: "/x"}, bytes.NewReader(body), nil); err != nil {
		t.Error(err)
	}
}

// A guest that dies, or is not ours, fails every call that waits.
func TestABrokenPortFailsCalls(t *testing.T) {
	p := scripted(t, func(c net.Conn) {
		_, _ = wire.Read(c)
		_, _ = c.Write([]byte{0xff, 0xff, 0xff, 0xff})
	})
	if err := p.call(t.Context(), wire.Frame{Do: wire.DoInput}, nil, nil); err == nil || !strings.Contains(err.Error(), "agent") {
		t.Errorf("%v", err)
	}
	<-p.broken
	if err := p.call(t.Context(), wire.Frame{Do: wire.DoInput}, nil, nil); err == nil {
		t.Error("a call after the end")
	}
	q := scripted(t, func(c net.Conn) { _ = wire.NewWriter(c).Send(wire.Frame{Do: wire.SayReady, Version: 99}) })
	<-q.broken
	if err := q.call(t.Context(), wire.Frame{}, nil, nil); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("another version: %v", err)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := scripted(t, func(c net.Conn) {
		_, _ = wire.Read(c)
		cancel()
	})
	if err := p.call(ctx, wire.Frame{Do: wire.DoSignal}, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Nobody has to wait for an answer: the next request is taken up after it.
func TestAnswerThatNobodyWaitsForIsDropped(t *testing.T) {
	p := scripted(t, func(c net.Conn) {
		w := wire.NewWriter(c)
		for range 2 {
			f, err := wire.Read(c)
			if err != nil {
				return
			}
			_ = w.Send(wire.Frame{N: f.N, Error: f.Do})
		}
	})
	if _, err := p.begin(t.Context(), wire.Frame{Do: wire.DoHello}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.call(t.Context(), wire.Frame{Do: wire.DoInput}, nil, nil); err == nil || err.Error() != wire.DoInput {
		t.Errorf("the second answer: %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) != 0 {
		t.Errorf("%d requests wait for an answer", len(p.calls))
	}
}

// R54: material up to the limit goes along with the launch; beyond it, and what
// is no file, is archived.
func TestSmallMaterialGoesWithTheLaunch(t *testing.T) {
	s := newSupervisor(t.TempDir())
	if files, err := s.smallMaterial(); files != nil || err != nil {
		t.Fatalf("without material: %v %v", files, err)
	}
	dir := s.Dir.File(seatdir.DirMaterial)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name string, n int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("key", 10)
	write("rest", wire.MaxFiles-10)
	if files, err := s.smallMaterial(); err != nil || len(files) != 2 || len(files["key"]) != 10 {
		t.Fatalf("at the limit: %d files, %v", len(files), err)
	}
	write("key", 11)
	if files, err := s.smallMaterial(); files != nil || err != nil {
		t.Fatalf("beyond the limit: %d files, %v", len(files), err)
	}
	if err := os.Remove(filepath.Join(dir, "rest")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	if files, err := s.smallMaterial(); files != nil || err != nil {
		t.Fatalf("with a directory: %d files, %v", len(files), err)
	}
}
