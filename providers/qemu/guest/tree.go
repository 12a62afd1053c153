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
	"time"
)

// Pack archives the tree at dir in the order of its names, below `.`. Sockets,
// pipes and devices are left out. What is in the tree can't lead out of it.
func Pack(w io.Writer, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	tw := tar.NewWriter(w)
	err = fs.WalkDir(root.FS(), ".", func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return packEntry(tw, root, p)
	})
	if err != nil {
		return err
	}
	return tw.Close()
}

func packEntry(tw *tar.Writer, root *os.Root, p string) error {
	st, err := root.Lstat(p)
	if err != nil {
		return err
	}
	link := ""
	switch {
	case st.Mode()&fs.ModeSymlink != 0:
		if link, err = root.Readlink(p); err != nil {
			return err
		}
	case !st.Mode().IsRegular() && !st.IsDir():
		return nil
	}
	h, err := tar.FileInfoHeader(st, link)
	if err != nil {
		return err
	}
	h.Name, h.Uname, h.Gname = p, "", ""
	h.AccessTime, h.ChangeTime = time.Time{}, time.Time{}
	if st.IsDir() {
		h.Name += "/"
	}
	if err := tw.WriteHeader(h); err != nil || !st.Mode().IsRegular() {
		return err
	}
	f, err := root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(tw, io.LimitReader(f, h.Size))
	if err == nil && n != h.Size {
		err = fmt.Errorf("%s became shorter while it was read", p)
	}
	return err
}

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
