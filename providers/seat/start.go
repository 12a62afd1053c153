//go:build linux

package seat

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/kept"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// maxReport bounds what a holder reports of its start, in bytes.
const maxReport = 64 << 10

// start writes and syncs what is to be started, lets the lock go and
// starts a holder, which takes the lock and looks whether it still may
// (decision 16). The holder records the result, so that nothing is lost
// when this process dies from here on.
func (c *Call) start(ctx context.Context, release func()) providers.Outcome {
	unknown := func(err error) providers.Outcome {
		return providers.UnknownWith(kept.Seen("start", c.Op.Environment, err))
	}
	if err := c.stageMaterial(); err != nil {
		return unknown(err)
	}
	s, err := c.d.kind.Start(ctx, c)
	if err != nil {
		return c.finish(events.Facts{}, err)
	}
	return c.hold(ctx, release, s)
}

// hold hands the seat over to a holder that begins as s says.
func (c *Call) hold(ctx context.Context, release func(), s any) providers.Outcome {
	unknown := func(err error) providers.Outcome {
		return providers.UnknownWith(kept.Seen(string(c.Op.Verb), c.Op.Environment, err))
	}
	dl, err := c.d.deadline(c.Dir, c.J)
	if err == nil && dl.At != nil {
		err = c.Dir.WriteBefore(seatdir.FileDeadline, dl)
	}
	if err == nil {
		err = c.Dir.WriteBefore(seatdir.FileStart, s)
	}
	if err == nil {
		err = c.record(seatdir.Entry{Standing: seatdir.Begun})
	}
	if err != nil {
		return unknown(err)
	}
	release()
	rep, err := c.d.Spawn(ctx, c.Dir)
	switch {
	case err != nil:
		return unknown(err)
	case rep.Fault != nil && rep.Fault.Outcome == fault.NotExecuted:
		return providers.RefusedWith(rep.Fault)
	case rep.Fault != nil:
		return unknown(rep.Fault)
	case rep.Facts == nil || rep.Facts.Custody == nil:
		return unknown(fmt.Errorf("the %s's report is empty", c.d.kind.Holder))
	}
	if err := c.d.watches.add(c.Op.Environment, *rep.Facts.Custody); err != nil && !errors.Is(err, identity.ErrGone) {
		return unknown(err)
	}
	if c.J.Plan.Sign() != nil {
		c.d.awaitSign(c.Dir, *rep.Facts.Custody)
	}
	return providers.DoneWith(*rep.Facts)
}

// Spawn starts a holder in a session of its own and waits for its report.
// When ctx ends first, the holder goes on: the journal will tell.
func (d *Base) Spawn(ctx context.Context, dir seatdir.Dir) (custodian.Report, error) {
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
	cmd := exec.Command(d.Self, d.kind.Role, dir.Path)
	cmd.Dir = "/"
	cmd.Env = slices.Concat(d.kind.Env, d.SelfEnv)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return rep, fault.New(fault.FailedPrecondition, "starting a %s: %s", d.kind.Holder, err).WithOutcome(fault.Unknown)
	}
	pid := cmd.Process.Pid
	// Reaped by the watches when its pidfd says so: waiting would cost a
	// thread for each.
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
		return rep, fmt.Errorf("the %s ended without a report; its %s may say why", d.kind.Holder, seatdir.FileStderr)
	}
	return rep, json.Unmarshal(line, &rep)
}

// NeedsCommand implements providers.Commander: nothing here has a command of
// its own, not even an image.
func (d *Base) NeedsCommand() bool { return true }
