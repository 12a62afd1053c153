package server

import (
	"container/list"
	"context"
	"sync"
	"time"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
	"berth/providers/hosted/wire"
)

const (
	// maxIdle is how many environments stay folded while nobody asks about
	// them. What is kept may be old: each append compares.
	maxIdle = 64
	// maxRaces is how often a decision is made again because its environment
	// moved meanwhile, as another server on the same log moves it.
	maxRaces = 16
	// logFor bounds one use of the log. It goes on when a request is cut: an
	// accepted operation is better known than guessed at.
	logFor = 30 * time.Second
)

// call is a call to the driver that this process makes.
type call struct {
	done chan struct{}
	why  *fault.Error // what the driver said of one that left everything open; read after done
}

// book is the journal of one environment: its boundary, folded.
type book struct {
	users int           // guarded by the journal's lock
	place *list.Element // among the idle; guarded by the journal's lock

	mu    sync.Mutex // guards all below
	fresh bool       // everything that this process appended is folded
	*ledger
	calls map[events.OperationID]*call
}

// journal is the log by environment.
type journal struct {
	log  eventlog.Log
	meta func(events.OperationID) events.Meta
	note func(events.EnvironmentID, standing) // after each append

	mu     sync.Mutex
	open   map[events.EnvironmentID]*book
	idle   *list.List // books without users, the last used first
	closed bool
}

func openJournal(log eventlog.Log, meta func(events.OperationID) events.Meta, note func(events.EnvironmentID, standing)) *journal {
	return &journal{log: log, meta: meta, note: note, open: map[events.EnvironmentID]*book{}, idle: list.New()}
}

// close refuses further use. The log stays its owner's.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
}

// book gives the book of an environment, folded; done puts it back. One with a
// record that can't be read is refused with unavailable, and no other is.
func (j *journal) book(id events.EnvironmentID) (b *book, done func(), err error) {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil, nil, stopping()
	}
	if b = j.open[id]; b == nil {
		b = &book{ledger: newLedger(id), calls: map[events.OperationID]*call{}}
		j.open[id] = b
	}
	if b.users++; b.place != nil {
		j.idle.Remove(b.place)
		b.place = nil
	}
	j.mu.Unlock()
	done = func() { j.release(b) }
	b.mu.Lock()
	if !b.fresh {
		err = j.read(b)
	}
	if err == nil && b.broken != nil {
		err = b.broken
	}
	b.mu.Unlock()
	if err != nil {
		done()
		return nil, nil, fault.New(fault.Unavailable, "the journal of environment %s can't be read: %s", id, fault.From(err).Message)
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

// release ends one use.
func (j *journal) release(b *book) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if b.users--; b.users > 0 {
		return
	}
	b.place = j.idle.PushFront(b)
	if j.idle.Len() > maxIdle {
		old := j.idle.Remove(j.idle.Back()).(*book)
		old.place = nil
		delete(j.open, old.id)
	}
}

// read folds what the log has more of a book. Called with the book's lock.
func (j *journal) read(b *book) error {
	ctx, cancel := context.WithTimeout(context.Background(), logFor)
	defer cancel()
	rs, err := j.log.Load(ctx, events.ProviderBoundary(b.id), b.sequence)
	if err != nil {
		return err
	}
	for _, r := range rs {
		b.apply(r)
	}
	b.fresh = true
	return nil
}

// decide appends what f makes of the book, or nothing, by compare-and-append
// (law 3): where the environment moved meanwhile, f is asked again about what
// it is now. A new operation beyond the limit is refused with
// resource-exhausted. After an error whatever was appended may come to be
// there: the book is read again before it is used. Called with the book's lock.
func (j *journal) decide(b *book, f func() events.Event) error {
	for range maxRaces {
		if !b.fresh {
			if err := j.read(b); err != nil {
				return err
			}
		}
		if b.broken != nil {
			return b.broken
		}
		e := f()
		if e == nil {
			return nil
		}
		id := subject(e)
		if b.ops[id] == nil && len(b.ops) >= wire.MaxOperations {
			return fault.New(fault.ResourceExhausted, "environment %s had %d operations, the most that are kept", b.id, wire.MaxOperations)
		}
		r, err := j.commit(events.Commit{Boundary: events.ProviderBoundary(b.id), Expect: b.sequence, Meta: j.meta(id), Events: []events.Event{e}})
		if err == nil {
			b.apply(r)
			j.note(b.id, b.standing)
			return nil
		}
		if b.fresh = false; fault.CodeOf(err) != fault.Conflict {
			return err
		}
	}
	return fault.New(fault.Unavailable, "environment %s moved %d times while one decision was made", b.id, maxRaces).WithOutcome(fault.NotExecuted)
}

func (j *journal) commit(c events.Commit) (events.Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), logFor)
	defer cancel()
	return j.log.Commit(ctx, c)
}

// living reads the whole log for the environments that may live. One with a
// record that can't be read is not among them: nothing is decided about it.
func (j *journal) living(ctx context.Context) (map[events.EnvironmentID]standing, error) {
	all, unread := map[events.EnvironmentID]standing{}, map[events.EnvironmentID]bool{}
	err := j.log.Scan(ctx, 0, func(r events.Record) error {
		id, ok := r.Boundary.Served()
		if !ok || r.Torn || unread[id] {
			return nil
		}
		if r.Broken != nil {
			unread[id] = true
			delete(all, id)
			return nil
		}
		s := all[id]
		for _, e := range r.Events {
			s.apply(e)
		}
		if all[id] = s; s.over {
			delete(all, id) // what comes after the end binds nothing anew
		}
		return nil
	})
	return all, err
}
