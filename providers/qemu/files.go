//go:build linux

package qemu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"bytes"

	"berth/events"
	"berth/events/fault"
	"berth/providers/qemu/boot"
)

// files are what machines boot, and with what.
type files struct {
	QEMU      string `json:"qemu"`
	Version   string `json:"version"`
	TSCKHz    int64  `json:"tscKHz"`
	Kernel    string `json:"kernel"`
	Initramfs string `json:"initramfs"`
	KernelSHA string `json:"kernelSha256"`
	InitSHA   string `json:"initramfsSha256"`
	// Accelerator is kvm or tcg: by trial, so it is not kept with the rest.
	Accelerator string `json:"-"`
}

// probe is what this host has for machines. It is looked for once in the life
// of a driver, and again after a failure.
type probe struct {
	qemu, version string
	kernel        boot.Kernel
	tsc           int64
	files         *files   // once packed
	kvm           *verdict // once tried
}

// probePatience bounds the question to QEMU for its version.
const probePatience = 30 * time.Second

var versionRE = regexp.MustCompile(`version ([0-9]+\.[0-9]+\.[0-9]+)`)

// Available says why microVMs can't run on this host, as failed-precondition;
// nil: their parts are there.
func Available() error {
	_, err := look("", "/")
	return err
}

func look(qemu, root string) (*probe, error) {
	no := func(format string, args ...any) (*probe, error) {
		return nil, fault.New(fault.FailedPrecondition, format, args...).
			WithHint("install QEMU and a kernel made for virtual machines; on Debian: apt-get install qemu-system-x86 linux-image-cloud-amd64")
	}
	if runtime.GOARCH != "amd64" {
		return no("microVMs need amd64, and this is %s", runtime.GOARCH)
	}
	if qemu == "" {
		qemu = "qemu-system-x86_64"
	}
	path, err := exec.LookPath(qemu)
	if err != nil {
		return no("%s is not installed", filepath.Base(qemu))
	}
	k, err := boot.Find(root)
	if err != nil {
		return no("no usable kernel: %s", err)
	}
	return &probe{qemu: path, kernel: k, tsc: tscKHz()}, nil
}

// tscKHz is the rate of the clock that a guest sees under emulation, which is
// the host's; zero: not known.
func tscKHz() int64 {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return 0
	}
	return parseTSC(b)
}

func parseTSC(cpuinfo []byte) int64 {
	for line := range bytes.Lines(cpuinfo) {
		name, value, _ := strings.Cut(string(line), ":")
		if strings.TrimSpace(name) != "cpu MHz" {
			continue
		}
		if mhz, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && mhz > 0 {
			return int64(mhz * 1000)
		}
	}
	return 0
}

// look probes this host, once; the caller holds d.mu.
func (d *Driver) look(ctx context.Context) (*probe, error) {
	if d.probed != nil {
		return d.probed, nil
	}
	p, err := look(d.program, d.root)
	if err != nil {
		return nil, err
	}
	if p.version, err = d.version(ctx, p.qemu); err != nil {
		return nil, err
	}
	d.probed = p
	return p, nil
}

// version asks QEMU for its version, once for each QEMU: a manager's start
// should not wait for a program of that size to be loaded.
func (d *Driver) version(ctx context.Context, path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", fault.New(fault.FailedPrecondition, "%s", err)
	}
	sum := sha256.Sum256(fmt.Appendln(nil, path, st.Size(), st.ModTime().UnixNano()))
	kept := filepath.Join(d.Dir, bootDir, "version-"+hex.EncodeToString(sum[:8]))
	out, err := os.ReadFile(kept)
	if m := versionRE.FindSubmatch(out); err == nil && m != nil {
		return string(m[1]), nil
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	if out, err = exec.CommandContext(ctx, path, "--version").Output(); err != nil {
		return "", fault.New(fault.FailedPrecondition, "%s does not start: %s", filepath.Base(path), err)
	}
	m := versionRE.FindSubmatch(out)
	if m == nil {
		return "", fault.New(fault.FailedPrecondition, "%s does not say its version", filepath.Base(path))
	}
	_ = os.WriteFile(kept, m[0], 0o600) // a damaged one is not matched, and asked again
	return string(m[1]), nil
}

// probeHost is look under the driver's lock.
func (d *Driver) probeHost(ctx context.Context) (*probe, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.look(ctx)
}

// packed returns what machines boot, packing it when this program, the kernel
// or QEMU is another one than last time.
func (d *Driver) packed(ctx context.Context) (files, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.look(ctx)
	if err != nil {
		return files{}, err
	}
	if p.files != nil {
		return *p.files, nil
	}
	key, err := d.packKey(p)
	if err != nil {
		return files{}, err
	}
	index := filepath.Join(d.Dir, bootDir, "index-"+key+".json")
	f := files{QEMU: p.qemu, Version: p.version, TSCKHz: p.tsc}
	if b, err := os.ReadFile(index); err != nil || json.Unmarshal(b, &f) != nil || !there(f.Kernel) || !there(f.Initramfs) {
		if err := d.pack(p, &f); err != nil {
			return f, fault.New(fault.FailedPrecondition, "packing what machines boot: %s", events.Scrub(err.Error()))
		}
		b, err := json.Marshal(f)
		if err == nil {
			err = os.WriteFile(index, b, 0o600)
		}
		if err != nil {
			return f, fault.New(fault.Unavailable, "machines directory: %s", err)
		}
	}
	if f.Accelerator, err = d.accelerator(ctx, p, f); err != nil {
		return f, err
	}
	p.files = &f
	return f, nil
}

func there(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Size() > 0
}

// packKey names the inputs by path, length and time.
func (d *Driver) packKey(p *probe) (string, error) {
	h := sha256.New()
	for _, name := range []string{d.Self, p.kernel.Image, p.qemu} {
		st, err := os.Stat(name)
		if err != nil {
			return "", fault.New(fault.FailedPrecondition, "%s", err)
		}
		fmt.Fprintln(h, name, st.Size(), st.ModTime().UnixNano())
	}
	fmt.Fprintln(h, p.version, p.tsc, p.kernel.Modules)
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

func (d *Driver) pack(p *probe, f *files) (err error) {
	image, err := os.ReadFile(p.kernel.Image)
	if err != nil {
		return err
	}
	vm, err := boot.Vmlinux(image)
	if err != nil {
		return err
	}
	if f.Kernel, f.KernelSHA, err = d.keep("vmlinux", func(w io.Writer) error { _, err := w.Write(vm); return err }); err != nil {
		return err
	}
	f.Initramfs, f.InitSHA, err = d.keep("initramfs", func(w io.Writer) error { return boot.Write(w, p.kernel, d.Self) })
	return err
}

// keep writes a file that is named by its content.
func (d *Driver) keep(name string, fill func(io.Writer) error) (path, sum string, err error) {
	dir := filepath.Join(d.Dir, bootDir)
	t, err := os.CreateTemp(dir, ".part-*")
	if err != nil {
		return "", "", err
	}
	defer os.Remove(t.Name())
	h := sha256.New()
	err = fill(io.MultiWriter(t, h))
	if cerr := t.Close(); err == nil {
		err = cerr
	}
	sum = hex.EncodeToString(h.Sum(nil))
	path = filepath.Join(dir, name+"-"+sum[:16])
	if err == nil {
		err = os.Rename(t.Name(), path)
	}
	return path, sum, err
}
