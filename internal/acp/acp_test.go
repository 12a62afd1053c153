package acp

import (
	"io"
	"strings"
	"testing"
	"time"
)

// An agent that ends is noticed, though what it left behind holds its output open;
// how it ended is told, and nothing of it stays.
func TestAnAgentThatEndsIsNoticed(t *testing.T) {
	a, err := start([]string{"sh", "-c", "sleep 1000 & exit 3"})
	if err != nil {
		t.Fatal(err)
	}
	talk := New(Seat{In: strings.NewReader(""), Out: io.Discard, Dir: t.TempDir(), Ready: func() {}}, a.in, a.out)
	opened := make(chan error, 1)
	go func() { opened <- talk.Open(t.Context()) }()
	select {
	case err = <-opened:
	case <-time.After(time.Minute):
		t.Fatal("nobody notices")
	}
	if err == nil || !strings.Contains(a.explain(err).Error(), "exit status 3") {
		t.Errorf("%v", err)
	}
	a.end()
	if _, err := start([]string{"no-such-agent"}); err == nil {
		t.Error("a program that is not there starts")
	}
}
