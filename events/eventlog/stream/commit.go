package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
)

// TypeHeader lists the versioned types in a commit, for consumers that filter
// by headers.
const TypeHeader = "Berth-Type"

// The server's error codes that an append has to tell apart.
const (
	codeWrongLast         = 10071
	codeWrongLastInFlight = 10164
	codeDuplicateInFlight = 10158
	codeDuplicateInBatch  = 10201
	codeStoreFailed       = 10077
	codeBatchIncomplete   = 10176
	codeBatchesInflight   = 10210
	codeNoResources       = 10023
	codeNoStorage         = 10047
)

// Retries of a publish whose answer was lost, while the caller's context
// lasts. Each is the same publish, so at most one of them can be stored. Their
// pauses add up to 14 s: a cluster without a leader refuses at once, and an
// election takes up to 9 s.
const (
	maxAttempts  = 14
	firstBackoff = 20 * time.Millisecond
	maxBackoff   = 2 * time.Second
)

// pubAck is the server's answer to a publish.
type pubAck struct {
	Sequence  uint64    `json:"seq"`
	Duplicate bool      `json:"duplicate"`
	Error     *apiError `json:"error"`
}

type apiError struct {
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

// draft is a commit with its bytes.
type draft struct {
	commit events.Commit
	body   []byte
	batch  *events.Batch
}

// records begins to read the drafts as every reader will see them, and
// returns a function that gives the result for the sequence of the last. It
// takes as long as encoding them did, which is a good part of a commit, and
// the server is busy syncing meanwhile.
func records(ds []draft) func(last uint64) []events.Record {
	parse := func(last uint64) []events.Record {
		rs := make([]events.Record, len(ds))
		for i, d := range ds {
			rs[i] = events.ParseRecord(d.commit.Boundary, sequenceOf(i, len(ds), last), d.body)
		}
		return rs
	}
	early := make(chan []events.Record, 1)
	go func() { early <- parse(uint64(len(ds))) }()
	return func(last uint64) []events.Record {
		rs := <-early
		for i := range rs {
			if rs[i].Broken != nil {
				return parse(last) // what is said of it names the sequence
			}
			rs[i].Sequence = sequenceOf(i, len(rs), last)
		}
		return rs
	}
}

// sequenceOf is the sequence of member i of n, when the last has one: the
// server stores an atomic publish without gaps.
func sequenceOf(i, n int, last uint64) uint64 { return last - uint64(n-1-i) }

// Commit implements eventlog.Log.
func (l *Log) Commit(ctx context.Context, c events.Commit) (events.Record, error) {
	rs, err := l.commit(ctx, []events.Commit{c})
	if err != nil {
		return events.Record{}, err
	}
	return rs[0], nil
}

// CommitAll implements eventlog.Log. On one replica an atomic publish takes
// about 4 ms and is staged on disk by the server.
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
	ds, stored, err := l.draft(ctx, cs)
	if err == nil && stored == nil {
		stored, err = l.append(ctx, ds)
	}
	if err != nil {
		return nil, err
	}
	for _, r := range stored {
		l.heads.put(r)
	}
	if err := l.durable(ctx, stored[len(stored)-1].Sequence); err != nil {
		return nil, eventlog.Unsettled(cs[0].Boundary, "it is stored but not known to be synced: "+err.Error())
	}
	return stored, nil
}

// durable waits until a stored record can't be lost.
func (l *Log) durable(ctx context.Context, sequence uint64) error {
	if l.cfg.Barrier == nil {
		return nil
	}
	return l.cfg.Barrier.Wait(ctx, sequence)
}

// draft encodes the commits. If they are found to be stored already, it
// returns those records.
func (l *Log) draft(ctx context.Context, cs []events.Commit) ([]draft, []events.Record, error) {
	ds := make([]draft, len(cs))
	again := 0
	for i, c := range cs {
		if err := eventlog.Check(c); err != nil {
			return nil, nil, err
		}
		h, ok := l.heads.get(c.Boundary)
		if c.Expect != 0 && (!ok || h.sequence != c.Expect) {
			last, found, err := l.last(ctx, c.Boundary)
			switch {
			case err != nil:
				return nil, nil, l.unwritten(c.Boundary, err)
			case !found || last.Sequence != c.Expect:
				stored, err := l.settle(ctx, cs)
				if err == nil && stored == nil {
					err = l.ahead(c, last.Sequence)
				}
				return nil, stored, err
			}
			h = head{last.Sequence, last.Hash, last.Meta.ID}
			l.heads.put(last)
		}
		var prior events.Hash
		if c.Expect != 0 {
			prior = h.hash
		}
		if h.id == c.Meta.ID {
			again++
		}
		d := draft{commit: c, batch: eventlog.BatchOf(cs, i)}
		var err error
		if d.body, _, err = eventlog.Prepare(c, prior, d.batch); err != nil {
			return nil, nil, err
		}
		ds[i] = d
	}
	if again == len(cs) {
		stored, err := l.settle(ctx, cs)
		if err != nil || stored != nil {
			return nil, stored, err
		}
	}
	return ds, nil, nil
}

// ahead is the error of a commit that expects more than the leader has. One
// replica can't be behind; a new leader of several can, and that is never a
// lost race.
func (l *Log) ahead(c events.Commit, actual uint64) error {
	if l.replicas == 1 {
		return eventlog.Conflict(c.Boundary, c.Expect, actual)
	}
	return l.unwritten(c.Boundary, fmt.Errorf("the leader is at %d, behind %d; try again", actual, c.Expect))
}

// append publishes until the outcome is known, ctx ends, or the attempts are
// used up.
func (l *Log) append(ctx context.Context, ds []draft) ([]events.Record, error) {
	b, cs := ds[0].commit.Boundary, make([]events.Commit, len(ds))
	for i, d := range ds {
		cs[i] = d.commit
	}
	why, wait, read := "", firstBackoff, records(ds)
	for attempt := range maxAttempts {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return nil, eventlog.Unsettled(b, why+"; "+ctx.Err().Error())
			case <-time.After(wait):
			}
			wait = min(2*wait, maxBackoff)
		}
		ack, err := l.publish(ctx, ds, attempt)
		switch {
		case err != nil:
			why = err.Error()
		case ack.Error == nil && !ack.Duplicate:
			return read(ack.Sequence), nil
		case ack.Error != nil:
			why = ack.Error.Description
			if !slices.Contains([]int{codeWrongLast, codeWrongLastInFlight, codeDuplicateInFlight, codeDuplicateInBatch, codeStoreFailed, codeBatchIncomplete, codeBatchesInflight}, ack.Error.ErrCode) {
				return nil, l.refused(b, ack.Error)
			}
		}
		rs, err := l.settle(ctx, cs)
		if fault.CodeOf(err) == fault.Conflict || rs != nil {
			return rs, err
		}
		if fault.ExitOf(err) == fault.ExitLogLost && ack != nil {
			return nil, err // the server refused, and reading can't tell for what
		}
		if err != nil {
			why = err.Error()
		} else if ack != nil && ack.Error != nil && ack.Error.ErrCode == codeStoreFailed {
			return nil, l.refused(b, ack.Error) // and reading shows that nothing is stored
		}
	}
	return nil, eventlog.Unsettled(b, why)
}

// refused is the error of a publish that the server refused for another
// reason than a moved boundary: nothing was stored.
func (l *Log) refused(b events.Boundary, e *apiError) error {
	full := e.ErrCode == codeNoResources || e.ErrCode == codeNoStorage ||
		strings.Contains(e.Description, "maximum bytes") || strings.Contains(e.Description, "no space left")
	if full {
		return eventlog.Full(b)
	}
	return fault.New(fault.Unavailable, "stream %s refuses the commit on %s: %s (%d)", l.name, b, events.Scrub(e.Description), e.ErrCode).WithOutcome(fault.NotExecuted)
}

func (l *Log) unwritten(b events.Boundary, err error) error {
	return fault.New(fault.Unavailable, "%s can't be read to append to it: %s", b, events.Scrub(err.Error())).WithOutcome(fault.NotExecuted)
}

// publish sends the drafts once: one message, or an atomic publish.
func (l *Log) publish(ctx context.Context, ds []draft, attempt int) (*pubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	for i, d := range ds[:len(ds)-1] {
		if err := l.nc.PublishMsg(l.message(d, i, attempt, false)); err != nil {
			return nil, err
		}
	}
	last := len(ds) - 1
	resp, err := l.nc.RequestMsgWithContext(ctx, l.message(ds[last], last, attempt, last > 0))
	if err != nil {
		return nil, err
	}
	var ack pubAck
	if err := json.Unmarshal(resp.Data, &ack); err != nil {
		return nil, err
	}
	if ack.Error == nil && ack.Sequence == 0 {
		return nil, errors.New("the answer is not an acknowledgement")
	}
	return &ack, nil
}

func (l *Log) message(d draft, index, attempt int, commits bool) *nats.Msg {
	types := make([]string, len(d.commit.Events))
	for i, e := range d.commit.Events {
		types[i], _ = events.VersionedType(e) // Prepare has seen it
	}
	h := nats.Header{
		"Nats-Msg-Id":                         {string(d.commit.Meta.ID)},
		"Nats-Expected-Last-Subject-Sequence": {strconv.FormatUint(d.commit.Expect, 10)},
		"Nats-Expected-Stream":                {l.name},
		TypeHeader:                            {strings.Join(types, ",")},
	}
	if d.batch != nil {
		// The server's id of the batch is another for each attempt: it may still
		// hold half of the last one.
		h["Nats-Batch-Id"] = []string{d.batch.ID + "-" + strconv.Itoa(attempt)}
		h["Nats-Batch-Sequence"] = []string{strconv.Itoa(index + 1)}
	}
	if commits {
		h["Nats-Batch-Commit"] = []string{"1"}
	}
	return &nats.Msg{Subject: d.commit.Boundary.Subject(l.cfg.Space), Header: h, Data: d.body}
}
