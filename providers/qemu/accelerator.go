//go:build linux

package qemu

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/machine"
)

// kvmDevice is the device by which a program asks the kernel for machines.
const kvmDevice = "/dev/kvm"

// trialID names the machine of a trial; it is no environment.
const trialID = events.EnvironmentID("00000000-0000-7000-8000-000000000000")

// tryAgain is how long a failed trial is believed: a host may have been short
// of memory, or the module not been loaded. One that passed is believed as long
// as the host runs.
const tryAgain = time.Hour

// verdict is what a trial of KVM said, on this host since it was started.
type verdict struct {
	Boot   string    `json:"boot"` // boot id of the host
	At     time.Time `json:"at,omitzero"`
	Usable bool      `json:"usable"`
	Why    string    `json:"why,omitempty"` // not usable: the reason, for a person
}

// old is whether a trial is to be held again.
func (v verdict) old(now time.Time) bool {
	age := now.Sub(v.At)
	return !v.Usable && (age >= tryAgain || age < 0) // the clock may have been set
}

// kvmCandidate says why KVM need not even be tried; nil: only a trial tells.
// A processor without the extensions may show a device all the same, and even
// make a machine, on which no ordinary kernel ever boots.
func kvmCandidate(cpuinfo []byte, device string) error {
	found := false
	for line := range bytes.Lines(cpuinfo) {
		name, flags, _ := strings.Cut(string(line), ":")
		if strings.TrimSpace(name) != "flags" {
			continue
		}
		for _, f := range strings.Fields(flags) {
			found = found || f == "vmx" || f == "svm"
		}
		break
	}
	if !found {
		return fmt.Errorf("the processor shows neither vmx nor svm")
	}
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s can't be opened: %w", device, err)
	}
	return unix.Close(fd)
}

// candidate is kvmCandidate on this host.
func candidate() error {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return err
	}
	return kvmCandidate(b, kvmDevice)
}

// accelerator chooses by trial, never by the device node: a machine with KVM
// is really booted to its agent, once while this host runs (R79). Emulation
// serves otherwise. A verdict that is old serves too: nobody waits for another
// trial but the one of kvm. The caller holds d.mu.
func (d *Driver) accelerator(ctx context.Context, p *probe, f files) (string, error) {
	if p.kvm == nil {
		v, err := d.judge(ctx, f)
		if err != nil {
			return "", err
		}
		p.kvm = &v
	}
	if p.kvm.Usable {
		return "kvm", nil
	}
	return "tcg", nil
}

// judge reads an earlier trial's verdict, or holds the trial.
func (d *Driver) judge(ctx context.Context, f files) (verdict, error) {
	if err := d.candidate(); err != nil {
		return verdict{Why: err.Error()}, nil
	}
	boot, err := identity.BootID()
	if err != nil {
		return verdict{}, err
	}
	kept := d.keptVerdict(f)
	var v verdict
	if b, err := os.ReadFile(kept); err == nil && json.Unmarshal(b, &v) == nil && v.Boot == boot {
		return v, nil
	}
	return d.hold(ctx, f, boot, kept)
}

// hold holds a trial and keeps what it said.
func (d *Driver) hold(ctx context.Context, f files, boot, kept string) (verdict, error) {
	v := verdict{Boot: boot, At: events.MillisUTC(d.Now()), Usable: true}
	if err := d.try(ctx, f); err != nil {
		if ctx.Err() != nil { // the caller left: that says nothing of KVM
			return verdict{}, ctx.Err()
		}
		v.Usable, v.Why = false, events.Scrub(err.Error())
	}
	if b, err := json.Marshal(v); err == nil {
		_ = os.WriteFile(kept, b, 0o600) // a damaged one is not matched, and tried again
	}
	return v, nil
}

// again holds a trial beside everything else, after one that failed, and has
// later machines start with what it says. One that was cut off changes nothing.
func (d *Driver) again(ctx context.Context) {
	d.mu.Lock()
	p := d.probed
	if p == nil || p.files == nil {
		d.mu.Unlock()
		return
	}
	f := *p.files
	d.mu.Unlock()
	boot, err := identity.BootID()
	if err != nil {
		return
	}
	v, err := d.hold(ctx, f, boot, d.keptVerdict(f))
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.kvm = &v; v.Usable {
		f.Accelerator = "kvm"
		p.files = &f // never changed in place
	}
}

// keptVerdict is the file of the verdict about a kernel and an agent.
func (d *Driver) keptVerdict(f files) string {
	return filepath.Join(d.Dir, bootDir, "kvm-"+f.KernelSHA[:12]+f.InitSHA[:12]+".json")
}

// try boots a machine with KVM as the real ones are booted.
func (d *Driver) try(ctx context.Context, f files) error {
	f.Accelerator = "kvm"
	return d.trial(ctx, f)
}

// trial boots a machine to its agent in a process of its own, and ends it.
func (d *Driver) trial(ctx context.Context, f files) error {
	dir, err := os.MkdirTemp(filepath.Join(d.Dir, bootDir), ".trial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	start := machine.Start{Environment: trialID, QEMU: f.QEMU, Kernel: f.Kernel, Initramfs: f.Initramfs, Hardware: hardware(f, choice{memory: MinMemory, cpus: 1, network: "none"})}
	if err := (seatdir.Dir{Path: dir}).WriteJSON(seatdir.FileStart, start); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*machine.TrialPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.Self, machine.TrialRole, dir)
	cmd.Dir, cmd.Env = "/", append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, d.SelfEnv...)
	if out, err := cmd.CombinedOutput(); err != nil {
		said := strings.Join(strings.Fields(string(out[max(0, len(out)-500):])), " ")
		return fmt.Errorf("no machine boots with %s: %s", f.Accelerator, said)
	}
	return nil
}

// kvm is what host facts say: the device is there, and a machine has booted
// with it. Where only a trial can tell and none was held, or one failed some
// time ago, it is begun, and the next question is answered; a manager's start
// does not wait for it.
func (d *Driver) kvm() events.KVM {
	_, err := os.Stat(kvmDevice)
	facts := events.KVM{Present: err == nil}
	d.mu.Lock()
	p := d.probed
	trial := func(ctx context.Context) { _, _ = d.packed(ctx) } // keeps the verdict
	if p != nil && p.kvm != nil {
		facts.Usable, facts.TriedAt = facts.Present && p.kvm.Usable, p.kvm.At
		if trial = nil; p.kvm.old(d.Now()) {
			trial = d.again
		}
	}
	begin := facts.Present && p != nil && trial != nil && !d.trying && d.ctx.Err() == nil && d.candidate() == nil
	if begin {
		d.trying = true
		d.trials.Add(1)
	}
	d.mu.Unlock()
	if begin {
		go func() {
			defer d.trials.Done()
			trial(d.ctx)
			d.mu.Lock()
			d.trying = false
			d.mu.Unlock()
		}()
	}
	return facts
}
