package stream

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"berth/events/fault"
)

// gapPatience is how long a record that must be there is waited for before the
// leader is asked whether it has it.
const gapPatience = 2 * time.Second

// remedy of a log that is missing or lost records.
const remedy = "nothing was written: restore the newest backup of the server's files, or move them away and go on without history with --init-space --accept-history-loss REASON"

// uncut refuses a stream that lost records: nothing deletes any (accept), so
// the first is 1 and none is missing up to the last that the server knows of.
// It reads the server's own count and no record.
func (l *Log) uncut(s jetstream.StreamState) error {
	switch {
	case s.LastSeq == 0:
		return nil
	case s.Msgs == 0:
		return l.gone(fmt.Sprintf("records 1 to %d are missing, which is all of it", s.LastSeq))
	case s.FirstSeq > 1:
		return l.gone(fmt.Sprintf("records 1 to %d are missing", s.FirstSeq-1))
	case s.Msgs < s.LastSeq:
		return l.gone(fmt.Sprintf("%d of its %d records are missing", s.LastSeq-s.Msgs, s.LastSeq))
	}
	return nil
}

// watch asks for a record that is known to exist and does not come: a consumer
// passes over one that the server can't read, and says nothing.
type watch struct {
	pump *pump
	at   uint64 // last record that was given
	tip  uint64 // last record that must come
	gone uint64 // record that the leader did not have when it was last asked
	wait <-chan time.Time
}

// late fires when the next record is overdue; never once all have come.
func (w *watch) late() <-chan time.Time {
	if w.at >= w.tip {
		return nil
	}
	if w.wait == nil {
		w.wait = time.After(gapPatience)
	}
	return w.wait
}

func (w *watch) moved(to uint64) { w.at, w.wait = to, nil }

// ask gives the record up once the leader has twice not had it: a leader that
// was just elected may not have it yet.
func (w *watch) ask(ctx context.Context) error {
	w.wait = nil
	next := max(w.at, w.pump.received.Load()) + 1
	err := w.pump.log.gap(ctx, next)
	if err == nil {
		return nil
	}
	if w.gone != next {
		w.gone = next
		return nil
	}
	return err
}

// gap refuses to wait for a record that the leader does not have, although it
// had a later one; nil if it has it, or does not answer now.
func (l *Log) gap(ctx context.Context, sequence uint64) error {
	_, found, err := l.get(ctx, sequence)
	if err != nil || found {
		return nil
	}
	return l.gone(fmt.Sprintf("record %d is missing or can't be read", sequence))
}

// gone is the error of a log that lost records (decision 6).
func (l *Log) gone(what string) error {
	return fault.New(fault.FailedPrecondition, "stream %s lost a part of its log: %s", l.name, what).
		WithHint(remedy).
		WithDetail(fault.DetailLogLost, "stream", l.name)
}
