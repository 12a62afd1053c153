package qmp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

const greeting = `{"QMP":{"version":{"qemu":{"micro":22,"minor":2,"major":7},"package":"x"},"capabilities":[]}}`

// monitor is a scripted monitor: it answers the n-th command with the n-th
// line, where @ stands for the command's number.
func monitor(t *testing.T, hello string, answers ...string) net.Conn {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "q"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprintln(c, hello)
		r := bufio.NewReader(c)
		for i, a := range answers {
			if _, err := r.ReadString('\n'); err != nil {
				return
			}
			fmt.Fprintln(c, strings.ReplaceAll(a, "@", fmt.Sprint(i+1)))
		}
		_, _ = io.Copy(io.Discard, r)
	}()
	c, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

const ok = `{"return":{},"id":@}`

func TestCommandsAndEvents(t *testing.T) {
	c, err := New(t.Context(), monitor(t, greeting, ok,
		`{"event":"STOP"} {"return":{"status":"stale"},"id":77} {"return":{"status":"paused","running":false},"id":@}`,
		`{"error":{"class":"GenericError","desc":"no such thing"},"id":@}`, ok))
	if err != nil || c.Version != "7.2.22" {
		t.Fatalf("%v %+v", err, c)
	}
	if s, err := c.Status(t.Context()); s != "paused" || err != nil {
		t.Errorf("status %q %v", s, err)
	}
	var refused *Error
	if err := c.Do(t.Context(), "x", map[string]int{"a": 1}, nil); !errors.As(err, &refused) || refused.Desc != "no such thing" {
		t.Errorf("a refusal: %v", err)
	}
	if err := c.Do(t.Context(), "cont", nil, nil); err != nil {
		t.Errorf("after a refusal: %v", err)
	}
}

// A monitor that does not answer leaves the client unusable, and says so at
// once from then on: the answer might still come and be taken for another.
func TestSilenceEndsTheClient(t *testing.T) {
	c, err := New(t.Context(), monitor(t, greeting, ok))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Do(ctx, "stop", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := c.Do(t.Context(), "cont", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("afterwards: %v", err)
	}
}

func TestWhatIsNoMonitorIsRefused(t *testing.T) {
	for name, hello := range map[string]string{
		"no greeting": `{"return":{}}`, "not JSON": `SSH-2.0`, "endless": `"` + strings.Repeat("x", 2*maxMessage) + `"`,
	} {
		if c, err := New(t.Context(), monitor(t, hello, ok)); err == nil {
			t.Errorf("%s was accepted: %+v", name, c)
		}
	}
}
