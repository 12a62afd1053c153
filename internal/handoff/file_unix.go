//go:build unix

package handoff

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"berth/events/fault"
)

// fileMode is the only mode that a hand-off file may have.
const fileMode = 0o600

// Take reads a hand-off file once: it opens it without following a link,
// removes the name, and only then looks at what it opened. The name is gone on
// every outcome (H8), also when what stood there is refused: a link, anything
// but a plain file, a mode other than 0600, a file of somebody else or with
// another name besides, an empty or too long one. Errors are bad-request,
// or failed-precondition when the name can't be removed.
func Take(path string) ([]byte, error) {
	// O_NONBLOCK: a fifo without a writer must not hold the seat up.
	fd, openErr := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if openErr == nil {
		defer unix.Close(fd)
	}
	// Unlink takes the name only: of a link, never what it leads to.
	if err := unix.Unlink(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, fault.New(fault.FailedPrecondition, "the hand-off file can't be removed, so that it is not read: it must be a plain file in a directory of this seat").
			WithOutcome(fault.NotExecuted)
	}
	if openErr != nil {
		return nil, refused("it is not there, not readable, or a link")
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, refused("it can't be looked at")
	}
	switch {
	case uint32(st.Mode)&unix.S_IFMT != unix.S_IFREG:
		return nil, refused("it is not a plain file")
	case uint32(st.Mode)&0o7777 != fileMode:
		return nil, refused("its mode is not 0600")
	case int(st.Uid) != os.Geteuid():
		return nil, refused("it belongs to somebody else")
	case st.Nlink != 0:
		return nil, refused("it has another name, under which it would stay")
	case st.Size == 0:
		return nil, refused("it is empty")
	case st.Size > MaxDocument:
		return nil, refused("it is too long")
	}
	f := reader(fd)
	raw, err := io.ReadAll(io.LimitReader(f, MaxDocument+1))
	if err != nil || len(raw) == 0 || len(raw) > MaxDocument {
		clear(raw)
		return nil, refused("it can't be read, or changed while it was read")
	}
	return raw, nil
}

func refused(why string) error {
	return fault.New(fault.BadRequest, "the hand-off file is refused: %s", why).WithOutcome(fault.NotExecuted).
		WithHint("a hand-off is used once; spawn a new seat")
}

// reader reads a descriptor that somebody else closes.
type reader int

// Read implements io.Reader.
func (r reader) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(r), b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}
