//go:build linux

package machine

import (
	"encoding/json"
	"os"

	"golang.org/x/sys/unix"

	"berth/providers/process/identity"
)

// knownExt ends the name of the note beside a golden state; its time is when
// the state was last used.
const knownExt = ".known"

// known is a golden state whose digest was right in this boot of the host, and
// which is the same file, unchanged since: the kernel moves Changed with every
// write, and nobody can set it. Another boot does not believe it, since a power
// cut may have left a part of the file. Hashing it again for every start would
// take as long as loading it.
type known struct {
	BootID  string `json:"bootId"`
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Bytes   int64  `json:"bytes"`
	Changed int64  `json:"changed"` // status change time in ns
}

// knowing is the note that f would have now; false when that can't be told.
func knowing(f *os.File) (known, bool) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return known{}, false
	}
	boot, err := identity.BootID()
	return known{BootID: boot, Device: st.Dev, Inode: st.Ino, Bytes: st.Size, Changed: st.Ctim.Nano()}, err == nil
}

// knownGolden says whether the digest of the state that f has open is known,
// and what to note once it is.
func (s *supervisor) knownGolden(f *os.File) (is known, ok bool) {
	is, ok = knowing(f)
	var was known
	b, err := os.ReadFile(s.goldenFile(knownExt))
	return is, ok && err == nil && json.Unmarshal(b, &was) == nil && is == was
}

// noteGolden notes that the digest of a state is right. Without the note the
// next start takes it again.
func (s *supervisor) noteGolden(is known) {
	b, err := json.Marshal(is)
	if err == nil {
		err = os.WriteFile(s.goldenFile(knownExt), b, 0o600)
	}
	if err != nil {
		_ = os.Remove(s.goldenFile(knownExt))
	}
}
