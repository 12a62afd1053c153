package eventlog

import (
	"strconv"

	"berth/events"
	"berth/events/fault"
)

// DetailConflict is the kind of detail that a conflict carries.
const DetailConflict = "berth.log-conflict"

// Prepare encodes a commit that passed Check, and refuses one that is too
// large. prior is the hash of the boundary's commit at c.Expect; batch is nil
// outside an atomic publish. Every implementation appends only what it made.
func Prepare(c events.Commit, prior events.Hash, batch *events.Batch) ([]byte, events.Hash, error) {
	body, h, err := events.Encode(c, prior, batch)
	if err != nil {
		return nil, events.Hash{}, err
	}
	if len(body) > MaxCommitBytes {
		return nil, events.Hash{}, fault.New(fault.BadRequest, "the commit on %s is %d bytes, more than %d; split the decision", c.Boundary, len(body), MaxCommitBytes)
	}
	return body, h, nil
}

// Check refuses a commit that no log would take: a boundary outside the
// grammar, an id that is not a UUIDv7, no events or too many.
func Check(c events.Commit) error {
	if _, err := events.ParseBoundary(string(c.Boundary)); err != nil {
		return err
	}
	if _, err := events.ParseEventID(string(c.Meta.ID)); err != nil {
		return err
	}
	if n := len(c.Events); n == 0 || n > MaxEventsPerCommit {
		return fault.New(fault.BadRequest, "a commit on %s holds %d events; 1 to %d are possible", c.Boundary, n, MaxEventsPerCommit)
	}
	return nil
}

// CheckBatch refuses an atomic publish that no log would take: too many
// commits, two of them on one boundary, or two with one id.
func CheckBatch(cs []events.Commit) error {
	if n := len(cs); n == 0 || n > MaxBatch {
		return fault.New(fault.BadRequest, "an atomic publish of %d commits; 1 to %d are possible", n, MaxBatch)
	}
	boundaries := make(map[events.Boundary]bool, len(cs))
	ids := make(map[events.EventID]bool, len(cs))
	for _, c := range cs {
		if err := Check(c); err != nil {
			return err
		}
		if boundaries[c.Boundary] {
			return fault.New(fault.BadRequest, "an atomic publish has two commits on %s; put their events into one", c.Boundary)
		}
		if ids[c.Meta.ID] {
			return fault.New(fault.BadRequest, "an atomic publish uses the id %s twice", c.Meta.ID)
		}
		boundaries[c.Boundary], ids[c.Meta.ID] = true, true
	}
	return nil
}

// BatchOf is what ties member i of an atomic publish together with the others
// (decision 3). A single commit has none. The id is the first member's.
func BatchOf(cs []events.Commit, i int) *events.Batch {
	if len(cs) < 2 {
		return nil
	}
	b := &events.Batch{ID: string(cs[0].Meta.ID), Index: i, Count: len(cs)}
	for _, c := range cs {
		b.Boundaries = append(b.Boundaries, c.Boundary)
	}
	return b
}

// Conflict is the refusal of a commit whose boundary moved on.
func Conflict(b events.Boundary, expected, actual uint64) error {
	return fault.New(fault.Conflict, "%s moved: expected sequence %d, found %d; load it and decide again", b, expected, actual).
		WithDetail(DetailConflict, "boundary", string(b),
			"expected", strconv.FormatUint(expected, 10), "actual", strconv.FormatUint(actual, 10))
}

// Full is the refusal of a commit that the store has no room for.
func Full(b events.Boundary) error {
	return fault.New(fault.ResourceExhausted, "the log is full: nothing of the commit on %s was stored and nothing was lost; raise the log's size limit or free the disk", b).
		WithDetail("berth.log-full")
}

// Unsettled says that it could not be established whether a commit is stored.
func Unsettled(b events.Boundary, why string) error {
	return fault.New(fault.Unavailable, "whether the commit on %s is stored could not be established: %s; give the same commit again", b, events.Scrub(why))
}
