// Package eventlog is the log: the one place where truth is. A commit is
// appended to a boundary by compare-and-append, and everything else is folded
// from it. The interface has two implementations, JetStream (package stream)
// and memory, held to one conformance suite (package logtest).
package eventlog

import (
	"context"

	"berth/events"
)

// Limits of the log, each refused with bad-request or resource-exhausted
// before anything is written.
const (
	MaxEventsPerCommit = 32
	MaxCommitBytes     = 512 << 10
	MaxBatch           = 64 // commits of one atomic publish
)

// Log is the total order of one space. Implementations are safe for
// concurrent use. Errors are *fault.Error:
//
//   - conflict, not-executed: the boundary moved; detail berth.log-conflict
//     names boundary, expected and actual sequence
//   - resource-exhausted, not-executed: the store is full; nothing is lost
//   - unavailable, unknown: whether the commit is stored could not be
//     established; the same commit (same Meta.ID) may be given again
//   - bad-request, not-executed: a limit or an unregistered event type
type Log interface {
	// Commit appends the events of c and returns the record once it is durable
	// (synced to disk). A commit whose Meta.ID is already the boundary's last
	// is answered with the stored record.
	Commit(ctx context.Context, c events.Commit) (events.Record, error)

	// CommitAll appends several commits on different boundaries atomically. It
	// is rare and costly (decision 3).
	CommitAll(ctx context.Context, cs []events.Commit) ([]events.Record, error)

	// Load returns the boundary's records after sequence `after`, oldest first,
	// read so that every commit acknowledged before the call is in it. Records
	// that can't be read have Broken set.
	Load(ctx context.Context, b events.Boundary, after uint64) ([]events.Record, error)

	// Follow calls fn for every durable record after sequence `after`, in
	// order, without gaps, until ctx ends (then it returns ctx.Err()) or fn
	// returns an error (then that). caughtUp, if not nil, is called once, when
	// all that was durable at the call has been given.
	Follow(ctx context.Context, after uint64, fn func(events.Record) error, caughtUp func()) error

	// Scan is Follow up to the durable tip at the time of the call, then nil.
	Scan(ctx context.Context, after uint64, fn func(events.Record) error) error

	// Tip is the last durable sequence, zero for an empty log.
	Tip(ctx context.Context) (uint64, error)
}
