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

// verdict is what a trial of KVM said, on this host since it was started.
type verdict struct {
	Boot   string `json:"boot"` // boot id of the host
	Usable bool   `json:"usable"`
	Why    string `json:"why,omitempty"` // not usable: the reason, for a person
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
// serves otherwise. The caller holds d.mu.
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
	kept := filepath.Join(d.Dir, bootDir, "kvm-"+f.KernelSHA[:12]+f.InitSHA[:12]+".json")
	var v verdict
	if b, err := os.ReadFile(kept); err == nil && json.Unmarshal(b, &v) == nil && v.Boot == boot {
		return v, nil
	}
	v = verdict{Boot: boot, Usable: true}
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
// with it. Where only a trial can tell and none was held, it is begun, and the
// next question is answered; a manager's start does not wait for it.
func (d *Driver) kvm() events.KVM {
	_, err := os.Stat(kvmDevice)
	facts := events.KVM{Present: err == nil}
	d.mu.Lock()
	p := d.probed
	if p != nil && p.kvm != nil {
		facts.Usable = facts.Present && p.kvm.Usable
	}
	begin := facts.Present && p != nil && p.kvm == nil && !d.trying && d.ctx.Err() == nil && d.candidate() == nil
	if begin {
		d.trying = true
		d.trials.Add(1)
	}
	d.mu.Unlock()
	if begin {
		go func() {
			defer d.trials.Done()
			_, _ = d.packed(d.ctx) // keeps the verdict
			d.mu.Lock()
			d.trying = false
			d.mu.Unlock()
		}()
	}
	return facts
}
