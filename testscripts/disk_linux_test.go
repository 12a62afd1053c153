package testscripts

import (
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// canMount says whether this user may mount a small file system.
var canMount = sync.OnceValue(func() bool {
	dir, err := os.MkdirTemp("", "berth-mount-")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	if err := mount(dir, "1"); err != nil {
		return false
	}
	return syscall.Unmount(dir, syscall.MNT_DETACH) == nil
})

func mount(dir, mib string) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+mib+"m")
}

// cmdTmpfs mounts a small file system until the end of the script, or writes a
// file of so many MiB: tmpfs mount DIR MIB, tmpfs fill FILE MIB.
func cmdTmpfs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: tmpfs mount DIR MIB | tmpfs fill FILE MIB")
	}
	path := ts.MkAbs(args[1])
	if args[0] == "mount" {
		ts.Check(os.MkdirAll(path, 0o711))
		ts.Check(mount(path, args[2]))
		managerOf(ts).unmount = func() { _ = syscall.Unmount(path, syscall.MNT_DETACH) }
		return
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	ts.Check(os.WriteFile(path, make([]byte, n<<20), 0o600))
}
