//go:build unix

package steady

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime is what this process has used so far, in user and system.
func ProcessorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
