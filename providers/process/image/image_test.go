//go:build linux

package image

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"berth/events"
	"berth/events/fault"
)

func layer(t *testing.T, entries ...tar.Header) v1.Layer {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, h := range entries {
		body := []byte{}
		if h.Typeflag == tar.TypeReg {
			body = []byte("content of " + h.Name)
			h.Size = int64(len(body))
		}
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func imageOf(t *testing.T, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	cfg = cfg.DeepCopy()
	cfg.OS, cfg.Architecture, cfg.Config.Env = "linux", runtime.GOARCH, []string{"PATH=/tools:/bin"}
	if img, err = mutate.ConfigFile(img, cfg); err != nil {
		t.Fatal(err)
	}
	return img
}

func write(t *testing.T, imgs ...v1.Image) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range imgs {
		if err := p.AppendImage(i); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func reg(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644} }

func TestLayoutAndArchiveUnpackToTheSameTree(t *testing.T) {
	img := imageOf(t,
		layer(t, reg("etc/a"), reg("etc/b"), tar.Header{Name: "bin", Typeflag: tar.TypeDir, Mode: 0o555}, reg("bin/tool"),
			tar.Header{Name: "bin/link", Typeflag: tar.TypeSymlink, Linkname: "tool"}, tar.Header{Name: "bin/hard", Typeflag: tar.TypeLink, Linkname: "bin/tool"},
			tar.Header{Name: "dev/null", Typeflag: tar.TypeChar}),
		layer(t, reg("etc/.wh.b"), reg("etc/c")))
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "image.tar")
	tag, _ := name.NewTag("demo:latest")
	if err := tarball.WriteToFile(archive, tag, img); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{write(t, img), archive} {
		im := events.Image{Kind: "oci", Reference: ref}
		d, err := Describe(t.Context(), im)
		if err != nil || d.Image != im || d.Architecture != runtime.GOARCH || !strings.HasPrefix(d.Digest, "sha256:") {
			t.Fatalf("describing (R16-R20): %+v, %v", d, err)
		}
		if ref != archive && d.Digest != digest.String() {
			t.Fatalf("the digest is %s, want %s", d.Digest, digest)
		}
		o, err := Open(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		store := t.TempDir()
		tree, err := o.Unpack(t.Context(), store, 0, 1, []string{"proc", "home/seat"})
		if err != nil {
			t.Fatal(err)
		}
		again, err := o.Unpack(t.Context(), store, 0, 1, nil)
		if err != nil || again != tree {
			t.Fatalf("a second time: %s, %v", again, err)
		}
		for _, want := range []string{"etc/a", "etc/c", "bin/tool", "bin/link", "bin/hard", "proc", "home/seat", "etc/resolv.conf"} {
			if _, err := os.Stat(filepath.Join(tree, want)); err != nil {
				t.Errorf("%s: %v", want, err)
			}
		}
		for _, no := range []string{"etc/b", "dev/null"} {
			if _, err := os.Lstat(filepath.Join(tree, no)); err == nil {
				t.Errorf("%s is there", no)
			}
		}
		if o.Path != "/tools:/bin" {
			t.Errorf("PATH is %q", o.Path)
		}
		if left, _ := filepath.Glob(filepath.Join(store, ".unpack-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		// A read-only directory must not keep the test's own cleanup out.
		_ = os.Chmod(filepath.Join(tree, "bin"), 0o755)
	}
}

func TestNothingLeavesTheTree(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for what, l := range map[string]v1.Layer{
		"a link upwards":     layer(t, tar.Header{Name: "up", Typeflag: tar.TypeSymlink, Linkname: "../../../../../../../../" + filepath.Dir(outside)}, reg("up/outside")),
		"an absolute link":   layer(t, tar.Header{Name: "abs", Typeflag: tar.TypeSymlink, Linkname: filepath.Dir(outside)}, reg("abs/outside")),
		"a name upwards":     layer(t, reg("../../../../../../../.."+outside)),
		"a hard link beyond": layer(t, tar.Header{Name: "up", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "up/passwd"}),
	} {
		o, err := Open(t.Context(), write(t, imageOf(t, l)))
		if err != nil {
			t.Fatal(err)
		}
		// Dropped or refused: either is right, as long as nothing gets out.
		tree, err := o.Unpack(t.Context(), t.TempDir(), 0, 1, nil)
		if err != nil && fault.CodeOf(err) != fault.FailedPrecondition {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Lstat(outside); err == nil {
			t.Fatalf("%s wrote outside of the tree", what)
		}
		if st, err := os.Lstat(filepath.Join(tree, "h")); err == nil && tree != "" && st.Size() > 0 {
			t.Errorf("%s reached a file of the host", what)
		}
	}
}

// R14: path, length and digest of everything are verified.
func TestDamageIsFound(t *testing.T) {
	img := imageOf(t, layer(t, reg("a")))
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	blob := func(dir string, h v1.Hash) string { return filepath.Join(dir, "blobs", h.Algorithm, h.Hex) }
	for what, h := range map[string]v1.Hash{"manifest": digest, "configuration": m.Config.Digest, "layer": m.Layers[0].Digest} {
		dir := write(t, img)
		p := blob(dir, h)
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if what == "layer" {
			b[len(b)-1] ^= 1
		} else {
			b = bytes.Replace(b, []byte("linux"), []byte("Linux"), 1)
			b = bytes.Replace(b, []byte(`"size":`), []byte(`"size": `), 1)
		}
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
		o, err := Open(t.Context(), dir)
		if what == "layer" && err == nil {
			_, err = o.Unpack(t.Context(), t.TempDir(), 0, 1, nil)
		}
		if fault.CodeOf(err) != fault.FailedPrecondition {
			t.Errorf("a damaged %s: %v", what, err)
		}
	}
}

func TestReferencesThatAreRefused(t *testing.T) {
	two := write(t, imageOf(t, layer(t, reg("a"))), imageOf(t, layer(t, reg("b"))))
	junk := filepath.Join(t.TempDir(), "junk.tar")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for ref, code := range map[string]fault.Code{
		"relative/path": fault.BadRequest, "/not/../clean": fault.BadRequest, "": fault.BadRequest, "https://registry/x": fault.BadRequest,
		"/no/such/image": fault.NotFound, two: fault.FailedPrecondition, t.TempDir(): fault.FailedPrecondition, junk: fault.FailedPrecondition,
	} {
		if _, err := Describe(t.Context(), events.Image{Kind: "oci", Reference: ref}); fault.CodeOf(err) != code {
			t.Errorf("%q: %v, want %s", ref, err, code)
		}
	}
	if _, err := Describe(t.Context(), events.Image{Kind: "template", Reference: "debian"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("another template: %v", err)
	}
	if d, err := Describe(t.Context(), events.Image{Kind: "template", Reference: HostTemplate}); err != nil || d.Digest != "" {
		t.Errorf("the host template has no digest (R20): %+v, %v", d, err)
	}
}

func TestOwnersOutsideASeatsRangeAreRefused(t *testing.T) {
	h := reg("a")
	h.Uid = 7
	o, err := Open(t.Context(), write(t, imageOf(t, layer(t, h))))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Unpack(t.Context(), t.TempDir(), 100, 7, nil); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Fatalf("got %v", err)
	}
}
