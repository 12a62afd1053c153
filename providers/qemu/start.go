//go:build linux

package qemu

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/guest"
	"berth/providers/qemu/machine"
	"berth/providers/qemu/wire"
)

// guestPath is where a seat's commands are looked up in the guest.
const guestPath = "/usr/local/bin:/usr/bin:/bin"

// The terminal's size until somebody attaches and says otherwise.
const (
	defaultRows = 40
	defaultCols = 120
)

// maxReport bounds what a supervisor reports of its start, in bytes.
const maxReport = 64 << 10

// startMachine writes and syncs what is to be started, lets the lock go and
// starts a supervisor, which takes the lock and looks whether it still may
// (decision 16). The supervisor records the result, so that nothing is lost
// when this process dies from here on.
func (c *call) startMachine(ctx context.Context, release func()) providers.Outcome {
	unknown := func(err error) providers.Outcome {
		return providers.UnknownWith(seen("start", c.op.Environment, err))
	}
	if err := c.stageMaterial(); err != nil {
		return unknown(err)
	}
	s, err := c.startOf(ctx)
	if err != nil {
		return c.finish(events.Facts{}, err)
	}
	dl, err := c.d.deadline(c.dir, c.j)
	if err == nil && dl.At != nil {
		err = c.dir.WriteBefore(seatdir.FileDeadline, dl)
	}
	if err == nil {
		err = c.dir.WriteBefore(seatdir.FileStart, s)
	}
	if err == nil {
		err = c.record(seatdir.Entry{Standing: seatdir.Begun})
	}
	if err != nil {
		return unknown(err)
	}
	release()
	rep, err := c.d.spawn(ctx, c.dir)
	switch {
	case err != nil:
		return unknown(err)
	case rep.Fault != nil && rep.Fault.Outcome == fault.NotExecuted:
		return providers.RefusedWith(rep.Fault)
	case rep.Fault != nil:
		return unknown(rep.Fault)
	case rep.Facts == nil || rep.Facts.Custody == nil:
		return unknown(errors.New("the supervisor's report is empty"))
	}
	if err := c.d.watches.ensure(c.op.Environment, *rep.Facts.Custody); err != nil && !errors.Is(err, identity.ErrGone) {
		return unknown(err)
	}
	return providers.DoneWith(*rep.Facts)
}

func (c *call) startOf(ctx context.Context) (machine.Start, error) {
	p := c.j.Plan
	ch, err := choices(p)
	if err != nil {
		return machine.Start{}, err
	}
	if len(p.Command) == 0 {
		return machine.Start{}, fault.New(fault.BadRequest, "environment %s has no command to start", c.op.Environment)
	}
	if err := c.d.admit(ctx, c.op.Environment); err != nil {
		return machine.Start{}, err
	}
	files, err := c.d.packed(ctx)
	if err != nil {
		return machine.Start{}, err
	}
	hostname := cmp.Or(string(c.j.Alias), "seat")
	s := machine.Start{
		Operation: c.op.ID, Fingerprint: seatdir.Fingerprint(c.op), Environment: c.op.Environment,
		QEMU: files.QEMU, Kernel: files.Kernel, Initramfs: files.Initramfs, Hostname: hostname, Network: ch.network,
		Hardware: hardware(files, ch), SlotsDir: filepath.Join(c.d.cfg.Dir, bootDir),
		Launch: wire.Launch{Command: p.Command, Dir: guest.Home, Rows: defaultRows, Cols: defaultCols, Env: map[string]string{
			"PATH": guestPath, "HOME": guest.Home, "TERM": "xterm-256color",
			"BERTH_ENVIRONMENT": string(c.op.Environment), "BERTH_SEAT": string(c.j.Alias),
		}},
	}
	if _, err := os.Stat(c.dir.File(seatdir.DirMaterial)); err == nil {
		s.Launch.Env["BERTH_MATERIAL"] = guest.MaterialDir
	}
	var k machine.Kept
	switch err := c.dir.ReadJSON(fileFrom, &k); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return s, err
	default:
		s.Restore = &machine.Restore{Kind: k.Checkpoint.Kind, SHA256: k.Checkpoint.SHA256, ByteLength: k.Checkpoint.ByteLength}
		if k.Hardware != nil && k.Hardware.Digest() != s.Hardware.Digest() {
			return s, otherMachine(k.Checkpoint.ID)
		}
	}
	return s, nil
}

// hardware is the machine that a plan gets from what is packed.
func hardware(f files, ch choice) machine.Hardware {
	return machine.Hardware{
		Machine: machine.Board, Accelerator: "tcg", MemoryMiB: ch.memory, CPUs: ch.cpus, TSCKHz: f.TSCKHz,
		KernelSHA: f.KernelSHA, InitSHA: f.InitSHA, Version: f.Version,
	}
}

// admit refuses one machine more than may run at a time.
func (d *Driver) admit(ctx context.Context, self events.EnvironmentID) error {
	n := 0
	err := d.each(ctx, func(dir seatdir.Dir, _ *seatdir.Journal) {
		id, err := readIdent(dir)
		if err != nil || dir.ID == self {
			return
		}
		if h, err := identity.Open(id.Custodian); err == nil {
			h.Close()
			n++
		}
	})
	if err == nil && n >= MaxMachines {
		err = fault.New(fault.ResourceExhausted, "%d machines run on this host, the most that are admitted", MaxMachines)
	}
	return err
}

// spawn starts a supervisor in a session of its own and waits for its report.
// When ctx ends first, the supervisor goes on: the journal will tell.
func (d *Driver) spawn(ctx context.Context, dir seatdir.Dir) (custodian.Report, error) {
	var rep custodian.Report
	r, w, err := os.Pipe()
	if err != nil {
		return rep, err
	}
	defer r.Close()
	defer w.Close()
	log, err := os.OpenFile(dir.File(seatdir.FileStderr), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return rep, err
	}
	defer log.Close()
	cmd := exec.Command(d.cfg.Self, machine.Role, dir.Path)
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "GOMAXPROCS=2"}, d.cfg.SelfEnv...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return rep, fault.New(fault.FailedPrecondition, "starting a supervisor: %s", err).WithOutcome(fault.Unknown)
	}
	go func() { _ = cmd.Wait() }() // reaped whenever it ends; there are few
	_ = w.Close()
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := bufio.NewReaderSize(r, maxReport).ReadSlice('\n')
	if err != nil {
		if ctx.Err() != nil {
			return rep, ctx.Err()
		}
		return rep, fmt.Errorf("the supervisor ended without a report; its %s may say why", seatdir.FileStderr)
	}
	return rep, json.Unmarshal(line, &rep)
}
