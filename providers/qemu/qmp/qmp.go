package qmp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// maxMessage bounds one message of the monitor in bytes.
const maxMessage = 4 << 20

// Error is a refusal by QEMU.
type Error struct {
	Class string `json:"class"`
	Desc  string `json:"desc"`
}

func (e *Error) Error() string { return "qemu: " + e.Desc }

// Client is one connection to a monitor. Commands run one at a time.
type Client struct {
	conn net.Conn
	dec  *json.Decoder
	mu   sync.Mutex
	n    int
	bad  error // the stream can't be trusted any more
	// Version is what the greeting said, such as 7.2.22.
	Version string
}

type message struct {
	QMP *struct {
		Version struct {
			QEMU struct{ Major, Minor, Micro int }
		}
	}
	ID     *int            `json:"id"`
	Return json.RawMessage `json:"return"`
	Error  *Error          `json:"error"`
	Event  string          `json:"event"`
}

// New takes over conn: it reads the greeting and negotiates. On an error conn
// is closed.
func New(ctx context.Context, conn net.Conn) (*Client, error) {
	c := &Client{conn: conn, dec: json.NewDecoder(&limited{r: conn})}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	m, err := c.next()
	stop()
	if err == nil && m.QMP == nil {
		err = errors.New("the monitor's first message is no greeting")
	}
	if err == nil {
		v := m.QMP.Version.QEMU
		c.Version = fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Micro)
		err = c.Do(ctx, "qmp_capabilities", nil, nil)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("qemu monitor: %w", err)
	}
	return c, nil
}

// limited ends a stream whose one message is too long to keep.
type limited struct {
	r io.Reader
	n int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.n > maxMessage {
		return 0, fmt.Errorf("a message of more than %d bytes", maxMessage)
	}
	n, err := l.r.Read(p)
	if i := bytes.LastIndexByte(p[:n], '\n'); i >= 0 { // messages end with a line
		l.n = n - i - 1
	} else {
		l.n += n
	}
	return n, err
}

func (c *Client) next() (message, error) {
	var m message
	err := c.dec.Decode(&m)
	return m, err
}

// Do runs one command with args (nil: none) and decodes its answer into out
// (nil: ignored). Events in between are skipped. After a failure other than
// *Error, the client only repeats that failure.
func (c *Client) Do(ctx context.Context, command string, args, out any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bad != nil {
		return c.bad
	}
	c.n++
	req := map[string]any{"execute": command, "id": c.n}
	if args != nil {
		req["arguments"] = args
	}
	b, err := json.Marshal(req)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	m, err := c.roundTrip(append(b, '\n'))
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		c.bad = fmt.Errorf("qemu monitor, %s: %w", command, err)
		return c.bad
	}
	if m.Error != nil {
		return m.Error
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(m.Return, out)
}

func (c *Client) roundTrip(b []byte) (message, error) {
	if _, err := c.conn.Write(b); err != nil {
		return message{}, err
	}
	for {
		m, err := c.next()
		if err != nil {
			return m, err
		}
		if m.ID != nil && *m.ID == c.n && (m.Return != nil || m.Error != nil) {
			return m, nil
		}
	}
}

// Status is the run state, such as running, paused or postmigrate.
func (c *Client) Status(ctx context.Context) (string, error) {
	var s struct{ Status string }
	err := c.Do(ctx, "query-status", nil, &s)
	return s.Status, err
}

// Migration is the state of a migration under way: active, completed, failed.
func (c *Client) Migration(ctx context.Context) (string, error) {
	var s struct{ Status string }
	err := c.Do(ctx, "query-migrate", nil, &s)
	return s.Status, err
}

// Close ends the connection; the machine goes on.
func (c *Client) Close() error { return c.conn.Close() }
