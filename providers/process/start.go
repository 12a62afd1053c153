//go:build linux

package process

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/cgroup"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
	"berth/providers/process/stage"
)

// defaultPath is where a seat's commands are looked up.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// maxReport bounds what a custodian reports of its start, in bytes.
const maxReport = 64 << 10

// startSeat writes and syncs what is to be started, lets the lock go and
// starts a custodian, which takes the lock and looks whether it still may
// (decision 16). The custodian records the result, so that nothing is lost
// when this process dies from here on.
func (c *call) startSeat(ctx context.Context, release func()) providers.Outcome {
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
		return unknown(errors.New("the custodian's report is empty"))
	}
	if err := c.d.watches.add(c.op.Environment, *rep.Facts.Custody); err != nil && !errors.Is(err, identity.ErrGone) {
		return unknown(err)
	}
	return providers.DoneWith(*rep.Facts)
}

func (c *call) startOf(ctx context.Context) (seatdir.Start, error) {
	p := c.j.Plan
	ch, err := choices(p)
	if err != nil {
		return seatdir.Start{}, err
	}
	if len(p.Command) == 0 {
		return seatdir.Start{}, fault.New(fault.BadRequest, "environment %s has no command to start", c.op.Environment)
	}
	entries, err := os.ReadDir(c.dir.File(seatdir.DirMaterial))
	if err != nil {
		return seatdir.Start{}, err
	}
	s := seatdir.Start{Operation: c.op.ID, Fingerprint: seatdir.Fingerprint(c.op), IDBase: c.j.IDBase}
	s.Seat = seatdir.Seat{
		Isolated: ch.isolated, Network: ch.network, Hostname: cmp.Or(string(c.j.Alias), "seat"), Command: p.Command, Material: len(entries) > 0,
		Hide: append([]string{c.d.cfg.Dir}, c.d.cfg.Hide...),
		Env: map[string]string{
			"PATH": defaultPath, "HOME": stage.Home, "TERM": "xterm-256color",
			"BERTH_ENVIRONMENT": string(c.op.Environment), "BERTH_SEAT": string(c.j.Alias),
		},
	}
	if c.j.Path != "" {
		s.Seat.Env["PATH"] = c.j.Path
	}
	if c.j.Digest != "" {
		s.Seat.Image = filepath.Join("..", imagesDir, treeName(c.j), "rootfs")
	}
	material := stage.MaterialDir
	if !ch.isolated {
		s.Seat.Env["HOME"], material = c.dir.File(seatdir.DirHome), c.dir.File(seatdir.DirMaterial)
	}
	if s.Seat.Material {
		s.Seat.Env["BERTH_MATERIAL"] = material
	}
	if ch.limited {
		s.Group = cgroup.Group{Layout: c.d.probeHost(ctx).Groups, Name: "berth-" + string(c.op.Environment)}
		s.Limits = limitsOf(p.Resources)
	}
	return s, nil
}

// spawn starts a custodian in a session of its own and waits for its report.
// When ctx ends first, the custodian goes on: the journal will tell.
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
	cmd := exec.Command(d.cfg.Self, custodian.Role, dir.Path)
	cmd.Dir = "/"
	// Few threads and a small heap: one custodian lives per seat.
	cmd.Env = append([]string{"PATH=" + defaultPath, "GOMAXPROCS=2", "GOGC=50"}, d.roleEnv()...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return rep, fault.New(fault.FailedPrecondition, "starting a custodian: %s", err).WithOutcome(fault.Unknown)
	}
	pid := cmd.Process.Pid
	// Reaped by the watches when its pidfd says so: waiting would cost a
	// thread per custodian.
	_ = cmd.Process.Release()
	d.watches.child(pid)
	_ = w.Close()
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := bufio.NewReaderSize(r, maxReport).ReadSlice('\n')
	if err != nil {
		if ctx.Err() != nil {
			return rep, ctx.Err()
		}
		return rep, errors.New("the custodian ended without a report; its " + seatdir.FileStderr + " may say why")
	}
	return rep, json.Unmarshal(line, &rep)
}

func (d *Driver) roleEnv() []string {
	return append(append([]string{}, roleEnv...), d.cfg.SelfEnv...)
}
