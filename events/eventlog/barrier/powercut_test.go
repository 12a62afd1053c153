package barrier_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/eventlog/logtest"
	"berth/events/eventlog/stream"
	"berth/internal/embedded"
)

// Environment of the process whose power is cut.
const (
	envStore   = "BERTH_POWERCUT_STORE"
	envProfile = "BERTH_POWERCUT_PROFILE"
	envPrivate = "BERTH_POWERCUT_PRIVATE"
)

func TestMain(m *testing.M) {
	if store := os.Getenv(envStore); store != "" {
		if err := writeUntilDead(store, os.Getenv(envProfile)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// writeUntilDead commits from several writers and prints each commit that was
// acknowledged as durable.
func writeUntilDead(store, profile string) error {
	ctx := context.Background()
	s, err := embedded.Start(ctx, embedded.Options{StoreDir: store, SyncAlways: profile == "strict", SyncInterval: time.Hour})
	if err != nil {
		return err
	}
	var l *stream.Log
	if profile == "group" {
		l, _, err = openGroup(ctx, store, s, true)
	} else {
		nc, cerr := s.Connect()
		if cerr != nil {
			return cerr
		}
		l, err = stream.Open(ctx, nc, stream.Config{Space: space, Create: true})
	}
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			b, last := events.SeatBoundary("local", events.Alias(fmt.Sprintf("w%d", w))), uint64(0)
			for n := 0; ; n++ {
				r, err := l.Commit(ctx, logtest.Commit(n*8+w, b, last))
				if err != nil {
					return
				}
				last = r.Sequence
				mu.Lock()
				fmt.Println("acked", r.Sequence, r.Meta.ID)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return nil
}

// TestPowerCut cuts the power of the file system under a running log, in both
// profiles: what had been acknowledged is there again. It needs root and a
// loop device.
func TestPowerCut(t *testing.T) {
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("SKIPPED, durability is not shown here: the power-cut test needs root and a loop device")
	}
	if os.Getenv(envPrivate) == "" {
		privately(t)
		return
	}
	for _, profile := range []string{"group", "strict", "group"} {
		t.Run(profile, func(t *testing.T) { cutPower(t, profile) })
	}
}

// privately runs the test again in a mount namespace of its own. In the common
// one, any process that makes a namespace meanwhile keeps a copy of the mount,
// and a file system that was shut down can't be mounted afresh before all of
// them are gone.
func privately(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*within)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPowerCut$", "-test.v", "-test.timeout=3m")
	c.Env = append(os.Environ(), envPrivate+"=1")
	c.SysProcAttr = &unix.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	c.WaitDelay = within
	out, err := c.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		t.Skipf("SKIPPED, durability is not shown here: no mount namespace: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("SKIPPED, durability is not shown here:\n%s", out)
	}
}

func cutPower(t *testing.T, profile string) {
	d := newDisk(t)
	store := filepath.Join(d.mount, "js")
	if err := os.Mkdir(store, 0o755); err != nil {
		t.Fatal(err)
	}
	d.run("sync", "-f", d.mount)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), envStore+"="+store, envProfile+"="+profile)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { child.Process.Kill(); child.Wait() }()
	// Only what was read before the cut counts as acknowledged.
	const enough = 400
	lines := make(chan string, 1<<16)
	go func() {
		defer close(lines)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			lines <- sc.Text()
		}
	}()
	acked := map[uint64]string{}
	deadline := time.After(within)
	for len(acked) < enough {
		select {
		case <-deadline:
			t.Fatalf("only %d commits in %s", len(acked), within)
		case line, ok := <-lines:
			var seq uint64
			var id string
			if n, _ := fmt.Sscanf(line, "acked %d %s", &seq, &id); !ok || n != 2 {
				t.Fatalf("the writer says %q", line)
			}
			acked[seq] = id
		}
	}
	d.cut()
	child.Process.Kill()
	child.Wait()
	d.remount()
	recovered := readAll(t, store)
	for seq, id := range acked {
		if recovered[seq] != id {
			t.Fatalf("commit %s was acknowledged at %d and is lost: %d of %d recovered", id, seq, len(recovered), len(acked))
		}
	}
}

func readAll(t *testing.T, store string) map[uint64]string {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := embedded.Start(ctx, embedded.Options{StoreDir: store})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	l, err := stream.Open(ctx, nc, stream.Config{Space: space})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out := map[uint64]string{}
	if err := l.Scan(ctx, 0, func(r events.Record) error { out[r.Sequence] = string(r.Meta.ID); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// disk is an ext4 file system in a file, whose power can be cut.
type disk struct {
	t            *testing.T
	image, mount string
	mounted      atomic.Bool
}

func newDisk(t *testing.T) *disk {
	dir := t.TempDir()
	d := &disk{t: t, image: filepath.Join(dir, "image"), mount: filepath.Join(dir, "mount")}
	if err := os.Mkdir(d.mount, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(d.image)
	if err == nil {
		err = f.Truncate(256 << 20)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := command("mkfs.ext4", "-q", "-F", d.image); err != nil {
		t.Skipf("SKIPPED, durability is not shown here: mkfs.ext4: %v %s", err, out)
	}
	if out, err := command("mount", "-o", "loop", d.image, d.mount); err != nil {
		t.Skipf("SKIPPED, durability is not shown here: mount: %v %s", err, out)
	}
	d.mounted.Store(true)
	t.Cleanup(func() {
		if d.mounted.Load() {
			d.unmount()
		}
	})
	return d
}

// command runs a program and never waits for ever.
func command(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (d *disk) run(name string, args ...string) {
	if out, err := command(name, args...); err != nil {
		d.t.Fatalf("%s: %v %s", name, err, out)
	}
}

// cut shuts the file system down without flushing anything, as
// EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH does.
func (d *disk) cut() {
	f, err := os.Open(d.mount)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	flags := uint32(2)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, f.Fd(), 0x8004587D, uintptr(unsafe.Pointer(&flags))); e != 0 {
		d.t.Skipf("SKIPPED, durability is not shown here: this kernel can't shut a file system down: %v", e)
	}
}

// unmount waits for the last holder to go; what does not go in time is
// detached, so that nothing hangs.
func (d *disk) unmount() {
	d.mounted.Store(false)
	for end := time.Now().Add(within / 2); ; time.Sleep(50 * time.Millisecond) {
		_, err := command("umount", d.mount)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			d.run("umount", "-l", d.mount)
			return
		}
	}
}

func (d *disk) remount() {
	d.unmount()
	d.run("mount", "-o", "loop", d.image, d.mount)
	d.mounted.Store(true)
}
