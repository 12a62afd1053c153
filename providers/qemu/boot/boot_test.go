package boot

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The whole of an archive, byte for byte: 110 bytes of header, name, padding.
func TestArchiveGolden(t *testing.T) {
	var b bytes.Buffer
	a := NewArchive(&b)
	a.File("/d/f", 0o644, []byte("hello"))
	a.Link("d/l", "f")
	a.Dir("d", 0o700) // there already
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"070701" + "00000001" + "000041ed" + "00000000" + "00000000" + "00000002" + "00000000" + "00000000" +
			"00000000" + "00000000" + "00000000" + "00000000" + "00000002" + "00000000" + "d\x00",
		"070701" + "00000002" + "000081a4" + "00000000" + "00000000" + "00000001" + "00000000" + "00000005" +
			"00000000" + "00000000" + "00000000" + "00000000" + "00000004" + "00000000" + "d/f\x00\x00\x00" + "hello\x00\x00\x00",
		"070701" + "00000003" + "0000a1ff" + "00000000" + "00000000" + "00000001" + "00000000" + "00000001" +
			"00000000" + "00000000" + "00000000" + "00000000" + "00000004" + "00000000" + "d/l\x00\x00\x00" + "f\x00\x00\x00",
		"070701" + "00000000" + "00000000" + "00000000" + "00000000" + "00000001" + "00000000" + "00000000" +
			"00000000" + "00000000" + "00000000" + "00000000" + "0000000b" + "00000000" + "TRAILER!!!\x00\x00\x00\x00",
	}, "")
	if b.String() != want {
		t.Errorf("got\n%q\nwant\n%q", b.String(), want)
	}
}

// bzImage is a synthetic kernel: a header, one setup sector and a payload.
func bzImage(payload []byte) []byte {
	b := make([]byte, 1024, 1024+len(payload)+16)
	copy(b[0x202:], "HdrS")
	b[0x1f1] = 1
	binary.LittleEndian.PutUint32(b[0x248:], 4) // the payload begins 4 bytes after the setup
	binary.LittleEndian.PutUint32(b[0x24c:], uint32(len(payload)))
	return append(append(b, "code"...), payload...)
}

func TestVmlinuxIsUnpacked(t *testing.T) {
	image := append([]byte("\x7fELF"), bytes.Repeat([]byte("kernel"), 1<<18)...)
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(image)))
	packed := map[string][]byte{}
	var b bytes.Buffer
	lw := lz4.NewWriter(&b)
	if err := lw.Apply(lz4.LegacyOption(true)); err != nil {
		t.Fatal(err)
	}
	_, _ = lw.Write(image)
	_ = lw.Close()
	packed["lz4"] = append(bytes.Clone(b.Bytes()), length...)
	b.Reset()
	gw := gzip.NewWriter(&b)
	_, _ = gw.Write(image)
	_ = gw.Close()
	packed["gzip"] = append(bytes.Clone(b.Bytes()), length...)
	zw, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed["zstd"] = append(zw.EncodeAll(image, nil), length...)
	for name, p := range packed {
		got, err := Vmlinux(bzImage(p))
		if err != nil || !bytes.Equal(got, image) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if got, err := Vmlinux(image); err != nil || !bytes.Equal(got, image) {
		t.Errorf("an ELF image: %v", err)
	}
}

func TestWhatIsNoKernelIsRefused(t *testing.T) {
	outside := bzImage([]byte("12345678"))
	binary.LittleEndian.PutUint32(outside[0x24c:], 1<<30)
	xz := bzImage([]byte("\xfd7zXZ\x00 and so on"))
	for name, b := range map[string][]byte{"empty": nil, "text": []byte(strings.Repeat("x", 4096)), "outside": outside, "xz": xz,
		"damaged": bzImage([]byte{0x1f, 0x8b, 0, 0, 0, 0, 0, 0, 0, 0}), "a broken stream": bzImage([]byte{0x02, 0x21, 0x4c, 0x18, 0xff, 0xff, 0, 0, 0, 0, 0, 0})} {
		if got, err := Vmlinux(b); err == nil {
			t.Errorf("%s: accepted as %d bytes", name, len(got))
		}
	}
}

func FuzzVmlinux(f *testing.F) {
	f.Add(bzImage([]byte("12345678")))
	f.Add(bzImage([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0, 0}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		_, _ = Vmlinux(b)
	})
}

func TestFindPrefersAKernelThatIsComplete(t *testing.T) {
	root := t.TempDir()
	put := func(name string) {
		t.Helper()
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("kernel/drivers/virtio/virtio.ko\nkernel/drivers/virtio/virtio_ring.ko\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Find(root); err == nil || !strings.Contains(err.Error(), "no kernel") {
		t.Errorf("without a kernel: %v", err)
	}
	put("boot/vmlinuz-9-cloud")
	if _, err := Find(root); err == nil || !strings.Contains(err.Error(), "9-cloud") {
		t.Errorf("without modules: %v", err)
	}
	put("boot/vmlinuz-6")
	put("lib/modules/6/modules.builtin")
	put("lib/modules/6/kernel/drivers/virtio/virtio_mmio.ko.zst")
	put("lib/modules/6/kernel/drivers/char/virtio_console.ko")
	k, err := Find(root)
	if err != nil || k.Release != "6" {
		t.Errorf("%+v %v", k, err)
	}
}

// A program without its debug information is the same program.
func TestStripKeepsWhatIsLoaded(t *testing.T) {
	if b := []byte("#!/bin/sh\n"); !bytes.Equal(Strip(b), b) {
		t.Error("a script was changed")
	}
	b := make([]byte, 64+56+100)
	copy(b, "\x7fELF\x02\x01")
	le := binary.LittleEndian
	le.PutUint64(b[32:], 64)
	le.PutUint64(b[40:], 180)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 1)
	le.PutUint64(b[64+8:], 120) // offset of the one segment
	le.PutUint64(b[64+32:], 40) // its length
	got := Strip(b)
	if len(got) != 160 || le.Uint64(got[40:]) != 0 || !bytes.Equal(got[120:], b[120:160]) {
		t.Errorf("%d bytes", len(got))
	}
	le.PutUint64(b[64+32:], 4000)
	if len(Strip(b)) != len(b) {
		t.Error("a damaged file was cut")
	}
}
