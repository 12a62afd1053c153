package acp

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
	proto "github.com/coder/acp-go-sdk"

	"berth/events"
)

// maxTools bounds the tool calls whose titles are remembered.
const maxTools = 256

// page is what people see of the conversation. Many may write.
type page struct {
	mu    sync.Mutex
	w     io.Writer
	open  bool   // the last line has no end yet
	said  []byte // the agent's words since the turn began, the newest MaxNote of them
	tools map[proto.ToolCallId]string
}

func newPage(w io.Writer) *page { return &page{w: w, tools: map[proto.ToolCallId]string{}} }

// text shows a piece of the agent's words, as it comes.
func (p *page) text(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s = clean(s); s != "" {
		_, _ = io.WriteString(p.w, s)
		p.said = append(p.said, s...)
		p.said = p.said[max(0, len(p.said)-MaxNote):]
		p.open = !strings.HasSuffix(s, "\n")
	}
}

// fresh begins to keep the agent's words anew.
func (p *page) fresh() { p.mu.Lock(); defer p.mu.Unlock(); p.said = nil }

// answer are the agent's last words of this turn.
func (p *page) answer() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(p.said), "")) // the first character may be cut
}

// line shows a line of its own.
func (p *page) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.whole(clean(fmt.Sprintf(format, args...)))
}

// whole needs mu.
func (p *page) whole(s string) {
	if p.open {
		s = "\n" + s
	}
	_, _ = io.WriteString(p.w, s+"\n")
	p.open = false
}

// tool shows a tool call and each change of its status.
func (p *page) tool(id proto.ToolCallId, title *string, status *proto.ToolCallStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name, known := p.tools[id]
	if title != nil && *title != "" {
		name = *title
		if known || len(p.tools) < maxTools {
			p.tools[id] = name
		}
	}
	if name == "" {
		name = string(id)
	}
	if status == nil {
		return // what it puts out meanwhile is the agent's to tell
	}
	p.whole(row("[%s: %s]", name, *status))
	if *status == proto.ToolCallStatusCompleted || *status == proto.ToolCallStatusFailed {
		delete(p.tools, id)
	}
}

func (p *page) plan(entries []proto.PlanEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.whole("[plan]")
	for _, e := range entries {
		p.whole(row("  %s (%s)", e.Content, e.Status))
	}
}

// question shows what the agent asks, and the answers that it offers.
func (p *page) question(r proto.RequestPermissionRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what := p.tools[r.ToolCall.ToolCallId]
	if t := r.ToolCall.Title; t != nil && *t != "" {
		what = *t
	}
	if what == "" {
		what = string(r.ToolCall.ToolCallId)
	}
	p.whole(row("[the agent asks: %s]", what))
	for i, o := range r.Options {
		p.whole(row("  %d  %s", i+1, o.Name))
	}
	p.whole("[type the number of an answer; Ctrl-C ends the turn]")
}

// clean leaves out what would steer a terminal: an agent's words are text. Of a
// sequence that comes in two pieces the rest is shown.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && events.Steers(r) {
			return -1
		}
		return r
	}, ansi.Strip(s))
}

// row is one line, whatever is in it: what is asked must not bring lines of its
// own that read like an answer to choose.
func row(format string, args ...any) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, clean(fmt.Sprintf(format, args...)))
}

// client is the side of the protocol that an agent calls.
type client struct{ t *Talk }

// SessionUpdate implements proto.Client. What is not known is not shown.
func (c *client) SessionUpdate(_ context.Context, n proto.SessionNotification) error {
	defer c.t.said.take()
	switch u := n.Update; {
	case u.AgentMessageChunk != nil:
		if b := u.AgentMessageChunk.Content; b.Text != nil {
			c.t.page.text(b.Text.Text)
		}
	case u.UserMessageChunk != nil: // of an earlier session
		if b := u.UserMessageChunk.Content; b.Text != nil {
			c.t.page.line("> %s", b.Text.Text)
		}
	case u.ToolCall != nil:
		status := u.ToolCall.Status
		if status == "" {
			status = proto.ToolCallStatusPending
		}
		c.t.page.tool(u.ToolCall.ToolCallId, &u.ToolCall.Title, &status)
	case u.ToolCallUpdate != nil:
		c.t.page.tool(u.ToolCallUpdate.ToolCallId, u.ToolCallUpdate.Title, u.ToolCallUpdate.Status)
	case u.Plan != nil:
		c.t.page.plan(u.Plan.Entries)
	}
	return nil
}

// RequestPermission implements proto.Client: it is answered at the terminal, and
// by nothing else.
func (c *client) RequestPermission(ctx context.Context, r proto.RequestPermissionRequest) (proto.RequestPermissionResponse, error) {
	a := &ask{request: r, answer: make(chan proto.RequestPermissionOutcome, 1)}
	select {
	case c.t.asks <- a:
	case <-ctx.Done():
		return proto.RequestPermissionResponse{Outcome: proto.NewRequestPermissionOutcomeCancelled()}, nil
	}
	select {
	case o := <-a.answer:
		return proto.RequestPermissionResponse{Outcome: o}, nil
	case <-ctx.Done():
		select {
		case c.t.withdrawn <- a:
		case <-c.t.conn.Done():
		}
		return proto.RequestPermissionResponse{Outcome: proto.NewRequestPermissionOutcomeCancelled()}, nil
	}
}

// The rest of proto.Client is of capabilities that are not offered: the agent
// has the seat's files and terminals itself.

// ReadTextFile implements proto.Client.
func (*client) ReadTextFile(context.Context, proto.ReadTextFileRequest) (r proto.ReadTextFileResponse, err error) {
	return r, proto.NewMethodNotFound(proto.ClientMethodFsReadTextFile)
}

// WriteTextFile implements proto.Client.
func (*client) WriteTextFile(context.Context, proto.WriteTextFileRequest) (r proto.WriteTextFileResponse, err error) {
	return r, proto.NewMethodNotFound(proto.ClientMethodFsWriteTextFile)
}

// CreateTerminal implements proto.Client.
func (*client) CreateTerminal(context.Context, proto.CreateTerminalRequest) (r proto.CreateTerminalResponse, err error) {
	return r, proto.NewMethodNotFound(proto.ClientMethodTerminalCreate)
}

// KillTerminal implements proto.Client.
func (*client) KillTerminal(context.Context, proto.KillTerminalRequest) (r proto.KillTerminalResponse, err error) {
	return r, proto.NewMethodNotFound(proto.ClientMethodTerminalKill)
}

// TerminalOutput implements proto.Client.
func (*client) TerminalOutput(context.Context, proto.TerminalOutputRequest) (r proto.TerminalOutputResponse, err error) {
	return r, proto.NewMethodNotFound(proto.ClientMethodTerminalOutput)
}

// ReleaseTerminal implements proto.Client.
func (*client) ReleaseTerminal(context.Context, proto.ReleaseTerminalRequest) (r proto.ReleaseTerminalResponse, err error) {
	return r, proto.NewMethodNotFound(proto.ClientMethodTerminalRelease)
}

// WaitForTerminalExit implements proto.Client.
func (*client) WaitForTerminalExit(context.Context, proto.WaitForTerminalExitRequest) (r proto.WaitForTerminalExitResponse, err error) {
	return r, proto.NewMethodNotFound(proto.ClientMethodTerminalWaitForExit)
}
