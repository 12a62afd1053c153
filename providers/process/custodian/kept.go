//go:build linux

package custodian

import (
	"net"
	"os"

	"berth/providers"
	"berth/providers/process/seatdir"
)

// Output keeps what a seat wrote, for supervisors of other kinds of seats:
// the newest in memory for those who attach, more of it in files that
// ReadOutput reads, also after the end.
type Output struct{ o *output }

// OpenOutput continues the output of a seat's directory.
func OpenOutput(d seatdir.Dir) (*Output, error) {
	o, err := newOutput(d)
	return &Output{o}, err
}

// Write never fails: a full disk costs kept output, not the seat.
func (o *Output) Write(p []byte) (int, error) { return o.o.Write(p) }

// Enter counts one who is to be given to CopyTo or View, until leave. Beyond
// MaxFollowers it refuses with resource-exhausted.
func (o *Output) Enter() (leave func(), err error) { return o.o.enter() }

// CopyTo writes what is in memory from offset and then what comes, until the
// output is closed, or the peer is gone or too slow; then it closes conn.
func (o *Output) CopyTo(conn net.Conn, from int64) error {
	return o.o.follow(conn, func(f *follower) error { return o.o.copyTo(f, from) })
}

// View writes the whole screen and then what comes, as providers.ReadPart
// reads it, until the output is closed or the peer is gone; then it closes conn.
func (o *Output) View(conn net.Conn) error { return o.o.follow(conn, o.o.view) }

// Resize tells what size the terminal has been given.
func (o *Output) Resize(rows, cols uint16) {
	_ = o.o.resize(providers.Size{Rows: rows, Cols: cols}, func(providers.Size) error { return nil })
}

// Span is the first and the next offset that is in memory.
func (o *Output) Span() (from, next int64) { return o.o.span() }

// Close ends it for those who follow.
func (o *Output) Close() { o.o.close() }

// Trusted says that the peer of a control connection is this user or root.
func Trusted(c *net.UnixConn) bool {
	cred, err := peer(c)
	return err == nil && (int(cred.Uid) == os.Getuid() || cred.Uid == 0)
}
