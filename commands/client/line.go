package client

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// lookAtLine is how often a request that waits looks whether its connection
// still stands.
const lookAtLine = 200 * time.Millisecond

// line is the connection of a client, which may be replaced by a new one.
type line struct {
	mu    sync.Mutex
	nc    *nats.Conn
	again func(old *nats.Conn) (*nats.Conn, error)
}

// Redial lets the client find its manager again when the connection is lost:
// f returns another connection, or an error as long as there is none. The
// client closes what it replaces, and Close closes what it has then. It must
// be called before the first request.
func (c *Client) Redial(f func(old *nats.Conn) (*nats.Conn, error)) { c.line.again = f }

// Close closes the connection.
func (c *Client) Close() {
	c.line.mu.Lock()
	defer c.line.mu.Unlock()
	c.line.nc.Close()
}

// conn is the connection to ask by: a new one if the last is lost and there is
// another manager.
func (l *line) conn() *nats.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.again == nil || l.nc.IsConnected() {
		return l.nc
	}
	if nc, err := l.again(l.nc); err == nil {
		l.nc.Close()
		l.nc = nc
	}
	return l.nc
}

// Conn is the connection that the client has now, for what streams beside its
// requests. The client closes it.
func (c *Client) Conn() *nats.Conn { return c.line.conn() }

// whileUp is a context that ends with the connection, too: nobody answers a
// request that went to a manager that is gone.
func (l *line) whileUp(ctx context.Context, nc *nats.Conn) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	before := nc.Stats().Reconnects
	go func() {
		t := time.NewTicker(lookAtLine)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			if !nc.IsConnected() || nc.Stats().Reconnects != before {
				cancel(nats.ErrConnectionClosed)
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
