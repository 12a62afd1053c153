//go:build linux

// Package tree archives a directory tree that somebody else may have filled: the
// home of a seat, as it is kept in a checkpoint or goes into a virtual machine.
package tree

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"berth/internal/until"
)

// Pack archives the tree at dir in the order of its names, below `.`, until ctx
// ends. What is in the tree can't lead out of it. An owner is told less idBase,
// as whoever has that id for a root sees him. Sockets, pipes and devices are
// left out.
func Pack(ctx context.Context, w io.Writer, dir string, idBase int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	tw := tar.NewWriter(w)
	err = fs.WalkDir(root.FS(), ".", func(p string, de fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		return packEntry(ctx, tw, root, p, idBase)
	})
	if err != nil {
		return err
	}
	return tw.Close()
}

func packEntry(ctx context.Context, tw *tar.Writer, root *os.Root, p string, idBase int) error {
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
	if s, ok := st.Sys().(*syscall.Stat_t); ok && idBase != 0 {
		h.Uid, h.Gid = int(s.Uid)-idBase, int(s.Gid)-idBase
		if h.Uid < 0 || h.Gid < 0 {
			h.Uid, h.Gid = 0, 0
		}
	}
	if err := tw.WriteHeader(h); err != nil || !st.Mode().IsRegular() {
		return err
	}
	f, err := root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(tw, until.Reader(ctx, io.LimitReader(f, h.Size)))
	if err == nil && n != h.Size {
		err = fmt.Errorf("%s became shorter while it was read", p)
	}
	return err
}
