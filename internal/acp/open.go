package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	proto "github.com/coder/acp-go-sdk"
)

// Open agrees with the agent on the protocol and begins a session, or takes the
// one up that the home remembers, where the agent can. What the agent asks
// meanwhile is answered at the terminal; what else is typed waits.
func (t *Talk) Open(ctx context.Context) error {
	t.input = lines(ctx, t.seat.In)
	done := make(chan error, 1)
	t.opening = true
	go func() { done <- t.open(ctx) }()
	for {
		var answers <-chan string
		if len(t.asked) > 0 {
			answers = t.input
		}
		select {
		case err := <-done:
			t.opening = false
			t.drop()
			if err == nil {
				t.seat.Ready()
			}
			return err
		case line, ok := <-answers:
			if !ok { // nobody will answer
				t.drop()
			} else if said, whole := t.typing.take(line); whole {
				t.hear(ctx, said)
			}
		case a := <-t.asks:
			t.ask(a)
		case a := <-t.withdrawn:
			t.withdraw(a)
		case <-t.seat.Interrupts:
			t.typing.drop()
			t.drop()
			t.page.line("[the session has not begun yet; what the agent asked is refused]")
		case <-t.broken.all:
			return errBroken
		}
	}
}

func (t *Talk) open(ctx context.Context) error {
	prompt, persona, err := t.seat.texts()
	if err != nil {
		return err
	}
	hello, err := t.conn.Initialize(ctx, proto.InitializeRequest{
		ProtocolVersion: version,
		ClientInfo:      &proto.Implementation{Name: "berth", Version: "1"},
	})
	if err != nil {
		return t.failed("the agent does not answer initialize", err)
	}
	if hello.ProtocolVersion != version {
		return exitError{ExitVersion, fmt.Errorf("the agent speaks version %d of the Agent Client Protocol, and Berth version %d", hello.ProtocolVersion, version)}
	}
	kept := t.seat.remembered()
	resumed := false
	if kept.Session != "" && hello.AgentCapabilities.LoadSession {
		_, err := t.conn.LoadSession(ctx, proto.LoadSessionRequest{SessionId: proto.SessionId(kept.Session), Cwd: t.seat.Dir, McpServers: []proto.McpServer{}})
		if resumed = err == nil; resumed {
			t.session = proto.SessionId(kept.Session)
			t.page.line("[session %s goes on]", kept.Session)
		} else {
			t.page.line("[session %s can't be taken up: %s]", kept.Session, said(err))
		}
	}
	if !resumed {
		r, err := t.conn.NewSession(ctx, proto.NewSessionRequest{Cwd: t.seat.Dir, McpServers: []proto.McpServer{}})
		if err != nil {
			if login := loginFor(err, hello.AuthMethods); login != nil {
				return login
			}
			return t.failed("the agent does not begin a session", err)
		}
		t.session, t.preface = r.SessionId, persona
	}
	if now := (memory{Session: string(t.session), Prompt: digest(prompt)}); !resumed || now != kept {
		t.first = prompt // it is not part of the session yet
		t.seat.remember(now)
	}
	return nil
}

// failed says what went wrong; an agent that is gone said nothing.
func (t *Talk) failed(what string, err error) error {
	select {
	case <-t.conn.Done():
		return fmt.Errorf("%s: %w", what, t.gone())
	default:
		return fmt.Errorf("%s: %s", what, said(err))
	}
}

// loginFor tells of the logins that an agent wants, where that is why it
// refused; else nil.
func loginFor(err error, methods []proto.AuthMethod) error {
	var r *proto.RequestError
	if !errors.As(err, &r) || r.Code != authRequired {
		return nil
	}
	var names []string
	for _, m := range methods {
		if m.Agent != nil {
			names = append(names, m.Agent.Name)
		}
	}
	return exitError{ExitLogin, fmt.Errorf("the agent wants a login first (%s): log in with its own command in the same home", cmp.Or(clean(strings.Join(names, ", ")), "it does not say how"))}
}

// said is what an agent's error says, without the protocol around it.
func said(err error) string {
	var r *proto.RequestError
	if errors.As(err, &r) {
		return clean(r.Message)
	}
	return clean(err.Error())
}
