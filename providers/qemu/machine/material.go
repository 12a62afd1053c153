//go:build linux

package machine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"berth/internal/tree"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/guest"
	"berth/providers/qemu/wire"
)

// equip gives a guest whose agent was greeted its material and its home. From
// here on the machine is this seat's and no other may begin in its place.
func (s *supervisor) equip(ctx context.Context) (err error) {
	s.given = true
	s.small, err = s.smallMaterial()
	if err == nil && s.small == nil {
		err = s.putMaterial(ctx)
	}
	if err == nil && s.start.Restore != nil {
		err = s.putHome(ctx, *s.start.Restore)
	}
	return err
}

// smallMaterial is what can go along with the launch, by name; nil: there is
// none, or too much for that. An archive of its own costs a guest that has just
// been loaded a tenth of a second, because it has never run that code before.
func (s *supervisor) smallMaterial() (map[string][]byte, error) {
	entries, err := os.ReadDir(s.Dir.File(seatdir.DirMaterial))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	files, total := map[string][]byte{}, int64(0)
	for _, e := range entries {
		st, err := e.Info()
		if err != nil {
			return nil, err
		}
		if total += st.Size(); !st.Mode().IsRegular() || total > wire.MaxFiles {
			return nil, nil
		}
		if files[e.Name()], err = os.ReadFile(s.Dir.File(seatdir.DirMaterial, e.Name())); err != nil {
			return nil, err
		}
		if s.start.Handoff {
			if err := os.Remove(s.Dir.File(seatdir.DirMaterial, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	return files, err
}

// putMaterial gives the guest its secrets (R54, R55); they are on no command
// line and in no journal.
func (s *supervisor) putMaterial(ctx context.Context) error {
	if ok, err := exists(s.Dir.File(seatdir.DirMaterial)); err != nil || !ok {
		return err
	}
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(tree.Pack(context.Background(), w, s.Dir.File(seatdir.DirMaterial), 0)) }()
	defer r.Close()
	return s.peer.call(ctx, wire.Frame{Do: wire.DoPut, Path: guest.MaterialDir}, r, nil)
}

func exists(p string) (bool, error) {
	_, err := os.Lstat(p)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (s *supervisor) putHome(ctx context.Context, want Restore) error {
	f, err := os.Open(s.Dir.File(want.file()))
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if err := s.peer.call(ctx, wire.Frame{Do: wire.DoPut, Path: guest.Home}, io.TeeReader(f, h), nil); err != nil {
		return err
	}
	return same(want, hex.EncodeToString(h.Sum(nil)))
}

func same(want Restore, sum string) error {
	if sum != want.SHA256 {
		return fmt.Errorf("the checkpoint is damaged: its SHA-256 is %s and should be %s", sum, want.SHA256)
	}
	return nil
}
