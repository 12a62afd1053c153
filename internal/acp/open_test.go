package acp

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// What an agent asks before there is a session is shown at once and answered at
// the terminal; what was typed beside it is a prompt of the session.
func TestAQuestionBeforeTheSession(t *testing.T) {
	w := enter(t, &robot{wary: true}, "", nil)
	opened := make(chan error, 1)
	go func() { opened <- w.Open(t.Context()) }()
	w.paper.shows(t, "[the agent asks: Trust this directory]")
	w.types(t, "yes")
	w.paper.shows(t, "[a number from 1 to 1]")
	w.types(t, "1")
	if err := within(t, opened); err != nil || w.ready != 1 {
		t.Fatalf("%v, ready %d times", err, w.ready)
	}
	go func() { _ = w.Talk.Talk(t.Context()) }()
	w.types(t, "hello")
	w.paper.shows(t, "heard: hello")
}

// An interrupt refuses it, and so does the end of the input; the agent then
// says what that means.
func TestAQuestionBeforeTheSessionIsRefused(t *testing.T) {
	for name, refuse := range map[string]func(*room){
		"an interrupt":         func(w *room) { w.interrupts <- os.Interrupt },
		"the end of the input": func(w *room) { _ = w.keys.Close() },
	} {
		w := enter(t, &robot{wary: true}, "", nil)
		opened := make(chan error, 1)
		go func() { opened <- w.Open(t.Context()) }()
		w.paper.shows(t, "[the agent asks")
		refuse(w)
		if err := within(t, opened); err == nil || !strings.Contains(err.Error(), "does not begin a session") || w.ready != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A question that the agent takes back takes no answer any more: what is typed
// next is a prompt.
func TestAQuestionIsTakenBack(t *testing.T) {
	w := enter(t, &robot{}, "", nil)
	w.opens(t)
	w.types(t, "retract")
	w.paper.shows(t, "[the agent asks: Never mind]")
	close(w.robot.retract)
	w.paper.shows(t, "[the agent takes its question back]")
	w.types(t, "1")
	w.paper.shows(t, "it is asked when this turn has ended")
	close(w.robot.stop)
	w.paper.shows(t, "heard: 1")
	if strings.Contains(w.paper.String(), "all the same") {
		t.Errorf("it was answered:\n%s", w.paper)
	}
}

// What is no message is shown, bounded and as text, and the conversation goes
// on; an agent that goes on so is given up.
func TestWhatIsNoMessage(t *testing.T) {
	w := enter(t, &robot{}, "", nil)
	ended := w.opens(t)
	w.types(t, "mumble")
	w.paper.shows(t, "[a message of the agent can't be read: not a message xxx")
	w.paper.shows(t, "heard: mumble")
	for _, line := range strings.Split(w.paper.String(), "\n") {
		if len(line) > maxExcerpt+60 || strings.Contains(line, "\x1b") {
			t.Errorf("%d bytes are shown: %q", len(line), line)
		}
	}
	if _, err := io.WriteString(w.keys, strings.Repeat("mumble ", MaxBroken-1)+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := within(t, ended); !errors.Is(err, errBroken) {
		t.Errorf("it ended with %v", err)
	}
}

// A message that is too long to be read is named as the end of the agent.
func TestAMessageWithoutEnd(t *testing.T) {
	w := enter(t, &robot{}, "", nil)
	ended := w.opens(t)
	w.types(t, "drone")
	if err := within(t, ended); !errors.Is(err, errLong) {
		t.Errorf("it ended with %v", err)
	}
}
