// Package replay rebuilds every projection from the log, as of now, of a
// sequence or of a time, and compares what was rebuilt with what is served.
package replay

import (
	"context"
	"errors"
	"time"

	"berth/events"
	"berth/events/eventlog"
	"berth/projections"
)

// readAhead is how many records are read while others are folded.
const readAhead = 1024

// Until is where a replay ends. The zero value is the tip at the call.
type Until struct {
	// Sequence is the last one that is folded, if not zero.
	Sequence uint64
	// Time ends the replay before the first commit that is later, if not zero.
	// Writers' clocks differ, so this is the log's order cut where it first
	// passes Time, never a selection of commits.
	Time time.Time
}

var errEnd = errors.New("the replay ends here")

// At folds the log from its beginning to until. A log that is shorter than
// until gives what there is: the result's Sequence tells.
func At(ctx context.Context, log eventlog.Log, space events.Space, until Until) (*projections.Views, error) {
	return From(ctx, log, projections.NewViews(space), until)
}

// From goes on from views that stand at an earlier sequence, such as those of
// a snapshot, and returns them. Reading and folding are two goroutines.
func From(ctx context.Context, log eventlog.Log, v *projections.Views, until Until) (*projections.Views, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := make(chan events.Record, readAhead)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for r := range queue {
			v.Apply(r)
		}
	}()
	err := log.Scan(ctx, v.Sequence(), func(r events.Record) error {
		if until.past(r) {
			return errEnd
		}
		select {
		case queue <- r:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	close(queue)
	<-done
	if err != nil && !errors.Is(err, errEnd) {
		return nil, err
	}
	return v, nil
}

// past says that a record is after the end. One that can't be read has no
// time of its own and never ends a replay.
func (u Until) past(r events.Record) bool {
	return u.Sequence != 0 && r.Sequence > u.Sequence || !u.Time.IsZero() && r.Meta.Time.After(u.Time)
}
