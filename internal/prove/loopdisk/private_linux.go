package loopdisk

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds, so that nothing of this package waits for ever.
const (
	// Within bounds one command, such as a mount.
	Within = 60 * time.Second
	// InnerTimeout ends the inner process of Privately from inside, and
	// OuterGrace later it is ended from outside. A long run (BERTH_PROVE) has
	// ProveTimeout.
	InnerTimeout = 3 * time.Minute
	ProveTimeout = 25 * time.Minute
	OuterGrace   = 15 * time.Second
)

// inner is set in the environment of the inner process.
const inner = "BERTH_LOOPDISK_INNER"

// why begins the reason of each skip.
const why = "SKIPPED, durability is not shown here: "

// T is what a test gives.
type T interface {
	Helper()
	Name() string
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Cleanup(func())
	TempDir() string
}

// Privately says whether this is the inner process, where the test is to go
// on. Elsewhere it runs the same test in an inner process, takes its verdict
// over, and returns false. t must be a test of its own, no subtest.
func Privately(t T) bool {
	t.Helper()
	if os.Getenv(inner) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skipf(why + "a power cut needs root and a loop device")
	}
	// The death signal belongs to the thread that starts the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	limit := InnerTimeout
	if os.Getenv("BERTH_PROVE") != "" {
		limit = ProveTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit+OuterGrace)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout="+limit.String())
	c.Env = append(os.Environ(), inner+"=1")
	c.SysProcAttr = &unix.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	c.WaitDelay = Within / 4
	out, err := c.CombinedOutput()
	switch {
	case errors.Is(err, unix.EPERM):
		t.Skipf(why+"no mount namespace: %v", err)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	}
	t.Logf("%s", out)
	return false
}

// command runs a program and never waits for ever, not even for one that the
// kernel does not let go.
func command(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Within)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.WaitDelay = Within / 4
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
