//go:build linux

package tree

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// What is in the tree can't lead out of it, and what is no file, directory or
// link is left out.
func TestPackKeepsToTheTree(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.WriteFile(at("b"), []byte("content"), 0o640), os.Mkdir(at("a"), 0o700), os.Symlink("/etc/passwd", at("a/out")), syscall.Mkfifo(at("pipe"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Pack(t.Context(), &b, dir, 0); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.Name+h.Linkname)
	}
	if want := []string{"./", "a/", "a/out/etc/passwd", "b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A capture that nobody waits for ends.
func TestPackEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Pack(ctx, io.Discard, t.TempDir(), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("it went on: %v", err)
	}
}
