//go:build linux

package guest

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Unpack writes a tar below dir, which is made. Names that lead out of it are
// an error; owners are kept where that is permitted.
func Unpack(r io.Reader, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			_, err = io.Copy(io.Discard, r)
			return err
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(root, tr, h); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

func unpackEntry(root *os.Root, r io.Reader, h *tar.Header) error {
	name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
	if !filepath.IsLocal(filepath.Clean(h.Name)) {
		return fmt.Errorf("the name leads out of the tree")
	}
	mode := fs.FileMode(h.Mode) & fs.ModePerm
	if name == "" {
		return root.Chmod(".", mode)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := root.Mkdir(name, mode); err != nil && !os.IsExist(err) {
			return err
		}
		if err := root.Chmod(name, mode); err != nil {
			return err
		}
	case tar.TypeSymlink:
		if err := root.Symlink(h.Linkname, name); err != nil {
			return err
		}
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	default:
		return nil
	}
	if os.Geteuid() == 0 {
		return root.Lchown(name, h.Uid, h.Gid)
	}
	return nil
}
