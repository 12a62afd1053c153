//go:build linux

package process

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

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/internal/until"
	"berth/providers"
	"berth/providers/process/seatdir"
	"berth/providers/process/stage"
	"berth/providers/seat"
)

// restore puts the captured home together beside the one that the seat is in,
// and has a custodian exchange the two once the seat has ended. What it starts
// is what was started before.
func (d *Driver) restore(ctx context.Context, c *seat.Call, _ events.Checkpoint, file io.Reader) (any, error) {
	var s seatdir.Start
	if err := c.Dir.ReadJSON(seatdir.FileStart, &s); err != nil {
		return nil, err
	}
	if s.Seat.Handoff {
		return nil, fault.New(fault.FailedPrecondition, "environment %s began with a hand-off, which is taken once: it can't be started again", c.Op.Environment)
	}
	if err := c.MakeDir(seatdir.DirNext, 0o700); err != nil {
		return nil, err
	}
	if err := untar(ctx, until.Reader(ctx, file), c.Dir.File(seatdir.DirNext), c.J.IDBase); err != nil {
		return nil, fmt.Errorf("putting the home together: %w", err)
	}
	s.Operation, s.Fingerprint, s.Replace = c.Op.ID, seatdir.Fingerprint(c.Op), true
	return s, nil
}

// beginFrom fills the home of a new environment with the one that was captured.
// Done again after a crash, it begins with an empty one.
func (d *Driver) beginFrom(ctx context.Context, c *seat.Call, from providers.Origin) error {
	f, _, err := d.OpenCheckpoint(ctx, d.Seat(from.Environment), from.Checkpoint)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := c.Dir.Remove(seatdir.DirHome); err != nil {
		return err
	}
	if err := c.MakeDir(seatdir.DirHome, 0o700); err != nil {
		return err
	}
	if err := untar(ctx, until.Reader(ctx, f), c.Dir.File(seatdir.DirHome), c.J.IDBase); err != nil {
		return fmt.Errorf("putting the home together: %w", err)
	}
	return nil
}

// settleHome ends a restore that is not under way any more, by what the journal
// says of it.
func settleHome(c *seat.Call) error {
	var s seatdir.Start
	if err := c.Dir.ReadJSON(seatdir.FileStart, &s); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	e := c.J.Find(s.Operation)
	return c.Dir.SettleHome(e != nil && e.Standing == seatdir.Landed)
}

// untar is the other way round of tree.Pack: the tree is on the disk when it
// returns, so that no power cut can take from a home that counts as restored.
func untar(ctx context.Context, r io.Reader, dir string, idBase int) error {
	root, err := os.OpenRoot(dir) // no entry gets out of it, whatever links it holds
	if err != nil {
		return err
	}
	defer root.Close()
	var dirs []*tar.Header // a closed directory takes no files: they are finished last
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && h.Typeflag == tar.TypeDir {
			dirs = append(dirs, h)
		}
		if err == nil {
			err = untarEntry(root, tr, h, idBase)
		}
		if err != nil {
			return err
		}
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := finished(root, nameOf(dirs[i]), dirs[i], idBase); err != nil {
			return err
		}
	}
	return syncAll(dir)
}

func nameOf(h *tar.Header) string {
	if name := strings.TrimPrefix(path.Clean("/"+h.Name), "/"); name != "" {
		return name
	}
	return "."
}

func untarEntry(root *os.Root, r io.Reader, h *tar.Header, idBase int) error {
	name := nameOf(h)
	if !filepath.IsLocal(filepath.Clean(h.Name)) {
		return fmt.Errorf("entry %q leads out of the tree", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	case tar.TypeSymlink:
		if err := root.Symlink(h.Linkname, name); err != nil {
			return err
		}
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	default:
		return fmt.Errorf("entry %q is of kind %q, which no capture has", h.Name, h.Typeflag)
	}
	return finished(root, name, h, idBase)
}

// finished gives an entry its owner, its mode and its time, in this order: a
// change of owner takes bits of the mode away.
func finished(root *os.Root, name string, h *tar.Header, idBase int) error {
	if os.Geteuid() == 0 {
		if idBase != 0 && (h.Uid < 0 || h.Uid >= stage.IDCount || h.Gid < 0 || h.Gid >= stage.IDCount) {
			return fmt.Errorf("entry %q: owner %d:%d is outside the %d ids of a seat", h.Name, h.Uid, h.Gid, stage.IDCount)
		}
		if err := root.Lchown(name, idBase+h.Uid, idBase+h.Gid); err != nil {
			return err
		}
	}
	if h.Typeflag == tar.TypeSymlink {
		return nil
	}
	if err := root.Chmod(name, h.FileInfo().Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)); err != nil {
		return err
	}
	return root.Chtimes(name, h.ModTime, h.ModTime)
}

// syncAll syncs the filesystem that dir is on: a home has many small files.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
