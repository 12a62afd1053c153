//go:build linux

package process

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"berth/events"
	"berth/providers/kept"
	"berth/providers/process/custodian"
	"berth/providers/process/seatdir"
	"berth/providers/seat"
)

// checkpoint captures the home of the seat, frozen for that time: a cold
// capture (decision 17). Memory is not in it.
func (d *Driver) checkpoint(ctx context.Context, c *seat.Call, id string) (events.Facts, error) {
	f, err := c.Facts(ctx)
	if err != nil {
		return f, err
	}
	release := func() {}
	if f.State == events.StateRunning {
		who, err := seat.ReadIdent(c.Dir)
		if err != nil {
			return f, err
		}
		if release, err = custodian.Hold(ctx, c.Dir, who.Custodian); err != nil {
			return f, err
		}
	}
	defer release()
	at := d.Now()
	n, sum, err := kept.Write(c.Captured(id), kept.MaxCapture, func(w io.Writer) error {
		return tarTree(ctx, w, c.Dir.File(seatdir.DirHome), c.J.IDBase)
	})
	if err != nil {
		return f, err
	}
	f.Checkpoint = &events.Checkpoint{ID: id, Kind: "cold", ByteLength: n, SHA256: sum, CapturedAt: at}
	return f, c.Dir.WriteJSON(seatdir.ManifestFile(id), seatdir.Kept{Operation: c.Op.ID, Checkpoint: f.Checkpoint})
}

// tarTree archives a tree in the order of its names, below `.`. What the seat
// placed in it can't lead out of it. Owners are as the seat sees them; sockets,
// pipes and devices are left out.
func tarTree(ctx context.Context, w io.Writer, dir string, idBase int) error {
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
		return tarEntry(ctx, tw, root, p, idBase)
	})
	if err != nil {
		return err
	}
	return tw.Close()
}

func tarEntry(ctx context.Context, tw *tar.Writer, root *os.Root, p string, idBase int) error {
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
	n, err := io.Copy(tw, kept.NewReader(ctx, io.LimitReader(f, h.Size)))
	if err == nil && n != h.Size {
		err = fmt.Errorf("%s became shorter while it was read", p)
	}
	return err
}
