//go:build linux

package custodian

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/seatdir"
)

// The requests that a custodian answers. One connection is one request, one
// line of JSON each way; after an attach the seat's output follows as it is.
const (
	AskStatus   = "status"
	AskFreeze   = "freeze"
	AskThaw     = "thaw"
	AskHold     = "hold"     // frozen for as long as the connection is open
	AskStop     = "stop"     // answered when the exit is proved and written
	AskDeadline = "deadline" // the deadline file was replaced
	AskInput    = "input"
	AskResize   = "resize"
	AskAttach   = "attach"
	AskView     = "view"  // the answer is followed by parts (providers.ReadPart)
	AskReady    = "ready" // answered when the seat is ready or has ended
)

// MaxRequest bounds one request in bytes; MaxInput bounds Data.
const (
	MaxRequest = 1 << 20
	MaxInput   = 512 << 10
)

// Request is one line to a custodian.
type Request struct {
	Ask   string        `json:"ask"`
	Grace time.Duration `json:"grace,omitempty"` // stop
	Data  []byte        `json:"data,omitempty"`  // input
	Rows  uint16        `json:"rows,omitempty"`  // resize: 1 to 1000
	Cols  uint16        `json:"cols,omitempty"`
	// Change makes a freeze or a thaw one that is refused if it is so already.
	Change bool  `json:"change,omitempty"`
	From   int64 `json:"from,omitempty"` // attach: first wanted offset; negative: all that is in memory
}

// Response is its answer.
type Response struct {
	Fault  *fault.Error `json:"fault,omitempty"`
	Frozen bool         `json:"frozen"`
	// Standing says that another seat is taking the place of this one.
	Standing bool  `json:"standing,omitempty"`
	From     int64 `json:"from"` // attach: offset of the first byte that follows
	Next     int64 `json:"next"` // offset after the newest output
	// Delivered is how many bytes of an input the terminal took, also with a
	// fault.
	Delivered int `json:"delivered,omitempty"`
	// Ready is what the seat has shown of its readiness.
	Ready *events.Readiness `json:"ready,omitempty"`
}

// Dial connects to the custodian of a seat and proves that the peer is the
// process of the custody (SO_PEERCRED) before a byte is sent.
func Dial(ctx context.Context, d seatdir.Dir, want events.Custody) (net.Conn, error) {
	// A socket's path is limited to 107 bytes and ours may be longer, so it
	// is reached through a descriptor of its directory.
	fd, err := unix.Open(d.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", fd, seatdir.FileSocket))
	if err != nil {
		return nil, err
	}
	cred, err := peer(c.(*net.UnixConn))
	if err == nil && int(cred.Pid) != want.PID {
		err = fmt.Errorf("process %d answers where custodian %d should", cred.Pid, want.PID)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func peer(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) {
		cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	return cred, cerr
}

// Ask sends one request and returns the answer; a refusal is its fault.
func Ask(ctx context.Context, d seatdir.Dir, want events.Custody, r Request) (Response, error) {
	c, resp, err := ask(ctx, d, want, r)
	if c != nil {
		_ = c.Close()
	}
	return resp, err
}

// Attach returns the seat's output as a stream that begins at Response.From
// and ends when the seat does or the reader is closed.
func Attach(ctx context.Context, d seatdir.Dir, want events.Custody, from int64) (io.ReadCloser, Response, error) {
	c, resp, err := ask(ctx, d, want, Request{Ask: AskAttach, From: from})
	if err != nil {
		if c != nil {
			_ = c.Close()
		}
		return nil, resp, err
	}
	return c, resp, nil
}

// View looks at the seat's terminal: the whole screen, then what comes.
func View(ctx context.Context, d seatdir.Dir, want events.Custody) (io.ReadCloser, error) {
	c, _, err := ask(ctx, d, want, Request{Ask: AskView})
	if err != nil {
		if c != nil {
			_ = c.Close()
		}
		return nil, err
	}
	return c, nil
}

// Hold freezes the seat until release, or until the caller dies: a manager
// that is killed in the middle of a capture leaves nothing frozen.
func Hold(ctx context.Context, d seatdir.Dir, want events.Custody) (release func(), err error) {
	c, _, err := ask(ctx, d, want, Request{Ask: AskHold})
	if err != nil {
		if c != nil {
			_ = c.Close()
		}
		return nil, err
	}
	return func() {
		// The answer to the half-closed connection says that the seat goes on.
		if u, ok := c.(bufferedConn).Conn.(*net.UnixConn); ok && u.CloseWrite() == nil {
			_ = c.SetReadDeadline(time.Now().Add(freezePatience))
			_, _ = io.Copy(io.Discard, c)
		}
		_ = c.Close()
	}, nil
}

// freezePatience bounds the wait for a seat to go on after a capture.
const freezePatience = 30 * time.Second

type bufferedConn struct {
	net.Conn
	r *bufio.Reader
}

func (b bufferedConn) Read(p []byte) (int, error) { return b.r.Read(p) }

func ask(ctx context.Context, d seatdir.Dir, want events.Custody, r Request) (net.Conn, Response, error) {
	var resp Response
	c, err := Dial(ctx, d, want)
	if err != nil {
		return nil, resp, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	b, err := json.Marshal(r)
	if err != nil {
		return c, resp, err
	}
	if _, err := c.Write(append(b, '\n')); err != nil {
		return c, resp, err
	}
	br := bufio.NewReaderSize(c, 4096)
	line, err := readLine(br, MaxRequest)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return c, resp, err
	}
	if err := json.Unmarshal(line, &resp); err != nil {
		return c, resp, err
	}
	if resp.Fault != nil {
		return c, resp, resp.Fault
	}
	return bufferedConn{c, br}, resp, nil
}

func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var out []byte
	for {
		part, err := r.ReadSlice('\n')
		out = append(out, part...)
		if len(out) > limit {
			return nil, fmt.Errorf("a line of more than %d bytes", limit)
		}
		if err == nil {
			return out, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}
