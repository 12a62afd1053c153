package boot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Limits of what is read, in bytes.
const (
	maxKernel  = 256 << 20 // a bzImage
	maxVmlinux = 1 << 30   // what it unpacks to
	maxModule  = 32 << 20
)

// wanted are the modules that the agent's channel needs, in the order in which
// they must be loaded.
var wanted = []string{"virtio_ring", "virtio", "virtio_mmio", "virtio_console"}

// network are the modules of a network card, in their order. A kernel without
// them serves machines that have none.
var network = []string{"failover", "net_failover", "virtio_net"}

// Kernel is one of the host's kernels.
type Kernel struct {
	Release string // such as 6.1.0-57-cloud-amd64
	Image   string // path of the bzImage or vmlinux
	Modules string // directory of its modules
}

// Find looks for a kernel below root ("/" is the host): one with all of the
// modules that are needed. Kernels made for virtual machines come first, then
// the newest name. The error says what was missed.
func Find(root string) (Kernel, error) {
	names, err := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*"))
	if err != nil {
		return Kernel{}, err
	}
	slices.SortFunc(names, func(a, b string) int {
		if c, d := strings.Contains(a, "cloud"), strings.Contains(b, "cloud"); c != d {
			if c {
				return -1
			}
			return 1
		}
		return strings.Compare(b, a)
	})
	var why error
	for _, n := range names {
		k := Kernel{Release: strings.TrimPrefix(filepath.Base(n), "vmlinuz-"), Image: n}
		k.Modules = filepath.Join(root, "lib", "modules", k.Release)
		if err := k.complete(); err == nil {
			return k, nil
		} else if why == nil {
			why = fmt.Errorf("kernel %s: %w", k.Release, err)
		}
	}
	if why == nil {
		why = errors.New("no kernel is in /boot (Debian: the package linux-image-cloud-amd64)")
	}
	return Kernel{}, why
}

// Network says why machines of this kernel can't have a network; nil: they can.
func (k Kernel) Network() error {
	for _, m := range network {
		if _, _, err := k.find(m); err != nil {
			return fmt.Errorf("kernel %s: %w", k.Release, err)
		}
	}
	return nil
}

func (k Kernel) complete() error {
	f, err := os.Open(k.Image)
	if err != nil {
		return err
	}
	_ = f.Close()
	for _, m := range wanted {
		if _, _, err := k.find(m); err != nil {
			return err
		}
	}
	return nil
}

// find returns a module's path; built says that the kernel has it built in.
func (k Kernel) find(name string) (path string, built bool, err error) {
	for _, sub := range []string{"drivers/virtio", "drivers/char", "drivers/net", "net/core"} {
		for _, ext := range []string{".ko", ".ko.zst", ".ko.gz"} {
			p := filepath.Join(k.Modules, "kernel", sub, name+ext)
			if _, err := os.Stat(p); err == nil {
				return p, false, nil
			}
		}
	}
	b, err := os.ReadFile(filepath.Join(k.Modules, "modules.builtin"))
	if err == nil && bytes.Contains(b, []byte("/"+name+".ko\n")) {
		return "", true, nil
	}
	return "", false, fmt.Errorf("it has no module %s that can be read (plain, zst or gz)", name)
}

// module reads a module, unpacked.
func (k Kernel) module(name string) ([]byte, error) {
	p, built, err := k.find(name)
	if err != nil || built {
		return nil, err
	}
	b, err := readFile(p, maxModule)
	if err != nil {
		return nil, err
	}
	switch filepath.Ext(p) {
	case ".zst":
		return unzstd(b, maxModule)
	case ".gz":
		return ungzip(b, maxModule)
	}
	return b, nil
}

// Vmlinux unpacks a bzImage to the ELF image inside, which boots without
// unpacking itself: under emulation that saves a second of every boot. An ELF
// image is returned as it is.
func Vmlinux(image []byte) ([]byte, error) {
	if bytes.HasPrefix(image, []byte("\x7fELF")) {
		return image, nil
	}
	if len(image) < 0x260 || string(image[0x202:0x206]) != "HdrS" {
		return nil, errors.New("the kernel is neither a bzImage nor an ELF image")
	}
	setup := (int64(image[0x1f1]) + 1) * 512
	from := setup + int64(binary.LittleEndian.Uint32(image[0x248:]))
	n := int64(binary.LittleEndian.Uint32(image[0x24c:]))
	if from+n > int64(len(image)) || n < 8 {
		return nil, errors.New("the kernel's payload is not within its file")
	}
	b := image[from : from+n]
	var out []byte
	var err error
	switch {
	case bytes.HasPrefix(b, []byte{0x02, 0x21, 0x4c, 0x18}):
		out, err = readAll(lz4.NewReader(bytes.NewReader(b[:n-4])), maxVmlinux) // its length follows the stream
	case bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		out, err = unzstd(b[:n-4], maxVmlinux)
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		out, err = ungzip(b, maxVmlinux)
	default:
		return nil, fmt.Errorf("the kernel's payload begins with %x: lz4, zstd and gzip are known", b[:4])
	}
	if err == nil && !bytes.HasPrefix(out, []byte("\x7fELF")) {
		err = errors.New("it is no ELF image")
	}
	if err != nil {
		return nil, fmt.Errorf("unpacking the kernel: %w", err)
	}
	return out, nil
}

func unzstd(b []byte, limit int64) ([]byte, error) {
	d, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return readAll(d, limit)
}

func ungzip(b []byte, limit int64) ([]byte, error) {
	d, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	d.Multistream(false)
	return readAll(d, limit)
}

func readFile(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, limit)
}

func readAll(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return b, err
}
