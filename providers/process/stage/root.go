//go:build linux

package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"berth/providers/process/seatdir"
)

// Tops are the directories of the host that template `host` shows, read-only.
// Nobody's home, no data directory and no socket is among them (R91).
var Tops = []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt"}

// MountPoints must exist in a root tree, because it is mounted read-only.
var MountPoints = []string{"dev", "proc", "sys", "tmp", "run", "home/seat"}

// Limits of the seat's memory-backed filesystems.
const (
	tmpOptions = "mode=1777,size=1g"
	runOptions = "mode=755,size=64m"
	shmOptions = "mode=1777,size=64m"
)

// buildRoot makes the seat's filesystem and moves into it. The current
// directory is the seat's directory: its parents may be closed to this user,
// so that every path below it is relative.
func buildRoot(s seatdir.Seat) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separating mounts: %w", err)
	}
	root := seatdir.DirRoot
	steps := []func(string, seatdir.Seat) error{hostTree, freezeTree, devices, memoryFiles, homeAndMaterial, door, socket, nameService, hide}
	if s.Image != "" {
		steps[0] = imageTree
	}
	for _, step := range steps {
		if err := step(root, s); err != nil {
			return err
		}
	}
	if err := unix.Chdir(root); err != nil {
		return fmt.Errorf("entering the root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the host's root: %w", err)
	}
	return unix.Chdir("/")
}

func imageTree(root string, s seatdir.Seat) error {
	if err := unix.Mount(s.Image, root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting the image: %w", err)
	}
	return nil
}

func hostTree(root string, _ seatdir.Seat) error {
	if err := unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m"); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	for _, d := range append([]string{"var/tmp"}, MountPoints...) {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return err
		}
	}
	for _, d := range Tops {
		from, to := "/"+d, filepath.Join(root, d)
		st, err := os.Lstat(from)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return err
		case st.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(from)
			if err != nil {
				return err
			}
			if err := os.Symlink(target, to); err != nil {
				return err
			}
			continue
		}
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mounting the host's %s: %w", from, err)
		}
	}
	return nil
}

// freezeTree makes the whole tree read-only, mounts below it included.
func freezeTree(root string, _ seatdir.Seat) error {
	return setAttributes(root, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

func setAttributes(path string, flags uint, attr uint64) error {
	if err := unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: attr}); err != nil {
		return fmt.Errorf("restricting %s: %w", path, err)
	}
	return nil
}

func devices(root string, _ seatdir.Seat) error {
	d := filepath.Join(root, "dev")
	if err := unix.Mount("tmpfs", d, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("mounting /dev: %w", err)
	}
	binds := map[string]string{}
	for _, n := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		binds[n] = "/dev/" + n
	}
	// The terminal by its path: its descriptor belongs to another mount namespace.
	if p, err := os.Readlink("/proc/self/fd/0"); err == nil && strings.HasPrefix(p, "/dev/pts/") {
		binds["console"] = p
	}
	for n, from := range binds {
		if err := bindFile(from, filepath.Join(d, n)); err != nil {
			return err
		}
	}
	for _, n := range []string{"pts", "shm"} {
		if err := os.Mkdir(filepath.Join(d, n), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", filepath.Join(d, "pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		return fmt.Errorf("mounting /dev/pts: %w", err)
	}
	if err := unix.Mount("tmpfs", filepath.Join(d, "shm"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, shmOptions); err != nil {
		return fmt.Errorf("mounting /dev/shm: %w", err)
	}
	for n, to := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(to, filepath.Join(d, n)); err != nil {
			return err
		}
	}
	return nil
}

func bindFile(from, to string) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_ = f.Close()
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", from, err)
	}
	return nil
}

func memoryFiles(root string, s seatdir.Seat) error {
	if err := unix.Mount("proc", filepath.Join(root, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	mounts := map[string]string{"tmp": tmpOptions, "run": runOptions}
	if s.Image == "" {
		mounts["var/tmp"] = tmpOptions
	}
	for d, o := range mounts {
		if err := unix.Mount("tmpfs", filepath.Join(root, d), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, o); err != nil {
			return fmt.Errorf("mounting /%s: %w", d, err)
		}
	}
	return nil
}

func homeAndMaterial(root string, s seatdir.Seat) error {
	home := filepath.Join(root, Home)
	if err := unix.Mount(seatdir.DirHome, home, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting the home: %w", err)
	}
	if err := setAttributes(home, 0, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
		return err
	}
	if !s.Material {
		return nil
	}
	to := filepath.Join(root, MaterialDir)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(seatdir.DirMaterial, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting the material: %w", err)
	}
	attributes := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if !s.Handoff {
		attributes |= unix.MOUNT_ATTR_RDONLY
	}
	return setAttributes(to, 0, attributes)
}

// door shows where the seat's manager answers it; a manager that starts again
// makes its socket anew in the same directory.
func door(root string, s seatdir.Seat) error {
	if s.Door == "" {
		return nil
	}
	to := filepath.Join(root, DoorDir)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(s.Door, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting the door: %w", err)
	}
	return setAttributes(to, 0, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_RDONLY)
}

// SocketRoots are where an isolated seat can be shown a socket of the host: they
// are memory of its own, so that its place can be made there.
var SocketRoots = []string{"/run", "/tmp"}

// socket shows the one bearer source that the seat's launch names (R43).
func socket(root string, s seatdir.Seat) error {
	if s.Socket == "" {
		return nil
	}
	to := filepath.Join(root, s.Socket)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return bindFile(s.Socket, to)
}

// nameService keeps names resolvable in a seat on the host's network: the
// host's resolv.conf may be a link to a place that the seat does not see.
func nameService(root string, s seatdir.Seat) error {
	if s.Network != "host" {
		return nil
	}
	const conf = "/etc/resolv.conf"
	real, err := filepath.EvalSymlinks(conf)
	if err != nil {
		return nil // a host without one: the seat has none either
	}
	if s.Image != "" {
		to := filepath.Join(root, conf)
		if st, err := os.Lstat(to); err != nil || !st.Mode().IsRegular() {
			return nil // the image has another idea of it
		}
		if err := unix.Mount(real, to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", conf, err)
		}
		return setAttributes(to, 0, unix.MOUNT_ATTR_RDONLY)
	}
	if !strings.HasPrefix(real, "/run/") {
		return nil
	}
	b, err := os.ReadFile(real)
	if err != nil {
		return nil // not readable for this user on the host either
	}
	to := filepath.Join(root, real)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

// hide covers directories that lie in what template `host` shows.
func hide(root string, s seatdir.Seat) error {
	if s.Image != "" {
		return nil
	}
	for _, p := range s.Hide {
		to := filepath.Join(root, p)
		if st, err := os.Lstat(to); err != nil || !st.IsDir() {
			continue
		}
		if err := unix.Mount("tmpfs", to, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "mode=000,size=4k"); err != nil {
			return fmt.Errorf("hiding %s: %w", p, err)
		}
	}
	return nil
}
