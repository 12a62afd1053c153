package loopdisk

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// size of the image: it is sparse, and takes what is written.
const size = 256 << 20

// The request and the flag of an ext4 file system that is shut down.
const (
	extIocShutdown = 0x8004587D
	noLogFlush     = uint32(2)
)

// Disk is a mounted file system whose power can be cut.
type Disk struct {
	// Mount is the directory where it is.
	Mount   string
	t       T
	image   string
	mounted atomic.Bool
}

// New makes and mounts an empty disk that is unmounted at the end of the test.
// It skips the test where that is not possible.
func New(t T) *Disk {
	t.Helper()
	dir := t.TempDir()
	d := &Disk{t: t, image: filepath.Join(dir, "image"), Mount: filepath.Join(dir, "mount")}
	if err := os.Mkdir(d.Mount, 0o755); err != nil {
		t.Fatalf("%v", err)
	}
	f, err := os.Create(d.image)
	if err == nil {
		err = f.Truncate(size)
		f.Close()
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	if out, err := command("mkfs.ext4", "-q", "-F", d.image); err != nil {
		t.Skipf(why+"mkfs.ext4: %v %s", err, out)
	}
	if out, err := command("mount", "-o", "loop", d.image, d.Mount); err != nil {
		t.Skipf(why+"mount: %v %s", err, out)
	}
	d.mounted.Store(true)
	t.Cleanup(func() {
		if d.mounted.Load() {
			d.unmount()
		}
	})
	return d
}

// Sync writes everything that is on the disk by now.
func (d *Disk) Sync() {
	d.t.Helper()
	d.run("sync", "-f", d.Mount)
}

func (d *Disk) run(name string, args ...string) {
	d.t.Helper()
	if out, err := command(name, args...); err != nil {
		d.t.Fatalf("%s: %v %s", name, err, out)
	}
}

// Cut loses everything that was not synced. Whoever has files open gets errors
// from here on.
func (d *Disk) Cut() {
	d.t.Helper()
	f, err := os.Open(d.Mount)
	if err != nil {
		d.t.Fatalf("%v", err)
	}
	defer f.Close()
	flags := noLogFlush
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, f.Fd(), extIocShutdown, uintptr(unsafe.Pointer(&flags))); e != 0 {
		d.t.Skipf(why+"this kernel can't shut a file system down: %v", e)
	}
}

// Remount is the power that comes back: nobody may have files open any more.
func (d *Disk) Remount() {
	d.t.Helper()
	d.unmount()
	d.run("mount", "-o", "loop", d.image, d.Mount)
	d.mounted.Store(true)
}

// unmount waits for the last holder to go; what does not go in time is
// detached, so that nothing hangs.
func (d *Disk) unmount() {
	d.mounted.Store(false)
	for end := time.Now().Add(Within / 2); ; time.Sleep(20 * time.Millisecond) {
		_, err := command("umount", d.Mount)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			d.run("umount", "-l", d.Mount)
			return
		}
	}
}
