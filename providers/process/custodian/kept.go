//go:build linux

package custodian

import (
	"net"

	"berth/providers"
	"berth/providers/process/seatdir"
)

// Output keeps what a seat wrote: the newest in memory for those who attach, more
// of it in files that ReadOutput reads, also after the end.
type Output struct{ o *output }

// OpenOutput continues the output of a seat's directory. A Post has opened its
// own.
func OpenOutput(d seatdir.Dir) (*Output, error) {
	o, err := newOutput(d)
	return &Output{o}, err
}

// Output is the seat's; it is there from Launch on.
func (p *Post) Output() *Output { return &Output{p.out} }

// Write never fails: a full disk costs kept output, not the seat.
func (o *Output) Write(p []byte) (int, error) { return o.o.Write(p) }

// View writes the whole screen and then what comes, as providers.ReadPart
// reads it, until the output is closed or the peer is gone; then it closes conn.
func (o *Output) View(conn net.Conn) error { return o.o.follow(conn, o.o.view) }

// Resize tells what size the terminal has been given.
func (o *Output) Resize(rows, cols uint16) {
	_ = o.o.resize(providers.Size{Rows: rows, Cols: cols}, func(providers.Size) error { return nil })
}

// Close ends it for those who follow.
func (o *Output) Close() { o.o.close() }
