package drill

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"berth/events/fault"
	"berth/internal/durable"
)

// The directory of a drill provider holds lock, snapshot.json and one
// journal-<generation>.jsonl. The journal holds what the provider was asked
// and when; the state is what the machine makes of it, after the snapshot of
// the same generation. A line without its newline was torn by a crash: that
// call never arrived.

// entry is one line of the journal: a call, or a new script.
type entry struct {
	At     time.Time `json:"at"`
	Call   *Call     `json:"call,omitempty"`
	Script *Script   `json:"script,omitempty"`
}

type snapshot struct {
	Format     int       `json:"format"`
	Generation uint64    `json:"generation"`
	At         time.Time `json:"at"` // of the last entry that is in it
	State      state     `json:"state"`
}

const (
	format       = 1
	snapshotName = "snapshot.json"
	// compactBytes is the least journal that is worth a new snapshot.
	compactBytes = 16 << 20
	// maxLine bounds one journal line when it is read back.
	maxLine = 4 << 20
)

func journalName(generation uint64) string { return fmt.Sprintf("journal-%d.jsonl", generation) }

// journal is the open journal of one generation. append and compact are
// called under the driver's lock; sync is not.
type journal struct {
	dir        string
	generation uint64
	size       int64
	snapBytes  int64
	broken     error
	appended   atomic.Int64 // bytes since the process began, of all generations

	syncing sync.Mutex // guards f against being replaced, and synced
	f       *os.File
	synced  int64
}

// replay reads a directory into a machine: the machine, the generation, how
// many bytes of its journal are whole lines, and the time of the last entry.
func replay(dir string) (m *Machine, snap snapshot, whole int64, err error) {
	m = NewMachine(Script{})
	raw, err := os.ReadFile(filepath.Join(dir, snapshotName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, snap, 0, unreadable(dir, err)
	default:
		if err := json.Unmarshal(raw, &snap); err != nil {
			return nil, snap, 0, unreadable(dir, fmt.Errorf("%s: %w", snapshotName, err))
		}
		if snap.Format != format {
			return nil, snap, 0, unreadable(dir, fmt.Errorf("%s has format %d, this program reads %d", snapshotName, snap.Format, format))
		}
		m.s = snap.State
		m.rebuild()
	}
	f, err := os.Open(filepath.Join(dir, journalName(snap.Generation)))
	if errors.Is(err, fs.ErrNotExist) {
		return m, snap, 0, nil
	}
	if err != nil {
		return nil, snap, 0, unreadable(dir, err)
	}
	defer f.Close()
	last, whole, err := replayLines(m, f)
	if err != nil {
		return nil, snap, 0, unreadable(dir, fmt.Errorf("%s: %w", journalName(snap.Generation), err))
	}
	if last.After(snap.At) {
		snap.At = last
	}
	return m, snap, whole, nil
}

func replayLines(m *Machine, r io.Reader) (last time.Time, whole int64, err error) {
	b := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := b.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return last, whole, nil // what is left has no newline: torn
		}
		if err != nil {
			return last, whole, err
		}
		if len(line) > maxLine {
			return last, whole, fmt.Errorf("line %d is longer than %d bytes", n, maxLine)
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return last, whole, fmt.Errorf("line %d: %w", n, err)
		}
		switch {
		case e.Call != nil:
			m.Apply(e.At, *e.Call)
		case e.Script != nil:
			m.SetScript(*e.Script)
		}
		whole += int64(len(line))
		last = e.At
	}
}

func unreadable(dir string, err error) error {
	return fault.New(fault.FailedPrecondition, "the drill directory %s can't be read: %s", dir, err).
		WithHint("nothing was changed; move the directory away to begin with an empty provider")
}

// openJournal opens the journal for appending and cuts a torn end off.
func openJournal(dir string, snap snapshot, whole int64) (*journal, error) {
	f, err := os.OpenFile(filepath.Join(dir, journalName(snap.Generation)), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unreadable(dir, err)
	}
	if err := errors.Join(f.Truncate(whole), sweep(dir, snap.Generation), durable.SyncDir(dir)); err != nil {
		f.Close()
		return nil, unreadable(dir, err)
	}
	return &journal{dir: dir, generation: snap.Generation, f: f, size: whole}, nil
}

// sweep removes journals of other generations, which a crash in compact left.
func sweep(dir string, generation uint64) error {
	names, err := filepath.Glob(filepath.Join(dir, "journal-*.jsonl"))
	if err = errors.Join(err, durable.Sweep(dir)); err != nil {
		return err
	}
	for _, n := range names {
		if filepath.Base(n) != journalName(generation) {
			err = errors.Join(err, os.Remove(n))
		}
	}
	return err
}

// append writes one line; it is durable only after sync(mark). A failure
// leaves the journal as it was, and the entry did not happen.
func (j *journal) append(e entry) (mark int64, err error) {
	if j.broken != nil {
		return 0, fault.New(fault.Unavailable, "the drill journal is broken: %s", j.broken).WithOutcome(fault.NotExecuted)
	}
	line, err := json.Marshal(e)
	if err != nil {
		return 0, fault.New(fault.BadRequest, "the call can't be journaled: %s", err)
	}
	line = append(line, '\n')
	if len(line) > maxLine {
		return 0, fault.New(fault.BadRequest, "the call has %d bytes, at most %d are accepted", len(line), maxLine)
	}
	if _, err := j.f.WriteAt(line, j.size); err != nil {
		if cut := j.f.Truncate(j.size); cut != nil {
			j.broken = cut
		}
		code := fault.Unavailable
		if errors.Is(err, syscall.ENOSPC) {
			code = fault.ResourceExhausted
		}
		return 0, fault.New(code, "the drill journal can't be written: %s", err).WithOutcome(fault.NotExecuted)
	}
	j.size += int64(len(line))
	return j.appended.Add(int64(len(line))), nil
}

// sync returns when everything up to mark is on disk. Callers that wait
// together share one fsync.
func (j *journal) sync(mark int64) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.synced >= mark {
		return nil
	}
	upTo := j.appended.Load()
	if err := j.f.Sync(); err != nil {
		return fault.New(fault.Unavailable, "the drill journal can't be synced: %s", err)
	}
	j.synced = upTo
	return nil
}

// full says that a new snapshot is worth its cost.
func (j *journal) full() bool { return j.size > compactBytes && j.size > 2*j.snapBytes }

// compact writes the machine's state as the snapshot of the next generation.
// The rename is the moment of change: before it the old generation counts,
// after it the new one. A failure changes nothing.
func (j *journal) compact(m *Machine, at time.Time) error {
	raw, err := json.Marshal(snapshot{Format: format, Generation: j.generation + 1, At: at, State: m.s})
	if err != nil {
		return err
	}
	j.syncing.Lock()
	defer j.syncing.Unlock()
	next, err := os.OpenFile(filepath.Join(j.dir, journalName(j.generation+1)), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(filepath.Join(j.dir, snapshotName), raw, 0o600); err != nil {
		next.Close()
		return err
	}
	old := filepath.Join(j.dir, journalName(j.generation))
	j.f.Close() // all of it is in the snapshot
	j.f, j.generation, j.size, j.snapBytes, j.synced = next, j.generation+1, 0, int64(len(raw)), j.appended.Load()
	return os.Remove(old)
}

func (j *journal) close() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	return errors.Join(j.f.Sync(), j.f.Close())
}

// ReadStatus is the truth that the directory of a provider holds, at now. It
// takes no lock, so that it works beside a running manager and without one.
func ReadStatus(dir string, now time.Time) (Status, error) {
	if _, err := os.Stat(dir); err != nil {
		return Status{}, fault.New(fault.NotFound, "there is no drill provider in %s", dir).
			WithHint("start one with: berth up --drill script.json")
	}
	// A compaction between reading snapshot and journal shows as another
	// generation afterwards; a few attempts always find a quiet moment.
	for attempt := 0; ; attempt++ {
		m, snap, _, err := replay(dir)
		if _, gone := os.Stat(filepath.Join(dir, journalName(snap.Generation))); gone == nil || attempt == 10 {
			if err != nil {
				return Status{}, err
			}
			return m.Status(now), nil
		}
	}
}
