//go:build linux

package machine

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"berth/providers/qemu/wire"
)

// scripted is the other end of a port, played by a function.
func scripted(t *testing.T, play func(c net.Conn)) *peer {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	go play(theirs)
	return newPeer(ours, 100, func([]byte) {})
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
