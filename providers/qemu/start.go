//go:build linux

package qemu

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"berth/events"
	"berth/events/fault"
	"berth/internal/handoff"
	"berth/providers"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/guest"
	"berth/providers/qemu/machine"
	"berth/providers/qemu/wire"
	"berth/providers/seat"
)

// guestPath is where a seat's commands are looked up in the guest.
const guestPath = "/usr/local/bin:/usr/bin:/bin"

// The terminal's size until somebody attaches and says otherwise.
const (
	defaultRows = 40
	defaultCols = 120
)

// provision packs what is booted, and takes the checkpoint that the plan begins
// from.
func (d *Driver) provision(ctx context.Context, c *seat.Call) error {
	p := c.Op.Plan
	ch, err := choices(p)
	if err != nil {
		return err
	}
	if _, err := d.DescribeImage(ctx, p.Image); err != nil {
		return err
	}
	if _, err := d.packed(ctx); err != nil {
		return err
	}
	if ch.network == "user" {
		host, err := d.probeHost(ctx)
		if err != nil {
			return err
		}
		if err := host.kernel.Network(); err != nil {
			return fault.New(fault.FailedPrecondition, "network user: %s", err)
		}
	}
	if ch.from != nil {
		if err := d.takeCheckpoint(ctx, c, *ch.from, ch); err != nil {
			return err
		}
	}
	return nil
}

// startOf is what the supervisor reads: the machine, and what it begins from.
func (d *Driver) startOf(ctx context.Context, c *seat.Call) (any, error) {
	p := c.J.Plan
	ch, err := choices(p)
	if err != nil {
		return nil, err
	}
	if len(p.Command) == 0 {
		return nil, fault.New(fault.BadRequest, "environment %s has no command to start", c.Op.Environment)
	}
	if err := d.admit(ctx, c.Op.Environment, 1); err != nil {
		return nil, err
	}
	files, err := d.packed(ctx)
	if err != nil {
		return nil, err
	}
	hostname := cmp.Or(string(c.J.Alias), "seat")
	s := machine.Start{
		Operation: c.Op.ID, Fingerprint: seatdir.Fingerprint(c.Op), Environment: c.Op.Environment,
		QEMU: files.QEMU, Kernel: files.Kernel, Initramfs: files.Initramfs, Hostname: hostname, Network: ch.network,
		Hardware: hardware(files, ch), SlotsDir: filepath.Join(d.Dir, bootDir), Memory: ch.checkpoint == "memory",
		Launch: wire.Launch{Command: p.Command, Dir: guest.Home, Rows: defaultRows, Cols: defaultCols, Ready: p.Sign(), Env: map[string]string{
			"PATH": guestPath, "HOME": guest.Home, "TERM": "xterm-256color",
			events.EnvEnvironment: string(c.Op.Environment), events.EnvSeat: string(c.J.Alias),
		}},
	}
	d.limit(c, &s)
	if ch.golden {
		s.Golden = filepath.Join(d.Dir, bootDir)
	}
	if _, err := os.Stat(c.Dir.File(seatdir.DirMaterial)); err == nil {
		s.Launch.Env[events.EnvMaterial] = guest.MaterialDir
	}
	if st, err := os.Stat(d.door); d.door != "" && err == nil && st.IsDir() && s.Launch.Env[events.EnvMaterial] != "" {
		s.Door, s.Launch.Door, s.Launch.Env[events.EnvDoor] = d.door, true, guest.DoorDir
	}
	if p.Resume != nil {
		s.Launch.Env[events.EnvTranscript] = filepath.Join(guest.MaterialDir, providers.MaterialTranscript)
	}
	if _, ok := c.Op.Material[handoff.Purpose]; ok {
		s.Handoff = true
		s.Launch.Env[handoff.EnvFile], s.Launch.Env[handoff.EnvInstance] = filepath.Join(guest.MaterialDir, handoff.Purpose), string(c.Op.Writer.Instance)
	}
	var k machine.Kept
	switch err := c.Dir.ReadJSON(fileFrom, &k); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		s.Restore = &machine.Restore{Kind: k.Checkpoint.Kind, SHA256: k.Checkpoint.SHA256, ByteLength: k.Checkpoint.ByteLength}
		if k.Checkpoint.Kind == "memory" && p.Sign() != nil {
			return nil, fault.New(fault.FailedPrecondition, "checkpoint %s is a memory, and what goes on from it shows no sign of readiness", events.Scrub(k.Checkpoint.ID))
		}
		if k.Hardware != nil && k.Hardware.Digest() != s.Hardware.Digest() {
			return nil, otherMachine(k.Checkpoint.ID)
		}
	}
	return s, nil
}

// hardware is the machine that a plan gets from what is packed.
func hardware(f files, ch choice) machine.Hardware {
	network := ch.network
	if network == "none" {
		network = ""
	}
	return machine.Hardware{
		Network: network,
		Machine: machine.Board, Accelerator: f.Accelerator, MemoryMiB: ch.memory, CPUs: ch.cpus, TSCKHz: f.TSCKHz,
		KernelSHA: f.KernelSHA, InitSHA: f.InitSHA, Version: f.Version,
	}
}

// TakesTranscript implements providers.TranscriptTaker.
func (d *Driver) TakesTranscript() int64 { return providers.MaxTranscript }

// TakesHandoff implements providers.Delegator: the hand-off goes to the guest's
// agent with the launch, is removed here before it is sent, and is the seat's to
// remove there.
func (d *Driver) TakesHandoff(context.Context) error { return nil }
