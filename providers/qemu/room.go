//go:build linux

package qemu

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/cgroup"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/machine"
	"berth/providers/seat"
)

// admit refuses more machines of an environment than may run beside the others.
func (d *Driver) admit(ctx context.Context, self events.EnvironmentID, more int) error {
	n := 0
	err := d.Each(ctx, func(dir seatdir.Dir, _ *seatdir.Journal) {
		if dir.ID != self && runs(dir) {
			n++
		}
	})
	if err == nil && n+more > MaxMachines {
		err = fault.New(fault.ResourceExhausted, "%d machines run on this host; the most that are admitted are %d, and this needs %d", n, MaxMachines, more)
	}
	return err
}

// runs says that a machine has a holder.
func runs(dir seatdir.Dir) bool {
	id, err := seat.ReadIdent(dir)
	if err != nil {
		return false
	}
	h, err := identity.Open(id.Custodian)
	if err == nil {
		h.Close()
	}
	return !errors.Is(err, identity.ErrGone)
}

// beside says whether a restore's machine is made ready while the one that is
// there goes on (option restore=beside), and refuses where both have no room.
func (d *Driver) beside(ctx context.Context, c *seat.Call, h machine.Hardware) (bool, error) {
	ch, err := choices(c.J.Plan)
	if err != nil {
		return false, err
	}
	if !runs(c.Dir) || ch.restore == restoreAfter {
		return false, d.admit(ctx, c.Op.Environment, 1)
	}
	if err = d.admit(ctx, c.Op.Environment, 2); err == nil {
		err = d.fits(h)
	}
	var f *fault.Error
	if errors.As(err, &f) {
		err = f.WithHint("a restore has both machines for a moment; retire what is not needed, or spawn with the option restore=after, which ends the old one first and loses its memory if the new one can't be started")
	}
	return true, err
}

// fits refuses one machine more than the host's memory holds.
func (d *Driver) fits(h machine.Hardware) error {
	free, err := d.available()
	if err != nil {
		return fault.New(fault.Unavailable, "memory of host %s: %s", d.Host, err)
	}
	if room, limited := d.groups.Layout().Room(); limited {
		free = min(free, room>>20)
	}
	if need := h.MemoryMiB + machine.OverheadMiB(h.MemoryMiB); free < need {
		return fault.New(fault.ResourceExhausted, "another machine needs %d MiB, and host %s has %d MiB available", need, d.Host, free)
	}
	return nil
}

// available is the memory in MiB that this host can give without taking it from
// what runs.
func available() (int64, error) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) == 3 && string(f[0]) == "MemAvailable:" {
			kib, err := strconv.ParseInt(string(f[1]), 10, 64)
			return kib >> 10, err
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}

// limit puts a start into a control group with all the limits that this host
// can enforce; where it has none, a machine runs without.
func (d *Driver) limit(c *seat.Call, s *machine.Start) {
	groups := d.groups.Layout()
	s.Group, s.Limits = cgroup.Group{}, groups.Limit(s.Hardware.Limits())
	if s.Limits != (cgroup.Limits{}) {
		s.Group = cgroup.Group{Layout: groups, Name: machine.GroupName(c.Dir, c.Op.ID)}
	}
}

// settle removes what a restore that was cut off left: the groups of machines
// that nobody holds.
func settle(c *seat.Call) error {
	id, err := seat.ReadIdent(c.Dir)
	if err != nil {
		return err
	}
	return c.Dir.SweepGroups(id.Group.Name, groupPatience)
}

// groupPatience bounds how long the last threads may take to leave a group.
const groupPatience = 10 * time.Second

// Limits names what this host bounds of a machine by control groups; none, where
// it offers none to us.
func Limits() string { return cgroup.Detect().Enforced() }
