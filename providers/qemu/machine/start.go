//go:build linux

package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"berth/events"
	"berth/providers/process/cgroup"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/guest"
	"berth/providers/qemu/wire"
)

// The names inside a machine's directory, beside those of package seatdir.
const (
	FileMonitor   = "qmp.sock"
	FileAgent     = "agent.sock"
	FileMigration = "migration.sock"
	fileLog       = "qemu.log"
	FileState     = "restore.state" // a memory checkpoint to begin from
	FileHome      = "restore.tar"   // a home to begin with
)

// TranslatedMiB bounds what QEMU keeps of translated code. What does not fit is
// translated again.
const TranslatedMiB = 128

// OverheadMiB is what a QEMU may use beside the guest's memory: its translated
// code, as much again for itself and the kernel that it loads, and a part of the
// guest's size for the tables by which that is found.
func OverheadMiB(memoryMiB int64) int64 { return 2*TranslatedMiB + memoryMiB/64 }

// maxThreads is how many threads one QEMU may have.
const maxThreads = 128

// Limits are what the control group of a machine is bounded to.
func (h Hardware) Limits() cgroup.Limits {
	return cgroup.Limits{
		CPUMicros: int64(h.CPUs) * cgroup.Period, MemoryBytes: (h.MemoryMiB + OverheadMiB(h.MemoryMiB)) << 20, PIDs: maxThreads,
	}
}

// GroupName is the name of the group of one start of a machine: a restore has
// two at a time.
func GroupName(d seatdir.Dir, op events.OperationID) string {
	return d.GroupName() + "-" + tag(op)
}

func tag(op events.OperationID) string {
	sum := sha256.Sum256([]byte(op))
	return hex.EncodeToString(sum[:4])
}

// Start is what a supervisor is to start, written and synced before the fork.
type Start struct {
	Operation   events.OperationID   `json:"operation"`
	Fingerprint string               `json:"fingerprint"`
	Environment events.EnvironmentID `json:"environment"`
	Hardware    Hardware             `json:"hardware"`
	Group       cgroup.Group         `json:"group"` // empty name: no control groups
	Limits      cgroup.Limits        `json:"limits"`
	QEMU        string               `json:"qemu"` // path of the program
	Kernel      string               `json:"kernel"`
	Initramfs   string               `json:"initramfs"`
	Hostname    string               `json:"hostname"`
	Network     string               `json:"network"`
	Launch      wire.Launch          `json:"launch"`
	SlotsDir    string               `json:"slotsDir"`          // where boots take turns
	Handoff     bool                 `json:"handoff,omitempty"` // its material goes in once, and is kept nowhere else (H8)
	Restore     *Restore             `json:"restore,omitempty"`
	// Replace says that this start takes the place of whatever holds the machine.
	Replace bool `json:"replace,omitempty"`
	// Beside says that the one in that place goes on until this one runs.
	Beside bool `json:"beside,omitempty"`
	// Memory says that the machine's memory may be asked for as a checkpoint: it
	// is then paused between two messages of its agent only.
	Memory bool `json:"memory,omitempty"`
	// Door is the directory of the manager's socket, which the guest's programs
	// find at a door of theirs; empty: they have none.
	Door string `json:"door,omitempty"`
	// Golden is where golden states are kept; empty: this start uses none.
	Golden string `json:"golden,omitempty"`
}

// Hardware is what the guest sees. A memory checkpoint only fits the same.
type Hardware struct {
	Machine     string `json:"machine"`
	Accelerator string `json:"accelerator"` // tcg or kvm
	MemoryMiB   int64  `json:"memoryMiB"`
	CPUs        int    `json:"cpus"`
	TSCKHz      int64  `json:"tscKHz"` // of the host's clock that the guest sees; zero: it has to find out
	KernelSHA   string `json:"kernelSha256"`
	InitSHA     string `json:"initramfsSha256"`
	Version     string `json:"qemuVersion"`
	Network     string `json:"network,omitempty"` // user; empty: no card
}

// Restore is a checkpoint to begin from. Its content is in File, a name in the
// machine's directory; empty: FileState or FileHome, by its kind.
type Restore struct {
	File       string `json:"file,omitempty"`
	Kind       string `json:"kind"` // memory or cold
	SHA256     string `json:"sha256"`
	ByteLength int64  `json:"byteLength"`
}

// The board: no legacy devices. The clock is kept, because the kernel waits
// seconds for one that is missing; ACPI is how it finds its virtio devices.
const Board = "microvm,acpi=on,pit=off,pic=off,rtc=on,isa-serial=off"

func (r Restore) file() string {
	switch {
	case r.File != "":
		return r.File
	case r.Kind == "memory":
		return FileState
	}
	return FileHome
}

// Digest names the hardware: equal digests restore each other's memory.
func (h Hardware) Digest() string {
	s := sha256.Sum256(fmt.Appendf(nil, "%+v", h)) // every field counts
	return hex.EncodeToString(s[:])
}

// commandLine is the kernel's. Without the TSC's rate the kernel measures it
// against a timer that this board does not have, and may hang.
func (h Hardware) commandLine() string {
	s := "reboot=t panic=-1 rdinit=" + guest.Init + " quiet loglevel=0 mitigations=off nokaslr selinux=0 apparmor=0 audit=0 " +
		"tsc=reliable cryptomgr.notests random.trust_cpu=on edd=off"
	if h.TSCKHz > 0 {
		s += fmt.Sprintf(" tsc_early_khz=%d lpj=%d", h.TSCKHz, h.TSCKHz*4)
	}
	if h.Network != "" {
		s += " " + guest.NetworkFlag
	}
	return s
}

// name is that of one of the files by which QEMU and its supervisor meet. Two
// that are there at a time have different ones.
func (s Start) name(file string) string {
	if !s.Beside {
		return file
	}
	return tag(s.Operation) + "." + file
}

// UUID is the machine's, by which a person finds its process.
func (s Start) UUID() string { return string(s.Environment) }

// Args is QEMU's command line. Sockets are relative: QEMU runs in the
// machine's directory, whose path may be longer than a socket's may be.
// Nothing in it is secret. incoming: the memory is streamed in, nothing boots.
func (s Start) Args(incoming bool) []string {
	h := s.Hardware
	cpu, accel := "max", h.Accelerator
	switch accel {
	case "kvm":
		cpu = "host"
	case "tcg":
		accel = fmt.Sprintf("tcg,tb-size=%d", TranslatedMiB)
	}
	args := []string{
		"-name", "berth-" + string(s.Environment), "-uuid", s.UUID(),
		"-M", h.Machine, "-accel", accel, "-cpu", cpu, "-m", fmt.Sprint(h.MemoryMiB), "-smp", fmt.Sprint(h.CPUs),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		"-kernel", s.Kernel, "-initrd", s.Initramfs, "-append", h.commandLine(),
		"-chardev", "socket,id=agent,path=" + s.name(FileAgent) + ",server=on,wait=off",
		"-device", "virtio-serial-device", "-device", "virtserialport,chardev=agent,name=" + guest.PortName,
		"-qmp", "unix:" + s.name(FileMonitor) + ",server=on,wait=off",
	}
	if h.Network != "" {
		args = append(args, "-netdev", "user,id=network,ipv6=off", "-device", "virtio-net-device,netdev=network")
	}
	if incoming {
		args = append(args, "-S", "-incoming", "unix:"+s.name(FileMigration))
	}
	return args
}
