//go:build linux

package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"berth/internal/until"
)

// Unpack makes the image's root tree at store/<digest>/rootfs, once: a tree
// that is there is complete, because it is renamed into place. Files belong
// to base + their uid, when base is not zero. mountPoints are made in it.
// It returns the tree's path.
func (o *Opened) Unpack(ctx context.Context, store string, base, count int, mountPoints []string) (string, error) {
	name := fmt.Sprintf("%s-%d", strings.ReplaceAll(o.Digest, ":", "-"), base)
	tree := filepath.Join(store, name, "rootfs")
	if _, err := os.Stat(tree); err == nil {
		return tree, nil
	}
	if err := o.verifyLayers(ctx); err != nil {
		return "", unusable(o.Digest, err)
	}
	if err := os.MkdirAll(store, 0o711); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(store, ".unpack-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o711); err != nil {
		return "", err
	}
	u := unpacker{ctx: ctx, base: base, count: count}
	if err := u.unpack(o, filepath.Join(tmp, "rootfs"), mountPoints); err != nil {
		return "", unusable(o.Digest, err)
	}
	err = os.Rename(tmp, filepath.Join(store, name))
	if errors.Is(err, fs.ErrExist) || err != nil && isDir(tree) {
		return tree, nil // another seat was first
	}
	return tree, err
}

func isDir(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.IsDir()
}

type unpacker struct {
	ctx         context.Context
	base, count int
	root        *os.Root // no entry gets out of it, whatever links it holds
	entries     int
	bytes       int64
	dirs        []*tar.Header // modes are set last: a closed directory takes no files
}

func (u *unpacker) unpack(o *Opened, tree string, mountPoints []string) error {
	if err := os.Mkdir(tree, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	u.root = root
	rc := mutate.Extract(o.image)
	defer rc.Close()
	tr := tar.NewReader(until.Reader(u.ctx, rc))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := u.entry(h, tr); err != nil {
			return fmt.Errorf("entry %q: %w", h.Name, err)
		}
	}
	for _, p := range mountPoints {
		if err := root.MkdirAll(p, 0o755); err != nil {
			return fmt.Errorf("mount point %s: %w", p, err)
		}
	}
	if err := u.resolvConf(); err != nil {
		return err
	}
	for i := len(u.dirs) - 1; i >= 0; i-- {
		if err := u.own(clean(u.dirs[i].Name), u.dirs[i]); err != nil {
			return err
		}
	}
	return nil
}

// resolvConf leaves a place for the host's, for seats on its network.
func (u *unpacker) resolvConf() error {
	if err := u.root.MkdirAll("etc", 0o755); err != nil {
		return err
	}
	f, err := u.root.OpenFile("etc/resolv.conf", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err == nil {
		return f.Close()
	}
	return nil // the image has one
}

func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

func (u *unpacker) entry(h *tar.Header, r io.Reader) error {
	if u.entries++; u.entries > MaxEntries {
		return fmt.Errorf("more than %d entries", MaxEntries)
	}
	name := clean(h.Name)
	if name == "" {
		return nil
	}
	if dir := path.Dir(name); dir != "." {
		if err := u.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := u.root.MkdirAll(name, 0o755); err != nil {
			return err
		}
		u.dirs = append(u.dirs, h)
		return nil
	case tar.TypeReg:
		if u.bytes += h.Size; u.bytes > MaxUnpackedBytes {
			return fmt.Errorf("more than %d bytes unpacked", int64(MaxUnpackedBytes))
		}
		f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
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
	case tar.TypeSymlink:
		if err := u.root.Symlink(h.Linkname, name); err != nil {
			return err
		}
	case tar.TypeLink:
		return u.root.Link(clean(h.Linkname), name)
	default:
		return nil // devices and pipes: a seat has its own /dev
	}
	return u.own(name, h)
}

func (u *unpacker) own(name string, h *tar.Header) error {
	if u.base != 0 {
		uid, gid := h.Uid, h.Gid
		if uid < 0 || uid >= u.count || gid < 0 || gid >= u.count {
			return fmt.Errorf("owner %d:%d is outside the %d ids of a seat", uid, gid, u.count)
		}
		if err := u.root.Lchown(name, u.base+uid, u.base+gid); err != nil {
			return err
		}
	}
	if h.Typeflag == tar.TypeSymlink {
		return nil
	}
	return u.root.Chmod(name, fs.FileMode(h.Mode)&0o777)
}
