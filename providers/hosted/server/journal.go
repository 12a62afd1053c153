package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/providers"
	"berth/providers/hosted/wire"
)

// record is one line of an environment's file.
type record struct {
	At     time.Time          `json:"at"`
	ID     events.OperationID `json:"id"`
	Verb   events.Verb        `json:"verb"`
	Digest string             `json:"digest"`
	Phase  phase              `json:"phase"`
	Answer *answer            `json:"answer,omitempty"` // of answered
}

type phase string

const (
	accepted phase = "accepted" // intent: the driver may hear of it from here
	fenced   phase = "fenced"   // excluded before it arrived: it will be refused
	answered phase = "answered" // by the driver, or by a proof
)

// answer is what became of an operation, once and for all.
type answer struct {
	Verdict  providers.Verdict `json:"verdict"` // landed or excluded
	Facts    *events.Facts     `json:"facts,omitempty"`
	Fault    *fault.Error      `json:"fault,omitempty"` // of a refusal
	Evidence string            `json:"evidence"`
}

// operation is the state of one id.
type operation struct {
	verb     events.Verb
	digest   string
	accepted bool
	fenced   bool
	answer   *answer
	running  chan struct{} // closed when the call that this process made is over
	why      *fault.Error  // what the driver said of a call that left everything open
}

// book is the journal of one environment. It is in memory while it is used.
type book struct {
	id    events.EnvironmentID
	path  string
	users int // guarded by the journal's lock
	stays atomic.Bool

	mu     sync.Mutex // guards all below
	loaded bool
	whole  int64 // bytes of whole lines in the file
	order  []*operation
	ops    map[events.OperationID]*operation
	broken error // a write whose end nobody knows
}

// journal is a directory of books.
type journal struct {
	dir    string
	lock   *durable.Lock
	mu     sync.Mutex
	open   map[events.EnvironmentID]*book
	closed bool
}

const bookSuffix = ".jsonl"

// openJournal takes the directory for this process; another one that has it
// is a conflict.
func openJournal(dir string) (*journal, error) {
	if err := durable.MakeDir(dir); err != nil {
		return nil, fault.New(fault.FailedPrecondition, "the journal directory %s can't be made: %s", dir, err)
	}
	l, err := durable.TryLock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fault.New(fault.FailedPrecondition, "the journal directory %s can't be used: %s", dir, fault.From(err).Message)
	}
	return &journal{dir: dir, lock: l, open: map[events.EnvironmentID]*book{}}, nil
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	return j.lock.Unlock()
}

// book gives the book of an environment, loaded; done puts it back.
func (j *journal) book(id events.EnvironmentID) (b *book, done func(), err error) {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil, nil, stopping()
	}
	if b = j.open[id]; b == nil {
		s := string(id)
		b = &book{id: id, path: filepath.Join(j.dir, s[len(s)-2:], s+bookSuffix), ops: map[events.OperationID]*operation{}}
		j.open[id] = b
	}
	b.users++
	j.mu.Unlock()
	done = func() { j.release(b) }
	b.mu.Lock()
	err = b.load()
	b.mu.Unlock()
	if err != nil {
		done()
		return nil, nil, fault.New(fault.Unavailable, "the journal of environment %s can't be read: %s", id, events.Scrub(err.Error()))
	}
	return b, done, nil
}

// hold keeps a book that is in use for one more user. The journal's lock is
// never held while a book's is taken, so this may be called under the latter.
func (j *journal) hold(b *book) {
	j.mu.Lock()
	defer j.mu.Unlock()
	b.users++
}

// release ends one use. A book with a broken write stays: what its file holds
// now may not be what a power cut leaves.
func (j *journal) release(b *book) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if b.users--; b.users == 0 && !b.stays.Load() {
		delete(j.open, b.id)
	}
}

// load reads the file. A last line without its end was torn by a crash: what
// it says was never acted on.
func (b *book) load() error {
	if b.loaded {
		return nil
	}
	raw, err := os.ReadFile(b.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b.whole = int64(bytes.LastIndexByte(raw, '\n') + 1)
	for line := range bytes.Lines(raw[:b.whole]) {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		b.fold(r)
	}
	b.loaded = true
	return nil
}

func (b *book) fold(r record) *operation {
	o := b.ops[r.ID]
	if o == nil {
		o = &operation{verb: r.Verb, digest: r.Digest}
		b.ops[r.ID], b.order = o, append(b.order, o)
	}
	switch r.Phase {
	case accepted:
		o.accepted = true
	case fenced:
		o.fenced = true
	case answered:
		if o.answer == nil {
			o.answer = r.Answer
		}
	}
	return o
}

// append makes a record durable and folds it. Called with the book's lock.
func (b *book) append(r record) (*operation, error) {
	if b.broken != nil {
		return nil, b.broken
	}
	if _, known := b.ops[r.ID]; !known && len(b.ops) >= wire.MaxOperations {
		return nil, fault.New(fault.ResourceExhausted, "environment %s had %d operations, the most that are kept", b.id, wire.MaxOperations)
	}
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fault.New(fault.Internal, "the journal of environment %s: %s", b.id, err)
	}
	if err := b.write(append(line, '\n')); err != nil {
		b.stays.Store(true)
		b.broken = fault.New(fault.Unavailable, "the journal of environment %s can't be written: %s; start the provider again when there is room", b.id, events.Scrub(err.Error()))
		return nil, b.broken
	}
	return b.fold(r), nil
}

func (b *book) write(line []byte) error {
	fresh := b.whole == 0
	if fresh {
		if err := durable.MakeDir(filepath.Dir(b.path)); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(b.path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(b.whole) // what a crash tore
	if err == nil {
		_, err = f.WriteAt(line, b.whole)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil && fresh {
		err = durable.SyncDir(filepath.Dir(b.path))
	}
	if err == nil {
		b.whole += int64(len(line))
	}
	return err
}

// environments lists those that have a book.
func (j *journal) environments() ([]events.EnvironmentID, error) {
	var ids []events.EnvironmentID
	err := filepath.WalkDir(j.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, ok := strings.CutSuffix(d.Name(), bookSuffix)
		if id, err := events.ParseEnvironmentID(name); ok && err == nil {
			ids = append(ids, id)
		}
		return nil
	})
	return ids, err
}

// last is the newest reference and custody, and whether the life is over.
// Called with the book's lock.
func (b *book) last() (ref string, custody *events.Custody, over bool) {
	for _, o := range b.order {
		if o.answer == nil || o.answer.Facts == nil {
			continue
		}
		f := o.answer.Facts
		if f.Ref != "" {
			ref = f.Ref
		}
		if f.Custody != nil {
			custody = f.Custody
		}
		over = over || o.verb == events.VerbDestroy
	}
	return ref, custody, over
}

// file finds an exported file in the answers: only what this environment
// exported can be read from it (R38, R87). Called with the book's lock.
func (b *book) file(id string) (events.File, bool) {
	for _, o := range b.order {
		if o.answer != nil && o.answer.Facts != nil && o.answer.Facts.File != nil && o.answer.Facts.File.ID == id {
			return *o.answer.Facts.File, true
		}
	}
	return events.File{}, false
}
