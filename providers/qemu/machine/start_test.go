//go:build linux

package machine

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The command line by which machines start, whole: a change of it makes every
// memory checkpoint unusable.
func TestArgsGolden(t *testing.T) {
	s := Start{Environment: "0198c5a0-0000-7000-8000-000000000001", Kernel: "/b/vm,linux", Initramfs: "/b/i.cpio",
		Hardware: Hardware{Machine: Board, Accelerator: "tcg", MemoryMiB: 256, CPUs: 2, TSCKHz: 2300000}}
	want := `-name berth-0198c5a0-0000-7000-8000-000000000001 -uuid 0198c5a0-0000-7000-8000-000000000001 ` +
		`-M microvm,acpi=on,pit=off,pic=off,rtc=on,isa-serial=off -accel tcg,tb-size=128 -cpu max -m 256 -smp 2 ` +
		`-nodefaults -no-user-config -display none -no-reboot ` +
		`-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny ` +
		`-kernel /b/vm,linux -initrd /b/i.cpio -append reboot=t panic=-1 rdinit=/berth/init quiet loglevel=0 mitigations=off nokaslr ` +
		`selinux=0 apparmor=0 audit=0 tsc=reliable cryptomgr.notests random.trust_cpu=on edd=off tsc_early_khz=2300000 lpj=9200000 ` +
		`-chardev socket,id=agent,path=agent.sock,server=on,wait=off -device virtio-serial-device ` +
		`-device virtserialport,chardev=agent,name=berth -qmp unix:qmp.sock,server=on,wait=off`
	if got := strings.Join(s.Args(false), " "); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if slices.Contains(s.Args(false), "-incoming") {
		t.Error("a guest that boots waits for a memory")
	}
	if !slices.Contains(s.Args(true), "-incoming") {
		t.Error("a memory checkpoint has to be streamed in")
	}
}

// Only the same machine takes a memory checkpoint.
func TestHardwareDigest(t *testing.T) {
	h := Hardware{Machine: Board, Accelerator: "tcg", MemoryMiB: 256, CPUs: 1, KernelSHA: "k", InitSHA: "i", Version: "7.2.22"}
	seen := map[string]bool{h.Digest(): true}
	for _, change := range []func(*Hardware){
		func(h *Hardware) { h.MemoryMiB++ }, func(h *Hardware) { h.CPUs++ }, func(h *Hardware) { h.Version = "8" },
		func(h *Hardware) { h.KernelSHA = "x" }, func(h *Hardware) { h.InitSHA = "x" }, func(h *Hardware) { h.TSCKHz = 1 },
		func(h *Hardware) { h.Accelerator = "kvm" }, func(h *Hardware) { h.Machine = "q35" },
		func(h *Hardware) { h.Network = "user" },
	} {
		o := h
		change(&o)
		if seen[o.Digest()] {
			t.Errorf("%+v is taken for another machine", o)
		}
		seen[o.Digest()] = true
	}
}

// The digest does not move the place that the file is read from, and a file
// that can't be read has none.
func TestDigestBesideAReader(t *testing.T) {
	name := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(name, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := <-digest(f); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("the digest is %s", got)
	}
	if b, err := io.ReadAll(f); err != nil || string(b) != "abc" {
		t.Errorf("read beside it: %q %v", b, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-digest(f); len(got) == 64 {
		t.Errorf("a closed file has digest %s", got)
	}
}
