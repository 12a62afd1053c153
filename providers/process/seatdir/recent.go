//go:build linux

package seatdir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"berth/providers/process/identity"
)

// recent is what landed since the journal was saved, and was of this boot only:
// a pause and its end are states of processes, and a power cut that loses their
// entries has ended what was paused. Its file, one such value after another, is
// therefore written without a sync, and at its end: a file that is renamed over
// another has its data written out by some filesystems, as if it was synced. It
// outlives every process, and another boot does not believe it.
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
	b, err := json.Marshal(recent{BootID: boot, Operations: []Entry{e}})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(d.File(FileRecent), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(j.noted) // what is behind was not believed
	if err == nil {
		_, err = f.WriteAt(append(b, '\n'), j.noted)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	j.Set(e)
	j.noted += int64(len(b)) + 1
	return nil
}

// addRecent brings a loaded journal up to date. What a power cut left of the
// file, or of another boot, is nothing; of a value that a killed process left
// half written, nothing is believed, and what came before is.
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
	if err != nil || len(b) > maxFile {
		return err
	}
	for dec := json.NewDecoder(bytes.NewReader(b)); ; j.noted = dec.InputOffset() {
		var r recent
		if dec.Decode(&r) != nil || r.BootID != boot {
			return nil
		}
		for _, e := range r.Operations {
			if j.Find(e.Operation) == nil {
				j.Set(e)
			}
		}
	}
}

// dropRecent removes the file once the journal has all of it.
func (d Dir) dropRecent(j *Journal) error {
	if j.noted == 0 {
		return nil
	}
	j.noted = 0
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
