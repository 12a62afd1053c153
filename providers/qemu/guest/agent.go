//go:build linux

package guest

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"berth/providers/qemu/wire"
)

// portPatience is how long the agent waits for its port.
const portPatience = 60 * time.Second

// agent is the state of the role.
type agent struct {
	out  *wire.Writer
	held bool
	puts map[uint64]*put

	door *door // nil: there is none

	mu   sync.Mutex
	seat *seat
}

// IsInit says that this process is the first one of a guest that we built.
func IsInit(arg0 string) bool { return os.Getpid() == 1 && arg0 == Init }

// Main is the agent; it only returns to end the machine.
func Main() int {
	if err := prepare(); err != nil {
		say("preparing the guest: %s", err)
	}
	port, err := openPort()
	if err != nil {
		say("no port: %s", err)
		off()
		return 1
	}
	a := &agent{out: wire.NewWriter(port), puts: map[uint64]*put{}}
	if err := a.out.Send(wire.Frame{Do: wire.SayReady, Version: wire.Version}); err != nil {
		say("the port: %s", err)
	}
	r := bufio.NewReaderSize(port, wire.Chunk)
	for {
		f, err := wire.Read(r)
		if err != nil { // the stream can't be trusted any more, so nobody can stop this machine but itself
			say("the port: %s", err)
			off()
			return 1
		}
		a.handle(f)
	}
}

// say writes to the console, which only a person who debugs has connected.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "berth: "+format+"\n", args...) }

// off ends the machine at once.
func off() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) // QEMU runs with -no-reboot
}

func prepare() error {
	var first error
	note := func(err error) {
		if err != nil && first == nil {
			first = err
		}
	}
	for _, m := range []struct{ what, where, data string }{
		{"proc", "/proc", ""}, {"sysfs", "/sys", ""}, {"devtmpfs", "/dev", ""}, {"devpts", "/dev/pts", "ptmxmode=0666,mode=0620"},
		{"tmpfs", "/dev/shm", "mode=1777"}, {"tmpfs", "/tmp", "mode=1777"}, {"tmpfs", "/run", "mode=0755"},
	} {
		if err := os.MkdirAll(m.where, 0o755); err != nil {
			note(err)
		}
		if err := unix.Mount(m.what, m.where, m.what, 0, m.data); err != nil {
			note(fmt.Errorf("%s: %w", m.where, err))
		}
	}
	for _, d := range []string{Home, MaterialDir} {
		note(os.MkdirAll(d, 0o700))
	}
	for name, to := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} { // the kernel's own /dev has none
		note(os.Symlink("/proc/self/fd"+to, "/dev/"+name))
	}
	note(loadModules(OrderFile))
	if line, err := os.ReadFile("/proc/cmdline"); err == nil && strings.Contains(string(line), NetworkFlag) {
		note(loadModules(NetworkFile))
		note(joinNetwork())
	}
	return first
}

// loadModules loads those that an order file names; the first failure is told
// after all were tried.
func loadModules(order string) error {
	b, first := os.ReadFile(filepath.Join(ModulesDir, order))
	for _, name := range strings.Fields(string(b)) {
		if err := loadModule(filepath.Join(ModulesDir, name)); err != nil && first == nil {
			first = fmt.Errorf("module %s: %w", name, err)
		}
	}
	return first
}

func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), "", 0)
	if err == unix.EEXIST { // built in, in this kernel
		return nil
	}
	return err
}

// openPort finds the port by its name, once the kernel has made it.
func openPort() (*os.File, error) {
	var last error
	for end := time.Now().Add(portPatience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		names, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
		for _, n := range names {
			b, err := os.ReadFile(n)
			if err != nil || strings.TrimSpace(string(b)) != PortName {
				continue
			}
			f, err := os.OpenFile("/dev/"+filepath.Base(filepath.Dir(n)), os.O_RDWR, 0)
			if err == nil {
				return f, nil
			}
			last = err
		}
	}
	return nil, fmt.Errorf("no virtio port %s within %s: %v", PortName, portPatience, last)
}

// hello sets the clock, names the host and stirs fresh entropy into the pool:
// a restored machine has the time and the randomness of its original.
func (a *agent) hello(f wire.Frame) error {
	ts := unix.NsecToTimespec(f.Unix)
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &ts); err != nil {
		return fmt.Errorf("setting the clock: %w", err)
	}
	if f.Name != "" {
		if err := unix.Sethostname([]byte(f.Name)); err != nil {
			return fmt.Errorf("naming the host: %w", err)
		}
	}
	if len(f.Entropy) == 0 {
		return nil
	}
	pool, err := os.OpenFile("/dev/urandom", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer pool.Close()
	return addEntropy(pool, f.Entropy)
}

// addEntropy credits b, at most 512 bytes of it, and has the kernel reseed.
func addEntropy(pool *os.File, b []byte) error {
	var arg struct {
		bits, size int32
		data       [512]byte
	}
	n := copy(arg.data[:], b)
	arg.bits, arg.size = int32(8*n), int32(n)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, pool.Fd(), unix.RNDADDENTROPY, uintptr(unsafe.Pointer(&arg))); e != 0 {
		return fmt.Errorf("adding entropy: %w", e)
	}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, pool.Fd(), rndReseed, 0); e != 0 && e != unix.EINVAL && e != unix.ENODATA {
		return fmt.Errorf("reseeding: %w", e)
	}
	return nil
}

// rndReseed is RNDRESEEDCRNG of linux/random.h.
const rndReseed = 0x5207
