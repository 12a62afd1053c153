package providers

import (
	"context"
	"io"

	"berth/events"
	"berth/events/fault"
)

// Limits of terminals.
const (
	// MaxTerminalInput bounds one Input, in bytes.
	MaxTerminalInput = 128 << 10
	// MaxTerminalSide bounds rows and columns of a terminal; the least is 1.
	MaxTerminalSide = 1000
)

// Size is how large a terminal is, in cells.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Check refuses what is no size of a terminal, with bad-request.
func (s Size) Check() error {
	if s.Rows < 1 || s.Cols < 1 || s.Rows > MaxTerminalSide || s.Cols > MaxTerminalSide {
		return fault.New(fault.BadRequest, "a terminal of %d rows and %d columns: each from 1 to %d", s.Rows, s.Cols, MaxTerminalSide)
	}
	return nil
}

// Terminal is implemented by drivers whose seats have a terminal that can be
// typed into and looked at: capability `screen`, which is claimed only if it
// was shown (R11). Nothing that passes here is journaled: typing is not a
// mutation of the environment, and it may be a secret.
type Terminal interface {
	// Input types data into the seat's terminal, as it is. It returns how many
	// bytes the terminal took. An error whose outcome is not-executed says that
	// none was; any other error means that some may have been. A seat that is
	// not running refuses with failed-precondition and not-executed.
	Input(ctx context.Context, id events.EnvironmentID, ref string, data []byte) (delivered int, err error)

	// Resize changes the terminal's size; the programs in it are told.
	Resize(ctx context.Context, id events.EnvironmentID, ref string, size Size) error

	// View looks at the terminal: the whole screen first, then what comes. Any
	// number of views may be open; a slow one holds up neither the seat, but for
	// a bounded moment, nor another view. It ends with ctx or Close.
	View(ctx context.Context, id events.EnvironmentID, ref string) (View, error)
}

// View is a look at one seat's terminal.
type View interface {
	// Next returns the next part. It blocks until there is one, and answers
	// io.EOF when the seat ended and everything was given. The part's data is
	// valid until the next call.
	Next() (Part, error)
	io.Closer
}

// PartKind says what a part of a view is.
type PartKind byte

// The kinds of parts.
const (
	// PartRepaint begins a view, and again whenever output was dropped: Data
	// paints the whole screen of Size on a terminal in any state.
	PartRepaint PartKind = 1
	// PartData is output as the seat wrote it.
	PartData PartKind = 2
	// PartSize says that the terminal has another size from here on.
	PartSize PartKind = 3
)

// Part is one piece of a view.
type Part struct {
	Kind PartKind
	Data []byte
	// Size is that of the terminal, with a repaint and a size.
	Size Size
	// Dropped is how many bytes of output the view has missed before this
	// repaint, because it was slower than the seat.
	Dropped int64
	// Partial says that the repaint may lack something: output was too fast to
	// be followed. The seat's program is asked to paint again by itself.
	Partial bool
}

// guardedTerminal keeps panics and unfit errors of a driver's terminal from
// its callers, as Guard does for the rest.
type guardedTerminal struct {
	guard
	t Terminal
}

// Input implements Terminal. It keeps the number of bytes also with an error.
func (g guardedTerminal) Input(ctx context.Context, id events.EnvironmentID, ref string, data []byte) (n int, err error) {
	if len(data) > MaxTerminalInput {
		return 0, fault.New(fault.BadRequest, "input of %d bytes: at most %d at a time", len(data), MaxTerminalInput)
	}
	_, err = read(g.guard, "input", func() (_ struct{}, err error) {
		n, err = g.t.Input(ctx, id, ref, data)
		return struct{}{}, err
	}, func(struct{}) error { return nil })
	return min(max(n, 0), len(data)), err
}

// Resize implements Terminal.
func (g guardedTerminal) Resize(ctx context.Context, id events.EnvironmentID, ref string, size Size) error {
	if err := size.Check(); err != nil {
		return err
	}
	_, err := read(g.guard, "resize", func() (struct{}, error) { return struct{}{}, g.t.Resize(ctx, id, ref, size) }, func(struct{}) error { return nil })
	return err
}

// View implements Terminal.
func (g guardedTerminal) View(ctx context.Context, id events.EnvironmentID, ref string) (View, error) {
	return read(g.guard, "view", func() (View, error) { return g.t.View(ctx, id, ref) }, func(v View) error {
		if v == nil {
			return fault.New(fault.Internal, "no view")
		}
		return nil
	})
}
