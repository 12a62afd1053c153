//go:build linux

package qemu

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/seatdir"
	"berth/providers/seat"
)

// The options that a plan may carry; everything else is refused (R88).
const (
	OptionCheckpoint = "checkpoint" // cold (the default) or memory: what a checkpoint keeps
	OptionGolden     = "golden"     // on (the default) or off: start from the memory of a booted, empty machine
	// OptionRestore is beside (the default) or after: whether a restore's machine
	// is made ready before the one that is there ends, or when it has.
	OptionRestore = "restore"
	restoreAfter  = "after"
)

// choice is what a plan selects.
type choice struct {
	network    string
	checkpoint string
	golden     bool
	restore    string
	from       *providers.Origin
	memory     int64 // MiB
	cpus       int
}

// choices reads a plan's options, network and resources; null is no network.
func choices(p events.Plan) (choice, error) {
	c := choice{network: "none", checkpoint: "cold", golden: true, restore: "beside", memory: DefaultMemory, cpus: 1}
	for name, value := range p.Options {
		switch {
		case name == OptionCheckpoint && (value == "cold" || value == "memory"):
			c.checkpoint = value
		case name == OptionGolden && (value == "on" || value == "off"):
			c.golden = value == "on"
		case name == OptionRestore && (value == "beside" || value == restoreAfter):
			c.restore = value
		case name == providers.OptionFrom:
			o, err := providers.OriginOf(p)
			if err != nil {
				return c, err
			}
			c.from = o
		default:
			return c, fault.New(fault.BadRequest, "option %s=%s: the qemu provider knows checkpoint=cold|memory, golden=on|off, restore=beside|after and from=ENVIRONMENT/CHECKPOINT", events.Scrub(name), events.Scrub(value))
		}
	}
	if p.Network != nil {
		c.network = *p.Network
	}
	if c.network != "none" && c.network != "user" {
		return c, fault.New(fault.BadRequest, "network %q: the qemu provider knows none and user", events.Scrub(c.network))
	}
	if p.Delegated && (c.from != nil || c.checkpoint == "memory") {
		return c, fault.New(fault.FailedPrecondition, "a delegated seat begins from nothing, and its memory is kept nowhere: its hand-off is in it").
			WithHint("leave out the options from and checkpoint=memory")
	}
	if p.Sign() != nil && c.checkpoint == "memory" {
		return c, fault.New(fault.FailedPrecondition, "a seat whose memory is kept shows no sign of readiness: one that goes on from its memory would not show it again").
			WithHint("leave out the sign, or the option checkpoint=memory")
	}
	return c, c.size(p.Resources)
}

// resolved is the network that a plan resolves to (R23); empty for one that the preflight
// refused.
func resolved(p events.Plan) string {
	c, err := choices(p)
	if err != nil {
		return ""
	}
	return c.network
}

// card is the network of a running machine, as its QEMU was started; empty if
// that can't be told.
func card(id seatdir.Ident) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id.Seat.PID))
	switch {
	case err != nil || len(b) == 0:
		return ""
	case bytes.Contains(b, []byte("\x00-netdev\x00user,")):
		return "user"
	}
	return "none"
}

func (c *choice) size(r events.Resources) error {
	if r.MemoryMiB != 0 {
		c.memory = r.MemoryMiB
	}
	if c.memory < MinMemory || c.memory > MaxMemory {
		return fault.New(fault.BadRequest, "%d MiB of memory: a machine has from %d to %d", c.memory, MinMemory, MaxMemory)
	}
	if !r.CPUs.IsZero() {
		n, err := strconv.Atoi(r.CPUs.String())
		if err != nil || n < 1 || n > MaxCPUs {
			return fault.New(fault.BadRequest, "%s CPUs: a machine has whole ones, from 1 to %d", r.CPUs, MaxCPUs)
		}
		c.cpus = n
	}
	if r.DiskGiB != 0 {
		return fault.New(fault.BadRequest, "%d GiB of disk: a machine of this provider has none; what it writes is in its memory", r.DiskGiB)
	}
	return nil
}

// Preflight probes what the plan would get on this host (R1-R12). Every
// shortfall is a failed check or a false capability.
func (d *Driver) Preflight(ctx context.Context, plan events.Plan) (providers.Preflight, error) {
	p := providers.Preflight{ProbedAt: d.Now()}
	check := func(name string, err error, detail string, args ...any) {
		c := events.Check{Name: name, OK: err == nil, Detail: fmt.Sprintf(detail, args...)}
		if err != nil {
			c.Detail = events.Scrub(fault.From(err).Message)
		}
		p.Checks = append(p.Checks, c)
	}
	ch, err := choices(plan)
	check("options", err, "%d MiB, %d CPUs, network %s, %s checkpoints", ch.memory, ch.cpus, ch.network, ch.checkpoint)
	if err != nil {
		return p, nil
	}
	p.Network = ch.network
	_, err = d.DescribeImage(ctx, plan.Image)
	check("image", err, "template %s", Template)
	err = nil
	if len(plan.Command) == 0 || plan.Command[0] == "" {
		err = fault.New(fault.BadRequest, "there is no command")
	}
	check("command", err, "looked up in the guest at the start")
	host, err := d.probeHost(ctx)
	if ctx.Err() != nil {
		return p, ctx.Err()
	}
	if err != nil {
		check("machine", err, "")
	} else {
		check("machine", nil, "QEMU %s %s, kernel %s", host.version, d.how(host), host.kernel.Release)
	}
	check("limits", nil, "by control groups: %s", d.groups.Layout().Enforced())
	if err == nil && ch.network == "user" {
		check("network", host.kernel.Network(), "a network card of its own, addresses translated")
	}
	if ch.from != nil {
		_, err := loadKept(d.Seat(ch.from.Environment), ch.from.Checkpoint)
		check("from", err, "checkpoint %s", ch.from.Checkpoint)
	}
	p.Capabilities = events.Capabilities{
		Custody: true, ColdCheckpoint: ch.checkpoint == "cold", MemoryCheckpoint: ch.checkpoint == "memory", Snapshot: !plan.Delegated,
		PauseKeepsMemory: true, Export: true, Screen: true,
		Extend: events.ExtendLimit{StepMs: seat.ExtendStep.Milliseconds()},
	}
	return p, nil
}

// how says what machines are driven by, as far as it is known.
func (d *Driver) how(p *probe) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case p.kvm != nil && p.kvm.Usable:
		return "with KVM"
	case p.kvm == nil && d.candidate() == nil:
		return "with KVM, if its trial passes, else under emulation (tcg)"
	}
	return "under emulation (tcg)"
}

// hostShare is the part of the host's memory that machines may have, in
// percent; the rest is the host's own.
const hostShare = 90

// HostFacts probes this host (R76-R82). KVM is usable when a trial boot has
// passed: a device node proves nothing (R79).
func (d *Driver) HostFacts(ctx context.Context) (events.HostFacts, error) {
	host, err := d.probeHost(ctx)
	if err != nil {
		return events.HostFacts{}, err
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
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
	return events.HostFacts{
		Host: d.Host, Architecture: runtime.GOARCH, OS: runtime.GOOS,
		Engines: []events.Engine{{Name: Name, Version: host.version, Limits: d.groups.Layout().Enforced()}},
		KVM:     d.kvm(),
		Allocatable: events.HostCapacity{
			CPUs: cpus, MemoryMiB: int64(info.Totalram) * int64(info.Unit) >> 20 * hostShare / 100,
			DiskGiB: int64(fs.Bavail) * fs.Bsize >> 30, Slots: MaxMachines,
		},
		ObservedAt: d.Now(),
	}, nil
}
