package cli

import (
	"context"

	"berth/commands"
	"berth/commands/client"
	"berth/events"
)

// link is a connection to a manager.
type link struct {
	*client.Client
	close func()
	place
}

// anonymous asks a manager who its one caller is (decision 21), before this
// program knows.
var anonymous = events.Caller{Owner: "local", Actor: "operator", UID: "00000000000000000000000000"}

// open connects to the manager and finds out who is asking.
func (a *app) open(ctx context.Context) (*link, error) {
	p, err := a.reach()
	if err != nil {
		return nil, err
	}
	if p.caller.UID == "" {
		p.caller = anonymous
		st, err := client.Call(ctx, client.Connect(p.conn, p.space, p.caller), commands.Status, commands.Empty{})
		if err != nil {
			p.conn.Close()
			return nil, err
		}
		if st.Caller.UID != "" {
			p.caller = st.Caller
		}
	}
	c := client.Connect(p.conn, p.space, p.caller)
	if p.again != nil {
		c.Redial(p.again)
	}
	return &link{c, c.Close, p}, nil
}

// bounded is the context of one command: --timeout bounds it.
func (a *app) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, a.timeout)
}

// ask calls one command and returns its answer.
func ask[In commands.Input, Out any](ctx context.Context, a *app, c commands.Command[In, Out], in In) (Out, error) {
	var zero Out
	if err := in.Check(); err != nil {
		return zero, err // before anything is sent
	}
	l, err := a.open(ctx)
	if err != nil {
		return zero, err
	}
	defer l.close()
	return client.Call(ctx, l.Client, c, in, a.callOptions()...)
}
