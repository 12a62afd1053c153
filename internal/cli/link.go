package cli

import (
	"context"

	"github.com/spf13/cobra"

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

// submit gives one command that changes something, and hands its answer over
// with the connection, on which its end can be waited for. With dry it only
// prints the events that would be appended.
func submit[In commands.Input, Out any](c *cobra.Command, a *app, cmd commands.Command[In, Out], in In, dry bool,
	then func(context.Context, *link, Out) error, more ...client.Option) error {
	if err := in.Check(); err != nil {
		return err // before anything is sent
	}
	ctx, cancel := a.bounded(c.Context())
	defer cancel()
	l, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	if dry {
		return dryRun(ctx, a, l, cmd, in, more...)
	}
	r, err := client.Call(ctx, l.Client, cmd, in, append(a.callOptions(), more...)...)
	if err != nil {
		return err
	}
	return then(ctx, l, r)
}

// ended waits for the end of a goal; one that did not succeed is its error.
func ended(ctx context.Context, l *link, id events.GoalID) (commands.GoalResult, error) {
	got, err := l.WaitGoal(ctx, id)
	if err == nil {
		err = endOf(got.State, got.Fault)
	}
	return got, err
}
