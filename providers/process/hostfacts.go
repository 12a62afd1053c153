//go:build linux

package process

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
)

// hostShare is the part of the host's memory that environments may have, in
// percent; the rest is the host's own.
const hostShare = 90

// HostFacts probes this host (R76-R82). KVM is not usable until a trial boot
// has passed, and this provider boots nothing: a device node proves nothing.
func (d *Driver) HostFacts(ctx context.Context) (events.HostFacts, error) {
	if err := ctx.Err(); err != nil {
		return events.HostFacts{}, err
	}
	mem, err := memoryMiB()
	if err != nil {
		return events.HostFacts{}, fault.New(fault.Unavailable, "memory of host %s: %s", d.Host, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(d.Dir, &fs); err != nil {
		return events.HostFacts{}, fault.New(fault.Unavailable, "disk of host %s: %s", d.Host, err)
	}
	cpus, err := events.ParseQuantity(strconv.Itoa(runtime.NumCPU()))
	if err != nil {
		return events.HostFacts{}, err
	}
	_, kvm := os.Stat("/dev/kvm")
	return events.HostFacts{
		Host: d.Host, Architecture: runtime.GOARCH, OS: runtime.GOOS,
		Engines: []events.Engine{{Name: Name, Limits: d.groups.Layout().Enforced()}},
		KVM:     events.KVM{Present: kvm == nil},
		Allocatable: events.HostCapacity{
			CPUs: cpus, MemoryMiB: mem * hostShare / 100, DiskGiB: int64(fs.Bavail) * fs.Bsize >> 30, Slots: MaxSeats,
		},
		ObservedAt: d.Now(),
	}, nil
}

func memoryMiB() (int64, error) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(b), "\n") {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			return kib >> 10, err
		}
	}
	return 0, fmt.Errorf("/proc/meminfo has no MemTotal")
}
