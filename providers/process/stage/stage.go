//go:build linux

package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/providers/process/seatdir"
)

// Role is the first argument that makes the program a stage.
const Role = "__seat"

// The file descriptors that a stage is started with.
const (
	OrdersFD = 3 // seatdir.Seat as JSON; its end is the signal to go on
	StatusFD = 4 // closed by a successful exec; else one line saying what failed
	saysFD   = 5 // where the seat says that it is ready, if that is its sign
)

// maxOrders bounds the orders in bytes.
const maxOrders = 1 << 20

// Home is where the private home is, inside a seat with its own root.
const Home = "/home/seat"

// MaterialDir is where staged material is, inside such a seat.
const MaterialDir = "/run/berth/material"

// DoorDir is where such a seat sees the socket of its manager.
const DoorDir = "/run/berth/door"

// Attributes are the namespaces of a seat and the identity in them. idBase is
// the host uid that the seat's root becomes; zero maps only our own user.
func Attributes(s seatdir.Seat, idBase int) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0, Pdeathsig: syscall.SIGKILL}
	if !s.Isolated {
		return a
	}
	a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	if s.Network == "none" {
		a.Cloneflags |= syscall.CLONE_NEWNET
	}
	if idBase == 0 {
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		return a
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: idBase, Size: IDCount}}
	a.GidMappings = a.UidMappings
	// With no groups given, the manager's own groups are dropped as well.
	a.GidMappingsEnableSetgroups = true
	a.Credential = &syscall.Credential{}
	return a
}

// The range of host ids that seats of a privileged manager are mapped to.
const (
	IDBase  = 100_000
	IDCount = 65_536
)

// Main builds and executes the seat; it returns only when that failed, or
// when the orders have no command (a trial).
func Main() int {
	// Capabilities, no-new-privileges and the cgroup namespace belong to a
	// thread; the one that sets them must be the one that executes.
	runtime.LockOSThread()
	unix.CloseOnExec(OrdersFD)
	unix.CloseOnExec(StatusFD)
	status := os.NewFile(StatusFD, "status")
	if err := run(); err != nil {
		fmt.Fprintf(status, "%s\n", err)
		return 111
	}
	return 0
}

func run() error {
	orders := os.NewFile(OrdersFD, "orders")
	b, err := io.ReadAll(io.LimitReader(orders, maxOrders))
	if err != nil {
		return fmt.Errorf("reading the orders: %w", err)
	}
	_ = orders.Close()
	var s seatdir.Seat
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("reading the orders: %w", err)
	}
	home := s.Env["HOME"]
	if s.Isolated {
		if err := buildRoot(s); err != nil {
			return err
		}
		if err := giveUp(s); err != nil {
			return err
		}
		home = Home
	}
	if err := unix.Chdir(home); err != nil {
		return fmt.Errorf("entering the home: %w", err)
	}
	if len(s.Command) == 0 {
		return nil
	}
	if s.Ready != nil && s.Ready.Kind == events.SignFD {
		// The descriptor of the orders is free by now.
		if err := unix.Dup3(saysFD, events.ReadyFD, 0); err != nil {
			return fmt.Errorf("giving the seat its descriptor: %w", err)
		}
		unix.CloseOnExec(saysFD)
	}
	path, err := LookPath(s.Command[0], s.Env["PATH"])
	if err != nil {
		return err
	}
	env := make([]string, 0, len(s.Env))
	for k, v := range s.Env {
		env = append(env, k+"="+v)
	}
	sort.Strings(env)
	unix.Umask(0o022)
	if err := unix.Exec(path, s.Command, env); err != nil {
		return fmt.Errorf("executing %s: %w", s.Command[0], err)
	}
	return nil
}

// giveUp leaves the seat without any privilege over its own namespaces.
func giveUp(s seatdir.Seat) error {
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if s.Network == "none" {
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("bringing the loopback up: %w", err)
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("unsharing the control group names: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no new privileges: %w", err)
	}
	for c := uintptr(0); ; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break
		} else if err != nil {
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&hdr, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}

func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, r); err != nil {
		return err
	}
	r.SetUint16(r.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
}

// LookPath finds a command as a shell does, below the current root.
func LookPath(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	for _, dir := range filepath.SplitList(path) {
		if p := filepath.Join(dir, name); filepath.IsAbs(p) && executable(p) == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("command %q is not in %s", name, path)
}

func executable(p string) error {
	st, err := os.Stat(p)
	if err != nil {
		return fmt.Errorf("command %q: %w", p, errors.Unwrap(err))
	}
	if st.IsDir() || st.Mode()&0o111 == 0 {
		return fmt.Errorf("command %q is not an executable file", p)
	}
	return nil
}
