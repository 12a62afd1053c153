//go:build linux

package seatdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"berth/providers/process/identity"
)

// recent is what landed since the journal was saved, and was of this boot only:
// a pause and its end are states of processes, and a power cut that loses their
// entries has ended what was paused. Its file is therefore replaced without a
// sync. It outlives every process, and another boot does not believe it.
type recent struct {
	BootID     string  `json:"bootId"`
	Operations []Entry `json:"operations"`
}

// Note adds an entry whose effect no power cut survives. j must have been loaded
// or saved under the lock that the caller holds, and may differ from what is on
// the disk by such entries only.
func (d Dir) Note(j *Journal, e Entry) error {
	boot, err := identity.BootID()
	if err != nil {
		return err
	}
	noted := append(slices.Clone(j.noted), e)
	b, err := json.Marshal(recent{BootID: boot, Operations: noted})
	if err != nil {
		return err
	}
	tmp := d.File(FileRecent + ".part")
	err = os.WriteFile(tmp, b, 0o600)
	if err == nil {
		err = os.Rename(tmp, d.File(FileRecent))
	}
	if err != nil {
		return errors.Join(err, removed(tmp))
	}
	j.Set(e)
	j.noted = noted
	return nil
}

// addRecent brings a loaded journal up to date. What a power cut left of the
// file, or of another boot, is nothing.
func (d Dir) addRecent(j *Journal) error {
	f, err := os.Open(d.File(FileRecent))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return err
	}
	boot, err := identity.BootID()
	if err != nil {
		return err
	}
	var r recent
	if len(b) > maxFile || json.Unmarshal(b, &r) != nil || r.BootID != boot {
		return nil
	}
	for _, e := range r.Operations {
		if j.Find(e.Operation) == nil {
			j.Set(e)
		}
	}
	j.noted = r.Operations
	return nil
}

// dropRecent removes the file once the journal has all of it.
func (d Dir) dropRecent(j *Journal) error {
	if len(j.noted) == 0 {
		return nil
	}
	j.noted = nil
	if err := removed(d.File(FileRecent)); err != nil {
		return fmt.Errorf("%s of %s: %w", FileRecent, filepath.Base(d.Path), err)
	}
	return nil
}

func removed(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
