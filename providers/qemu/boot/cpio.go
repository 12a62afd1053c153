package boot

import (
	"fmt"
	"io"
	"math"
	"path"
	"strings"
)

// Archive writes the newc format of cpio, which the kernel unpacks as its
// first root filesystem. Everything in it belongs to root and has no times, so
// that the same content is the same archive.
type Archive struct {
	w    io.Writer
	ino  uint32
	dirs map[string]bool
	err  error
}

// NewArchive begins an archive on w.
func NewArchive(w io.Writer) *Archive {
	return &Archive{w: w, dirs: map[string]bool{".": true, "": true}}
}

// File types of the mode field.
const (
	typeDir  = 0o040000
	typeFile = 0o100000
	typeLink = 0o120000
)

// Dir adds a directory and those above it; one that is there is not added
// again. Names may begin with a slash.
func (a *Archive) Dir(name string, perm uint32) {
	name = clean(name)
	if a.dirs[name] {
		return
	}
	a.Dir(path.Dir(name), 0o755)
	a.dirs[name] = true
	a.entry(name, typeDir|perm, 2, nil)
}

// File adds a regular file and the directories above it.
func (a *Archive) File(name string, perm uint32, b []byte) {
	a.Dir(path.Dir(clean(name)), 0o755)
	a.entry(clean(name), typeFile|perm, 1, b)
}

// Link adds a symbolic link and the directories above it.
func (a *Archive) Link(name, to string) {
	a.Dir(path.Dir(clean(name)), 0o755)
	a.entry(clean(name), typeLink|0o777, 1, []byte(to))
}

func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// Close ends the archive and returns the first error of all that was added.
func (a *Archive) Close() error {
	a.ino = math.MaxUint32 // the trailer has inode 0: entry adds one
	a.entry("TRAILER!!!", 0, 1, nil)
	return a.err
}

func (a *Archive) entry(name string, mode uint32, links int, b []byte) {
	if a.err != nil {
		return
	}
	if int64(len(b)) > 1<<31 {
		a.err = fmt.Errorf("%s has %d bytes, too many for an initramfs", name, len(b))
		return
	}
	a.ino++
	var h strings.Builder
	h.WriteString("070701")
	for _, v := range []uint32{a.ino, mode, 0, 0, uint32(links), 0, uint32(len(b)), 0, 0, 0, 0, uint32(len(name) + 1), 0} {
		fmt.Fprintf(&h, "%08x", v)
	}
	h.WriteString(name + "\x00")
	h.WriteString(pad(h.Len()))
	if _, a.err = io.WriteString(a.w, h.String()); a.err != nil {
		return
	}
	if _, a.err = a.w.Write(b); a.err == nil {
		_, a.err = io.WriteString(a.w, pad(len(b)))
	}
}

func pad(n int) string { return "\x00\x00\x00"[:(4-n%4)%4] }
