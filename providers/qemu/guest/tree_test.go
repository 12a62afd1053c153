//go:build linux

package guest

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"berth/internal/tree"
)

func TestTreesComeBackAsTheyWere(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "made")
	for name, b := range map[string]string{"a": "one", "d/e": "two"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(b), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../etc/passwd", filepath.Join(from, "out")); err != nil {
		t.Fatal(err)
	}
	var one, two bytes.Buffer
	if err := tree.Pack(context.Background(), &one, from, 0); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(bytes.NewReader(one.Bytes()), to); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "d/e")); string(b) != "two" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	if l, err := os.Readlink(filepath.Join(to, "out")); l != "../../etc/passwd" || err != nil {
		t.Errorf("%q %v", l, err)
	}
	if err := tree.Pack(context.Background(), &two, to, 0); err != nil || two.Len() != one.Len() {
		t.Errorf("packed again: %d bytes, were %d: %v", two.Len(), one.Len(), err)
	}
}

// What a seat put into its home can't write outside of it when it is put into
// another guest.
func TestUnpackStaysInside(t *testing.T) {
	for name, hs := range map[string][]tar.Header{
		"dots":      {{Name: "../x", Typeflag: tar.TypeReg, Mode: 0o600}},
		"a symlink": {{Name: "l", Linkname: "..", Typeflag: tar.TypeSymlink}, {Name: "l/x", Typeflag: tar.TypeReg, Mode: 0o600}},
	} {
		top := t.TempDir()
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range hs {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := Unpack(&b, filepath.Join(top, "in")); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := os.Lstat(filepath.Join(top, "x")); err == nil {
			t.Errorf("%s: a file was written outside", name)
		}
	}
}

// R54, R56: material is for its owner alone, and stays in its directory.
func TestFilesOfALaunchStayInTheirDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := writeFiles(dir, map[string][]byte{"key": []byte("one"), "cert.pem": []byte("two")}); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(dir, "key"))
	if err != nil || st.Mode() != 0o600 || st.Size() != 3 {
		t.Errorf("%v %v", st, err)
	}
	for _, name := range []string{"", ".", "..", "../out", "a/b", "/etc/out"} {
		if err := writeFiles(dir, map[string][]byte{name: nil}); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v %v", left, err)
	}
}
