//go:build linux

package process

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// shellImage is an image layout with this host's shell and what it needs.
func shellImage(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	add := func(name, from string) {
		c, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := tw.WriteHeader(&tar.Header{Name: strings.TrimPrefix(name, "/"), Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(c))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write(c); err != nil {
			t.Fatal(err)
		}
	}
	const shell = "/bin/sh"
	add("tools/sh", shell)
	f, err := elf.Open(shell)
	if err != nil {
		t.Skipf("%s is not a program that this test can put into an image: %v", shell, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name, _ := io.ReadAll(p.Open())
			add(strings.TrimRight(string(name), "\x00"), strings.TrimRight(string(name), "\x00"))
		}
	}
	libs, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, lib := range libs {
		found := ""
		for _, dir := range []string{"/lib/*-linux-gnu", "/usr/lib/*-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"} {
			if m, _ := filepath.Glob(filepath.Join(dir, lib)); len(m) > 0 {
				found = m[0]
				break
			}
		}
		if found == "" {
			t.Skipf("library %s of %s is in none of the usual places", lib, shell)
		}
		add(found, found)
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return imageLayout(t, b.Bytes())
}

// imageLayout is an image layout with one layer.
func imageLayout(t *testing.T, tree []byte) string {
	t.Helper()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(tree)), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	cfg = cfg.DeepCopy()
	cfg.OS, cfg.Architecture, cfg.Config.Env = "linux", runtime.GOARCH, []string{"PATH=/tools"}
	if img, err = mutate.ConfigFile(img, cfg); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "layout")
	p, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = p.AppendImage(img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// An image is the seat's root, read-only, and nothing of the host is in it.
func TestASeatFromAnImage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.needIsolation()
	p := r.plan("")
	p.Image = events.Image{Kind: "oci", Reference: shellImage(t)}
	p.Command = []string{"sh", "-c", `echo path=$PATH; for d in /*; do echo "top $d"; done; (: > /x) 2>/dev/null && echo WRITABLE; : > $HOME/mine && echo "home works"; test -e /usr/bin && echo HOST; echo end; read wait`}
	pre, err := r.d.Preflight(r.context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if c, failed := pre.Failed(); failed {
		t.Fatalf("preflight: %+v", c)
	}
	for range 2 { // the second seat shares the tree
		id, _ := r.running(p)
		got := r.untilLog(id, "end\r\n")
		for _, want := range []string{"path=/tools\r", "top /tools\r", "home works"} {
			if !strings.Contains(got, want) {
				t.Errorf("missing %q in %q", want, got)
			}
		}
		if strings.Contains(got, "WRITABLE") || strings.Contains(got, "HOST") {
			t.Errorf("the seat is not confined to its image: %q", got)
		}
		j, err := r.d.Seat(id).LoadJournal()
		if err != nil || !strings.HasPrefix(j.Digest, "sha256:") {
			t.Errorf("the digest is not recorded: %q, %v", j.Digest, err)
		}
	}
	p.Command = []string{"not-in-the-image"}
	id := r.provisioned(p)
	if out := r.do(r.op(id, events.VerbStart)); out.Kind != providers.Refused || out.Fault.Code != fault.FailedPrecondition {
		t.Fatalf("a command that the image does not have: %+v", out)
	}
}
