package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	proto "github.com/coder/acp-go-sdk"
)

// robot is an agent: it repeats what it is asked, and asks before it deletes.
type robot struct {
	proto.Agent // what is not below is never called
	conn        *proto.AgentSideConnection
	version     proto.ProtocolVersion
	loads       bool
	refuses     *proto.RequestError // of session/new
	wary        bool                // asks before it begins a session
	raw         io.Writer           // to its client, past the protocol
	retract     chan struct{}       // closed when it is to take its question back

	mu      sync.Mutex
	prompts []string
	loaded  []string
	stop    chan struct{} // closed by a cancel
	begun   chan string   // each prompt as it begins
}

func (r *robot) Initialize(context.Context, proto.InitializeRequest) (proto.InitializeResponse, error) {
	return proto.InitializeResponse{ProtocolVersion: r.version, AgentCapabilities: proto.AgentCapabilities{LoadSession: r.loads},
		AuthMethods: []proto.AuthMethod{{Agent: &proto.AuthMethodAgent{Id: "a", Name: "robot login"}}}}, nil
}

func (r *robot) NewSession(ctx context.Context, p proto.NewSessionRequest) (proto.NewSessionResponse, error) {
	if r.wary {
		got, err := r.permission(ctx, "", "Trust this directory")
		if err != nil || got.Outcome.Selected == nil {
			return proto.NewSessionResponse{}, proto.NewInternalError(nil)
		}
	}
	if r.refuses != nil {
		return proto.NewSessionResponse{}, r.refuses
	}
	return proto.NewSessionResponse{SessionId: "session-1"}, nil
}

func (r *robot) LoadSession(_ context.Context, p proto.LoadSessionRequest) (proto.LoadSessionResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loaded = append(r.loaded, string(p.SessionId))
	if p.SessionId != "session-1" {
		return proto.LoadSessionResponse{}, proto.NewInvalidParams(nil)
	}
	return proto.LoadSessionResponse{}, nil
}

func (r *robot) Cancel(context.Context, proto.CancelNotification) error {
	close(r.stop)
	return nil
}

func (r *robot) permission(ctx context.Context, id proto.SessionId, title string) (proto.RequestPermissionResponse, error) {
	return r.conn.RequestPermission(ctx, proto.RequestPermissionRequest{SessionId: id, ToolCall: proto.ToolCallUpdate{ToolCallId: "call-2", Title: &title},
		Options: []proto.PermissionOption{{Kind: proto.PermissionOptionKindAllowOnce, Name: "Allow", OptionId: "yes"}}})
}

func (r *robot) say(ctx context.Context, id proto.SessionId, u proto.SessionUpdate) {
	_ = r.conn.SessionUpdate(ctx, proto.SessionNotification{SessionId: id, Update: u})
}

func (r *robot) Prompt(ctx context.Context, p proto.PromptRequest) (proto.PromptResponse, error) {
	text := p.Prompt[0].Text.Text
	r.mu.Lock()
	r.prompts = append(r.prompts, text)
	r.mu.Unlock()
	r.begun <- text
	switch {
	case strings.Contains(text, "delete"):
		r.say(ctx, p.SessionId, proto.StartToolCall("call-1", "Delete a file", proto.WithStartStatus(proto.ToolCallStatusPending)))
		got, err := r.conn.RequestPermission(ctx, proto.RequestPermissionRequest{SessionId: p.SessionId, ToolCall: proto.ToolCallUpdate{ToolCallId: "call-1", Title: proto.Ptr("Delete a file")},
			Options: []proto.PermissionOption{{Kind: proto.PermissionOptionKindAllowOnce, Name: "Allow", OptionId: "yes"}, {Kind: proto.PermissionOptionKindRejectOnce, Name: "Reject", OptionId: "no"}}})
		switch {
		case ctx.Err() == nil && err != nil:
			return proto.PromptResponse{}, err
		case err != nil || got.Outcome.Cancelled != nil:
			return proto.PromptResponse{StopReason: proto.StopReasonCancelled}, nil
		}
		r.say(ctx, p.SessionId, proto.UpdateToolCall("call-1", proto.WithUpdateStatus(proto.ToolCallStatusCompleted)))
		text = "answered " + string(got.Outcome.Selected.OptionId)
	case strings.Contains(text, "wait"):
		<-r.stop
		return proto.PromptResponse{StopReason: proto.StopReasonCancelled}, nil
	case strings.Contains(text, "leave"):
		go func() {
			_, _ = r.conn.RequestPermission(context.WithoutCancel(ctx), proto.RequestPermissionRequest{SessionId: p.SessionId, ToolCall: proto.ToolCallUpdate{ToolCallId: "call-1"},
				Options: []proto.PermissionOption{{Kind: proto.PermissionOptionKindAllowOnce, Name: "Allow", OptionId: "yes"}}})
			r.begun <- "answered"
		}()
	case strings.Contains(text, "crowd"):
		var mu sync.Mutex
		var all sync.WaitGroup
		yes, no := 0, 0
		for range MaxAsked + 1 {
			all.Go(func() {
				got, err := r.conn.RequestPermission(ctx, proto.RequestPermissionRequest{SessionId: p.SessionId, ToolCall: proto.ToolCallUpdate{ToolCallId: "call-1"},
					Options: []proto.PermissionOption{{Kind: proto.PermissionOptionKindAllowOnce, Name: "Allow", OptionId: "yes"}}})
				mu.Lock()
				defer mu.Unlock()
				if err == nil && got.Outcome.Selected != nil {
					yes++
				} else {
					no++
				}
			})
		}
		all.Wait()
		text = fmt.Sprintf("%d answered, %d refused", yes, no)
	case strings.Contains(text, "retract"):
		asking, stop := context.WithCancel(ctx)
		go func() { <-r.retract; stop() }()
		if _, err := r.permission(asking, p.SessionId, "Never mind"); err == nil {
			text = "answered all the same"
		}
		<-r.stop
	case strings.Contains(text, "mumble"):
		for range strings.Count(text, "mumble") {
			_, _ = io.WriteString(r.raw, "\x1b[2Jnot a message "+strings.Repeat("x", 1000)+"\n")
		}
	case strings.Contains(text, "drone"):
		_, _ = io.WriteString(r.raw, strings.Repeat("x", maxMessage))
	case strings.Contains(text, "flood"):
		for range floods {
			r.say(ctx, p.SessionId, proto.UpdateAgentMessageText("word "))
		}
	case strings.Contains(text, "fail"):
		return proto.PromptResponse{}, proto.NewInternalError(nil)
	}
	r.say(ctx, p.SessionId, proto.UpdateAgentMessageText("\x1b[31mheard: "))
	r.say(ctx, p.SessionId, proto.UpdateAgentMessageText(text))
	return proto.PromptResponse{StopReason: proto.StopReasonEndTurn}, nil
}

// paper is what people see.
type paper struct {
	mu   sync.Mutex
	text strings.Builder
	news chan struct{}
}

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Write(b)
	select {
	case p.news <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (p *paper) String() string { p.mu.Lock(); defer p.mu.Unlock(); return p.text.String() }

// shows waits until a text is there.
func (p *paper) shows(t *testing.T, text string) {
	t.Helper()
	late := time.After(time.Minute)
	for !strings.Contains(p.String(), text) {
		select {
		case <-p.news:
		case <-late:
			t.Fatalf("%q is not shown:\n%s", text, p)
		}
	}
}

// room is a seat with a robot in it.
type room struct {
	*Talk
	robot      *robot
	paper      *paper
	keys       *io.PipeWriter
	interrupts chan os.Signal
	leave      func() // the agent goes
	ready      int
}

func enter(t *testing.T, r *robot, home string, material map[string]string) *room {
	t.Helper()
	toAgent, agentIn := io.Pipe()
	agentOut, fromAgent := io.Pipe()
	if r.version == 0 {
		r.version = 1
	}
	r.stop, r.begun, r.retract, r.raw = make(chan struct{}), make(chan string, 32), make(chan struct{}), fromAgent
	r.conn = proto.NewAgentSideConnection(r, fromAgent, toAgent)
	r.conn.SetLogger(slog.New(slog.DiscardHandler))
	keyboard, keys := io.Pipe()
	w := &room{robot: r, paper: &paper{news: make(chan struct{}, 1)}, keys: keys, interrupts: make(chan os.Signal, 1)}
	w.leave = func() { _ = fromAgent.Close(); _ = toAgent.Close() }
	dir := t.TempDir()
	for name, text := range material {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.Talk = New(Seat{In: keyboard, Out: w.paper, Interrupts: w.interrupts, Dir: dir, Home: home, Material: dir, Ready: func() { w.ready++ }}, agentIn, agentOut)
	t.Cleanup(func() { w.leave(); _ = keys.Close() })
	return w
}

// opens begins the session, and talks until the test ends.
func (w *room) opens(t *testing.T) (ended <-chan error) {
	t.Helper()
	if err := w.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- w.Talk.Talk(context.WithoutCancel(t.Context())) }()
	return done
}

func (w *room) types(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(w.keys, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func within(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
		return nil
	}
}

// The prompt goes with the persona before it, what is typed follows, and what
// the agent says is text and nothing that steers a terminal.
func TestPromptsAndAnswers(t *testing.T) {
	w := enter(t, &robot{}, t.TempDir(), map[string]string{"prompt": "do it\n", "persona": "be kind\n"})
	ended := w.opens(t)
	if w.ready != 1 {
		t.Errorf("ready was said %d times", w.ready)
	}
	w.paper.shows(t, "heard: be kind\n\ndo it\n[end_turn]\n")
	w.types(t, "")
	w.types(t, "and this")
	w.paper.shows(t, "heard: and this\n[end_turn]\n")
	if strings.Contains(w.paper.String(), "\x1b") {
		t.Errorf("the agent steers the terminal: %q", w.paper)
	}
	w.types(t, "fail")
	w.paper.shows(t, "[the turn failed: Internal error]")
	_ = w.keys.Close()
	if err := within(t, ended); err != nil {
		t.Errorf("the end of the input: %v", err)
	}
}

// A question is answered by who sits there, and by a number that it offers.
func TestQuestionsAreAnsweredAtTheTerminal(t *testing.T) {
	w := enter(t, &robot{}, "", nil)
	w.opens(t)
	w.types(t, "delete it")
	w.paper.shows(t, "[Delete a file: pending]\n") // a question may overtake it
	w.paper.shows(t, "[the agent asks: Delete a file]\n  1  Allow\n  2  Reject\n")
	for _, wrong := range []string{"yes", "0", "3", ""} {
		w.types(t, wrong)
	}
	w.types(t, "2")
	w.paper.shows(t, "[Delete a file: completed]\nheard: answered no\n[end_turn]\n")
	if n := strings.Count(w.paper.String(), "[a number from 1 to 2]"); n != 4 {
		t.Errorf("%d wrong answers were refused", n)
	}
}

// The questions that wait are bounded; beyond that one is refused.
func TestQuestionsAreBounded(t *testing.T) {
	w := enter(t, &robot{}, "", nil)
	w.opens(t)
	w.types(t, "crowd")
	w.paper.shows(t, "one more is refused]")
	for range MaxAsked {
		w.types(t, "1")
	}
	w.paper.shows(t, fmt.Sprintf("heard: %d answered, 1 refused", MaxAsked))
}

// A question ends with its turn, whichever of the two is heard first: it does not
// keep the next prompt from the agent.
func TestAQuestionEndsWithItsTurn(t *testing.T) {
	w := enter(t, &robot{}, "", nil)
	w.opens(t)
	for range 20 {
		w.types(t, "leave")
		for _, want := range []string{"leave", "answered"} {
			if got := <-w.robot.begun; got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
	}
	w.types(t, "hello")
	w.paper.shows(t, "heard: hello")
}

// A line that a terminal may have cut is not sent.
func TestALongLineIsNotSent(t *testing.T) {
	w := enter(t, &robot{}, "", nil)
	w.opens(t)
	w.types(t, strings.Repeat("x", MaxLine+1))
	w.paper.shows(t, "nothing is sent")
	w.types(t, strings.Repeat("y", MaxLine))
	if got := <-w.robot.begun; got != strings.Repeat("y", MaxLine) {
		t.Errorf("%d bytes are asked", len(got))
	}
}

// An interrupt ends the turn, and a question in it; the session goes on.
func TestAnInterruptEndsTheTurn(t *testing.T) {
	for name, prompt := range map[string]string{"under way": "wait", "that asks": "delete it"} {
		t.Run(name, func(t *testing.T) {
			w := enter(t, &robot{}, "", nil)
			w.opens(t)
			w.interrupts <- os.Interrupt
			w.paper.shows(t, "[nothing is under way")
			w.types(t, prompt)
			<-w.robot.begun
			if prompt != "wait" {
				w.paper.shows(t, "[the agent asks")
			}
			w.interrupts <- os.Interrupt
			w.paper.shows(t, "[cancelled]")
			w.types(t, "go on")
			w.paper.shows(t, "heard: go on")
		})
	}
}

// What is typed during a turn waits for its end, up to a limit.
func TestPromptsWaitForTheTurn(t *testing.T) {
	w := enter(t, &robot{}, "", nil)
	w.opens(t)
	w.types(t, "wait")
	<-w.robot.begun
	for range MaxWaiting + 1 {
		w.types(t, "next")
	}
	w.paper.shows(t, "this one is dropped]")
	w.interrupts <- os.Interrupt
	for range MaxWaiting {
		if got := <-w.robot.begun; got != "next" {
			t.Errorf("asked %q", got)
		}
	}
}

// floods is how many words an agent says at once: more than the library keeps.
const floods = 5_000

// An agent may say much at once, as when it loads a session: whoever reads slowly
// costs it nothing.
func TestAFloodOfWords(t *testing.T) {
	w := enter(t, &robot{}, "", nil)
	slow := newSpool(w.paper)
	w.page.w = slow
	ended := w.opens(t)
	w.types(t, "flood")
	w.paper.shows(t, "heard: flood")
	slow.close()
	if n := strings.Count(w.paper.String(), "word "); n != floods {
		t.Errorf("%d of %d words are shown", n, floods)
	}
	_ = w.keys.Close()
	if err := within(t, ended); err != nil {
		t.Error(err)
	}
}

// An agent that can't begin is told of, before the seat is called ready.
func TestNoSession(t *testing.T) {
	for want, r := range map[string]*robot{
		"version 2":   {version: 2},
		"robot login": {refuses: &proto.RequestError{Code: authRequired, Message: "Authentication required"}},
		"no room":     {refuses: &proto.RequestError{Code: -32603, Message: "no room"}},
	} {
		w := enter(t, r, "", nil)
		if err := w.Open(t.Context()); err == nil || !strings.Contains(err.Error(), want) || w.ready != 0 {
			t.Errorf("%s: %v, ready %d", want, err, w.ready)
		}
	}
	w := enter(t, &robot{}, "", map[string]string{"prompt": strings.Repeat("x", maxText+1)})
	if err := w.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "prompt") {
		t.Errorf("a prompt that is too long: %v", err)
	}
}

func TestTheAgentGoes(t *testing.T) {
	w := enter(t, &robot{}, "", nil)
	ended := w.opens(t)
	w.leave()
	if err := within(t, ended); err == nil {
		t.Error("the end of the agent is no error")
	}
	w = enter(t, &robot{}, "", nil)
	w.leave()
	if err := w.Open(t.Context()); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("an agent that says nothing: %v", err)
	}
}

// A home that was kept takes its session up where the agent can, and is not
// asked its first prompt again; a new prompt it is asked.
func TestASessionIsTakenUp(t *testing.T) {
	home := t.TempDir()
	visit := func(r *robot, prompt string) []string {
		t.Helper()
		w := enter(t, r, home, map[string]string{"prompt": prompt})
		ended := w.opens(t)
		w.types(t, "hello")
		w.paper.shows(t, "heard: hello")
		_ = w.keys.Close()
		if err := within(t, ended); err != nil {
			t.Fatal(err)
		}
		return r.prompts
	}
	for i, step := range []struct {
		loads  bool
		prompt string
		want   string
	}{
		{true, "first", "first hello"}, {true, "first", "hello"}, {true, "second", "second hello"}, {false, "second", "second hello"},
	} {
		r := &robot{loads: step.loads}
		if got := strings.Join(visit(r, step.prompt), " "); got != step.want {
			t.Errorf("visit %d: asked %q, want %q", i, got, step.want)
		}
		if (i > 0 && step.loads) != (len(r.loaded) == 1) {
			t.Errorf("visit %d: loaded %q", i, r.loaded)
		}
	}
	if err := os.WriteFile(filepath.Join(home, MemoryFile), []byte(`{"session":"gone"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(visit(&robot{loads: true}, "third"), " "); got != "third hello" {
		t.Errorf("a session that is gone: asked %q", got)
	}
}

// FuzzMemory: whatever a home remembers, a session comes about or is refused.
func FuzzMemory(f *testing.F) {
	f.Add([]byte(`{"session":"s","prompt":"p"}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, b []byte) {
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, MemoryFile), b, 0o600); err != nil {
			t.Fatal(err)
		}
		m := Seat{Home: home}.remembered()
		if (Seat{Home: home}).remember(m); (Seat{Home: home}).remembered() != m {
			t.Errorf("%+v is not remembered", m)
		}
	})
}
