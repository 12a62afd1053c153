package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
	"berth/internal/durable"
)

// FileName is the checkpoint's name in a data directory.
const FileName = "checkpoint.json"

// maxFile is more than any checkpoint takes, in bytes.
const maxFile = 4096

// format is the major version of the file.
const format = 1

// verifyFor bounds a comparison; it reads one record.
const verifyFor = time.Minute

// Checkpoint is what is remembered.
type Checkpoint struct {
	Format int `json:"format"`
	// Stream and Created identify the stream: one that was deleted and made
	// again has another time.
	Stream  string    `json:"stream"`
	Created time.Time `json:"created"`
	// Sequence is the last durable one, Record the hash of that record, Chain
	// the running hash of every record up to it. An empty log has zero values.
	Sequence uint64      `json:"sequence"`
	Record   events.Hash `json:"record"`
	Chain    events.Hash `json:"chain"`
}

// Log is a log that can say which stream it is.
type Log interface {
	eventlog.Log
	Identity() (name string, created time.Time)
}

// Tracker follows the chain of a whole stream. It is not safe for concurrent use.
type Tracker struct {
	Sequence      uint64
	Record, Chain events.Hash
}

// Add takes the next record. One that does not follow is refused with internal.
func (t *Tracker) Add(r events.Record) error {
	if r.Sequence != t.Sequence+1 {
		return fault.New(fault.Internal, "record %d follows record %d: the log has a gap", r.Sequence, t.Sequence)
	}
	t.Sequence, t.Record, t.Chain = r.Sequence, r.Hash, events.ChainNext(t.Chain, r.Sequence, r.Hash)
	return nil
}

// Of is the checkpoint of a log at the tracker's place.
func (t *Tracker) Of(l Log) Checkpoint {
	name, created := l.Identity()
	return Checkpoint{Format: format, Stream: name, Created: created.UTC(), Sequence: t.Sequence, Record: t.Record, Chain: t.Chain}
}

// Read reads the checkpoint of a data directory; false if there is none. A
// file that can't be read or understood is an error, never "none".
func Read(dir string) (Checkpoint, bool, error) {
	path := filepath.Join(dir, FileName)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Checkpoint{}, false, nil
	}
	var c Checkpoint
	if err == nil && len(b) > maxFile {
		err = errors.New("it is too long")
	}
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err == nil && c.Format > format {
		return c, false, fault.New(fault.UnsupportedVersion, "%s has format %d; this program reads up to %d; use a newer berth", path, c.Format, format).WithDetail(fault.DetailNewerFormat)
	}
	if err == nil && (c.Format < 1 || c.Stream == "") {
		err = errors.New("it is not a checkpoint")
	}
	if err != nil {
		return c, false, fault.New(fault.FailedPrecondition, "%s can't be read: %s; restore it, or go on with --accept-history-loss", path, events.Scrub(err.Error())).WithDetail(fault.DetailLogLost)
	}
	return c, true, nil
}

// Write replaces the checkpoint of a data directory and returns when it is
// synced. A crash leaves the old one or the new one.
func Write(dir string, c Checkpoint) (err error) {
	defer func() {
		if err != nil {
			err = fault.New(fault.Unavailable, "the checkpoint in %s can't be written: %s", dir, events.Scrub(err.Error())).WithOutcome(fault.NotExecuted)
		}
	}()
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, FileName), append(b, '\n'), 0o600)
}

// Verify compares a log with what is remembered of it: the same stream, not
// shorter, and at the remembered sequence the same record. A difference is
// failed-precondition with detail berth.log-lost (exit code 12).
//
// A log that does not answer within verifyFor is refused with unavailable.
func Verify(ctx context.Context, c Checkpoint, l Log) (err error) {
	outer := ctx
	ctx, cancel := context.WithTimeout(outer, verifyFor)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil && outer.Err() == nil {
			err = fault.New(fault.Unavailable, "record %d of stream %s, the last that this data directory remembers, was not given within %s", c.Sequence, c.Stream, verifyFor).
				WithOutcome(fault.NotExecuted).WithHint("nothing was written; look at the NATS server, then start again")
		}
	}()
	name, created := l.Identity()
	tip, err := l.Tip(ctx)
	if err != nil {
		return err
	}
	lost := func(why string) error {
		return fault.New(fault.FailedPrecondition, "the log is not the one that this data directory remembers: %s; restore the newest backup of stream %s, or accept what is lost with --accept-history-loss REASON", why, c.Stream).
			WithDetail(fault.DetailLogLost, "stream", c.Stream, "remembered", strconv.FormatUint(c.Sequence, 10), "found", strconv.FormatUint(tip, 10))
	}
	switch {
	case name != c.Stream:
		return lost("it is stream " + name)
	case tip < c.Sequence:
		return lost("it ends at " + strconv.FormatUint(tip, 10) + ", before " + strconv.FormatUint(c.Sequence, 10))
	case !created.Equal(c.Created):
		return lost("the stream was created at " + created.UTC().Format(time.RFC3339) + ", not at " + c.Created.Format(time.RFC3339))
	case c.Sequence == 0:
		return nil
	}
	found := errors.New("found")
	var r events.Record
	err = l.Follow(ctx, c.Sequence-1, func(at events.Record) error { r = at; return found }, nil)
	if err != found {
		return err
	}
	if r.Hash != c.Record {
		return lost("record " + strconv.FormatUint(c.Sequence, 10) + " is another one")
	}
	return nil
}
