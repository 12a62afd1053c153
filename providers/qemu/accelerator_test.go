//go:build linux

package qemu

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A device that can be opened is not enough to try KVM (R79).
func TestKVMCandidates(t *testing.T) {
	device := filepath.Join(t.TempDir(), "kvm")
	if err := os.WriteFile(device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ cpuinfo, device, says string }{
		"intel":        {"processor: 0\nflags\t\t: fpu vmx sse\n", device, ""},
		"amd":          {"flags\t\t: fpu svm\n", device, ""},
		"neither":      {"flags\t\t: fpu hypervisor svm_lock\nbugs\t: svm\n", device, "neither"},
		"nothing said": {"", device, "neither"},
		"no device":    {"flags: vmx\n", device + "-gone", "can't be opened"},
	} {
		err := kvmCandidate([]byte(c.cpuinfo), c.device)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// KVM is used only after a machine has really booted with it, which is tried
// once while the host runs; until then host facts say that it is not usable
// (R79).
func TestTheAcceleratorIsTried(t *testing.T) {
	needMachines(t)
	r := newRig(t)
	f, err := r.d.packed(r.context())
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("BERTH_PROVE") != "" { // another boot is dear
		f.Accelerator = "tcg"
		if err := r.d.trial(r.context(), f); err != nil {
			t.Fatalf("a trial of what works here: %v", err)
		}
	}
	broken := f
	broken.QEMU = "/bin/false"
	if err := r.d.trial(r.context(), broken); err == nil || !strings.Contains(err.Error(), "no machine boots") {
		t.Errorf("a trial of what does not work: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(boots, ".trial-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("trials left %v", left)
	}
}

// A host whose KVM does not boot a machine is emulated on, and the verdict is
// kept for those that come after.
func TestAFailedTrialIsRemembered(t *testing.T) {
	needMachines(t)
	r := newRig(t)
	good, err := r.d.packed(r.context())
	if err != nil {
		t.Fatal(err)
	}
	good.QEMU = "/bin/false"
	good.KernelSHA = strings.Repeat("0", 64) // a verdict of this test's own
	r.d.candidate = func() error { return nil }
	p := &probe{}
	if a, err := r.d.accelerator(t.Context(), p, good); a != "tcg" || err != nil || p.kvm.Usable || p.kvm.Why == "" {
		t.Errorf("%q %v %+v", a, err, p.kvm)
	}
	good.QEMU = "/no/such/program"
	again := &probe{}
	if a, err := r.d.accelerator(t.Context(), again, good); a != "tcg" || err != nil || *again.kvm != *p.kvm {
		t.Errorf("the second question: %q %v %+v", a, err, again.kvm)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	good.KernelSHA = strings.Repeat("1", 64)
	if _, err := r.d.accelerator(ended, &probe{}, good); err == nil {
		t.Error("a trial that was cut off gave a verdict")
	}
	r.d.mu.Lock()
	r.d.probed.kvm = p.kvm
	r.d.mu.Unlock()
	if facts, err := r.d.HostFacts(r.context()); err != nil || facts.KVM.Usable {
		t.Errorf("host facts after a failed trial: %+v %v", facts.KVM, err)
	}
}

// A failed trial is believed for a while only, one that passed as long as the
// host runs; host facts say when it was held (R79).
func TestAFailedTrialIsHeldAgain(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	for name, c := range map[string]struct {
		age    time.Duration
		usable bool
		old    bool
	}{
		"young":          {tryAgain - 1, false, false},
		"old":            {tryAgain, false, true},
		"clock set back": {-1, false, true},
		"passed":         {100 * tryAgain, true, false},
	} {
		if v := (verdict{At: now.Add(-c.age), Usable: c.usable}); v.old(now) != c.old {
			t.Errorf("%s: %t", name, !c.old)
		}
	}
	d, err := New(Config{Dir: t.TempDir(), Self: "/bin/true", Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f := files{KernelSHA: strings.Repeat("0", 64), InitSHA: strings.Repeat("1", 64), Accelerator: "tcg"}
	d.probed = &probe{files: &f, kvm: &verdict{At: now.Add(-tryAgain), Why: "no memory"}}
	d.again(t.Context()) // /bin/true boots everything
	if p := d.probed; !p.kvm.Usable || !p.kvm.At.Equal(now) || p.files.Accelerator != "kvm" || f.Accelerator != "tcg" {
		t.Errorf("%+v %+v", p.kvm, p.files)
	}
	d.candidate = func() error { return nil }
	if v, err := d.judge(t.Context(), f); err != nil || v != *d.probed.kvm {
		t.Errorf("what was kept: %+v %v", v, err)
	}
	if facts := d.kvm(); !facts.TriedAt.Equal(now) {
		t.Errorf("%+v", facts)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	before := *d.probed.kvm
	if d.again(ended); *d.probed.kvm != before {
		t.Errorf("a trial that was cut off gave a verdict: %+v", d.probed.kvm)
	}
}
