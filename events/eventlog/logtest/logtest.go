package logtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
)

// Subject is one fresh log and what a test can do to it.
type Subject struct {
	Log eventlog.Log
	// AppendRaw stores any bytes on a boundary, as a stranger or a newer
	// program might.
	AppendRaw func(b events.Boundary, body []byte) error
	// Refuse makes the store refuse new commits, as a full disk does; nil if
	// it can't be done.
	Refuse func()
	// Reopen returns the log as a new process would see it.
	Reopen func() eventlog.Log
}

// patience bounds a whole test, however slow the machine.
const patience = 60 * time.Second

// Run runs the suite; open returns a fresh log each time.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, context.Context, Subject)
	}{
		{"expected sequences", expectedSequences},
		{"conflict names the boundary and both sequences", conflictNames},
		{"the same commit again is answered with what is stored", sameCommit},
		{"atomic across boundaries", atomicBatch},
		{"the same batch again is answered with what is stored", sameBatch},
		{"the chain of hashes", chain},
		{"everything survives reopening", reopening},
		{"follow resumes after every cut", everyCut},
		{"follow is live and caught up once", followLive},
		{"scan ends at the tip", scanEnds},
		{"a reader's error ends follow", readerError},
		{"a store that refuses loses nothing", refusing},
		{"what can't be read is told with its sequence", broken},
		{"a torn batch is ignored and told", torn},
		{"concurrent writers store each commit once", concurrent},
		{"limits at the edge", limits},
		{"a cancelled context", cancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c.run(t, ctx, open(t))
		})
	}
}

// start is the id of the first commit; the others follow it.
const start = events.EventID("01890a5d-ac96-774b-bcce-b30209900000")

const uid = events.UID("abcdefghijklmnopqrstuvwxyz")

// Commit makes the n-th commit of a test: one event, its own id.
func Commit(n int, b events.Boundary, expect uint64) events.Commit {
	return events.Commit{
		Boundary: b, Expect: expect,
		Meta: events.Meta{
			ID: start.At(n * eventlog.MaxEventsPerCommit), Time: time.UnixMilli(1_700_000_000_000 + int64(n)).UTC(),
			Caller: events.Caller{Owner: "local", Actor: "web", UID: uid}, Writer: events.Writer{Instance: events.InstanceID(uid), Epoch: 3},
			Command: events.CommandID(fmt.Sprintf("c%d", n)),
		},
		Events: []events.Event{events.SlotTerminalizing{UID: uid, Reason: fmt.Sprintf("number %d", n)}},
	}
}

func seat(n int) events.Boundary {
	return events.SeatBoundary("local", events.Alias(fmt.Sprintf("s%d", n)))
}

func mustCommit(t *testing.T, ctx context.Context, l eventlog.Log, c events.Commit) events.Record {
	t.Helper()
	r, err := l.Commit(ctx, c)
	if err != nil {
		t.Fatalf("commit on %s: %v", c.Boundary, err)
	}
	return r
}

func load(t *testing.T, ctx context.Context, l eventlog.Log, b events.Boundary, after uint64) []events.Record {
	t.Helper()
	rs, err := l.Load(ctx, b, after)
	if err != nil {
		t.Fatalf("load %s: %v", b, err)
	}
	return rs
}

// scan is everything after a sequence.
func scan(t *testing.T, ctx context.Context, l eventlog.Log, after uint64) []events.Record {
	t.Helper()
	var out []events.Record
	if err := l.Scan(ctx, after, func(r events.Record) error { out = append(out, r); return nil }); err != nil {
		t.Fatalf("scan: %v", err)
	}
	return out
}

func wantCode(t *testing.T, err error, code fault.Code, outcome fault.Outcome) {
	t.Helper()
	f := fault.From(err)
	if f == nil || f.Code != code || f.Outcome != outcome {
		t.Fatalf("got %v, want %s with outcome %s", err, code, outcome)
	}
}

// text is the record's one event's reason, or what is wrong with it.
func text(r events.Record) string {
	switch {
	case r.Broken != nil:
		return "broken"
	case r.Torn:
		return "torn"
	case len(r.Events) != 1:
		return fmt.Sprintf("%d events", len(r.Events))
	}
	return strings.TrimPrefix(r.Events[0].(events.SlotTerminalizing).Reason, "number ")
}

func texts(rs []events.Record) string {
	var out []string
	for _, r := range rs {
		out = append(out, fmt.Sprintf("%d:%s", r.Sequence, text(r)))
	}
	return strings.Join(out, " ")
}

var errEnough = errors.New("enough")
