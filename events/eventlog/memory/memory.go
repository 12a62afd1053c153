package memory

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
)

// Log implements eventlog.Log. The zero value is not usable: see New. Records
// that it returns share their events; treat them as values that never change.
type Log struct {
	mu         sync.Mutex
	records    []*events.Record // never changed once they are stored
	room       []events.Record  // where the next records go: they are made many at a time
	bodies     [][]byte
	boundaries map[events.Boundary]*line
	newest     *line         // that was asked for last: a commit asks several times
	grown      chan struct{} // closed at the next append; nil if nobody waits for it
	full       bool
	echo       bool
	hooks      atomic.Pointer[Hooks]
}

// line is one boundary's records: indexes into Log.records, oldest first.
type line struct {
	boundary events.Boundary
	last     *events.Record
	at       []int
	loaded   []events.Record // the first of them in a row, as far as they were asked for
	odd      bool            // a reader may have to be told something that is not in a record
}

// Hooks are called by Commit and CommitAll, with the lock not held, for the
// simulation of failures; what they are given is not theirs to change. A nil hook does nothing.
type Hooks struct {
	// Before may return an error, which is returned and nothing is stored.
	Before func(cs []events.Commit) error
	// After may return an error, which is returned although all is stored: the
	// lost acknowledgement. Use fault.Unavailable, whose outcome is unknown.
	After func(rs []events.Record) error
}

// New is an empty log.
func New() *Log {
	l := &Log{boundaries: map[events.Boundary]*line{}}
	l.hooks.Store(&Hooks{})
	return l
}

// SetHooks replaces the hooks.
func (l *Log) SetHooks(h Hooks) { l.hooks.Store(&h) }

// SetFull makes every new commit fail with resource-exhausted, or ends that.
func (l *Log) SetFull(full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.full = full
}

// SetEcho has readers be given the events that were committed, instead of what
// their bytes say, or ends that. The bytes are made all the same: whoever does
// one thing on a log of each kind sees whether the codec lost something.
func (l *Log) SetEcho(echo bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.echo = echo
}

// Crash is a power cut and a restart: a new log that holds exactly what this
// one acknowledged or stored, with no hooks and room again. This one goes on
// for whoever still holds it, but the two no longer share anything.
func (l *Log) Crash() *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := New()
	n.records, n.bodies = slices.Clone(l.records), slices.Clone(l.bodies)
	for b, of := range l.boundaries {
		n.boundaries[b] = &line{boundary: b, last: of.last, at: slices.Clone(of.at), odd: of.odd}
	}
	return n
}

// AppendRaw stores any bytes on a boundary, as a stranger or a newer program
// might have, and returns their sequence.
func (l *Log) AppendRaw(b events.Boundary, body []byte) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	body = slices.Clone(body)
	sequence := uint64(len(l.records)) + 1
	l.append(events.ParseRecord(b, sequence, body), body)
	return sequence
}

// Body is the stored bytes of one record, nil if there is none. They are the
// log's own and must not be changed.
func (l *Log) Body(sequence uint64) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sequence == 0 || sequence > uint64(len(l.bodies)) {
		return nil
	}
	return l.bodies[sequence-1]
}

// Commit implements eventlog.Log.
func (l *Log) Commit(ctx context.Context, c events.Commit) (events.Record, error) {
	if err := eventlog.Check(c); err != nil {
		return events.Record{}, err
	}
	rs, err := l.commit(ctx, []events.Commit{c})
	if err != nil {
		return events.Record{}, err
	}
	return rs[0], nil
}

// CommitAll implements eventlog.Log.
func (l *Log) CommitAll(ctx context.Context, cs []events.Commit) ([]events.Record, error) {
	if err := eventlog.CheckBatch(cs); err != nil {
		return nil, err
	}
	return l.commit(ctx, cs)
}

func (l *Log) commit(ctx context.Context, cs []events.Commit) ([]events.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.Ended(err, "the commit on %s was not begun: %s", cs[0].Boundary, err).WithOutcome(fault.NotExecuted)
	}
	hooks := l.hooks.Load()
	if hooks.Before != nil {
		if err := hooks.Before(cs); err != nil {
			return nil, err
		}
	}
	rs, err := l.store(cs)
	if err != nil {
		return nil, err
	}
	if hooks.After != nil {
		if err := hooks.After(rs); err != nil {
			return nil, err
		}
	}
	return rs, nil
}

func (l *Log) store(cs []events.Commit) ([]events.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rs, ok := l.already(cs); ok {
		return rs, nil
	}
	bodies, hashes := make([][]byte, 0, 1), make([]events.Hash, 0, 1) // nearly always one
	for i := range cs {
		c, last := cs[i], l.last(cs[i].Boundary)
		if last.Sequence != c.Expect {
			return nil, eventlog.Conflict(c.Boundary, c.Expect, last.Sequence)
		}
		body, h, err := eventlog.Prepare(c, last.Hash, eventlog.BatchOf(cs, i))
		if err != nil {
			return nil, err
		}
		bodies, hashes = append(bodies, body), append(hashes, h)
	}
	if l.full {
		return nil, eventlog.Full(cs[0].Boundary)
	}
	l.makeRoom(len(cs))
	from := len(l.room)
	for i, c := range cs {
		l.append(l.record(c, eventlog.BatchOf(cs, i), bodies[i], hashes[i]), bodies[i])
	}
	return slices.Clip(l.room[from:]), nil
}

// record is what is stored of a commit that was encoded.
func (l *Log) record(c events.Commit, batch *events.Batch, body []byte, h events.Hash) events.Record {
	sequence := uint64(len(l.records)) + 1
	if !l.echo {
		return events.Reread(c.Boundary, sequence, body, h)
	}
	r := events.Record{Sequence: sequence, Previous: c.Expect, Boundary: c.Boundary, Meta: c.Meta, Events: slices.Clone(c.Events), Hash: h, Batch: batch}
	r.Meta.Time = events.MillisUTC(r.Meta.Time)
	r.Prior = l.last(c.Boundary).Hash
	return r
}

// roomFor is how many records are made at a time.
const roomFor = 32

// makeRoom has n records be next to each other. What is stored never moves.
func (l *Log) makeRoom(n int) {
	if cap(l.room)-len(l.room) < n {
		l.room = make([]events.Record, 0, max(n, roomFor))
	}
}

// already answers a commit that is stored: each id is its boundary's last.
func (l *Log) already(cs []events.Commit) ([]events.Record, bool) {
	for _, c := range cs {
		last := l.last(c.Boundary)
		if last.Meta.ID != c.Meta.ID || seen(l.records, int(last.Sequence)-1).Torn {
			return nil, false
		}
	}
	rs := make([]events.Record, len(cs))
	for i, c := range cs {
		rs[i] = *l.last(c.Boundary)
	}
	return rs, true
}

// last is the boundary's last record, one without a sequence if there is none.
func (l *Log) last(b events.Boundary) *events.Record {
	if of := l.line(b); of != nil {
		return of.last
	}
	return &events.Record{}
}

// line is a boundary's records, nil if there is none.
func (l *Log) line(b events.Boundary) *line {
	if of := l.newest; of != nil && of.boundary == b {
		return of
	}
	of := l.boundaries[b]
	if of != nil {
		l.newest = of
	}
	return of
}

func (l *Log) append(r events.Record, body []byte) {
	of := l.line(r.Boundary)
	if of == nil {
		of = &line{boundary: r.Boundary}
		l.boundaries[r.Boundary] = of
	} else if p := of.last; r.Previous != p.Sequence || r.Prior != p.Hash {
		of.odd = true // it does not follow from the one before it
	}
	of.odd = of.odd || r.Batch != nil // it may be torn
	of.at = append(of.at, len(l.records))
	l.makeRoom(1)
	l.room = append(l.room, r)
	of.last = &l.room[len(l.room)-1]
	l.records = append(l.records, of.last)
	l.bodies = append(l.bodies, body)
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
}
