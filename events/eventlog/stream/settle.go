package stream

import (
	"context"
	"fmt"

	"berth/events"
	"berth/events/eventlog"
)

// settle finds out by reading what became of commits: their records if they
// are stored, a conflict if a boundary moved without them, and neither if
// every boundary is still where it was (or the leader is behind, which on more
// than one replica says "later", never "lost").
func (l *Log) settle(ctx context.Context, cs []events.Commit) ([]events.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	rs := make([]events.Record, 0, len(cs))
	var conflict error
	for _, c := range cs {
		last, found, err := l.last(ctx, c.Boundary)
		if err != nil {
			return nil, l.unwritten(c.Boundary, err)
		}
		if found && last.Meta.ID == c.Meta.ID {
			rs = append(rs, last)
			continue
		}
		if !found || last.Sequence <= c.Expect {
			continue
		}
		// Ours may be stored and already followed by another.
		tail, err := l.load(ctx, c.Boundary, c.Expect)
		if err != nil {
			return nil, l.unwritten(c.Boundary, err)
		}
		if len(tail) == 0 || tail[len(tail)-1].Sequence < last.Sequence {
			return nil, l.gone(fmt.Sprintf("records of %s up to %d can't be read", c.Boundary, last.Sequence))
		}
		mine := false
		for _, r := range tail {
			if r.Meta.ID == c.Meta.ID {
				rs, mine = append(rs, r), true
			}
		}
		if !mine && conflict == nil {
			conflict = eventlog.Conflict(c.Boundary, c.Expect, last.Sequence)
		}
	}
	if len(rs) == len(cs) {
		return rs, l.whole(ctx, rs)
	}
	if len(rs) > 0 && conflict == nil {
		// A part of an atomic publish is no commit: those boundaries moved.
		c, r := commitOf(cs, rs[0]), rs[0]
		conflict = eventlog.Conflict(r.Boundary, c.Expect, r.Sequence)
	}
	return nil, conflict
}

func commitOf(cs []events.Commit, r events.Record) events.Commit {
	for _, c := range cs {
		if c.Boundary == r.Boundary {
			return c
		}
	}
	return events.Commit{}
}

// whole refuses records that are what a crash left of an atomic publish.
func (l *Log) whole(ctx context.Context, rs []events.Record) error {
	for _, r := range rs {
		if r.Batch == nil {
			continue
		}
		ok, err := l.complete(ctx, r)
		if err != nil {
			return l.unwritten(r.Boundary, err)
		}
		if !ok {
			return eventlog.Conflict(r.Boundary, r.Previous, r.Sequence)
		}
	}
	return nil
}

// complete says whether the atomic publish that r belongs to is all there.
func (l *Log) complete(ctx context.Context, r events.Record) (bool, error) {
	at := eventlog.LastMember(r)
	if at == r.Sequence {
		return true, nil
	}
	last, found, err := l.get(ctx, at)
	return err == nil && found && eventlog.SameBatch(last, r.Batch, r.Batch.Count-1), err
}
