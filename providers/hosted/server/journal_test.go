package server

import (
	"fmt"
	"sync"
	"testing"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/internal/ids"
	"berth/providers"
	"berth/providers/hosted/wire"
)

const (
	testID  = events.EnvironmentID("01890a5d-ac96-774b-bcce-b302099a8057")
	otherID = events.EnvironmentID("01890a5d-ac96-774b-bcce-b302099a8058")
)

var random = ids.New()

func on(log *memory.Log) *journal {
	return openJournal(log, func(op events.OperationID) events.Meta {
		return events.Meta{ID: events.EventID(random.UUID()), Operation: op}
	}, func(events.EnvironmentID, standing) {})
}

func use(t *testing.T, j *journal) (*book, func()) {
	t.Helper()
	b, done, err := j.book(testID)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	return b, func() { b.mu.Unlock(); done() }
}

func nth(n int) events.OperationID { return events.OperationID(fmt.Sprintf("operation-%08d", n)) }

func accepted(n int) events.Event {
	return events.ProviderAccepted{Operation: nth(n), Verb: events.VerbStart, Digest: "d"}
}

func answered(n int, facts *events.Facts) events.Event {
	return events.ProviderAnswered{Operation: nth(n), Verb: events.VerbStart, Digest: "d", Facts: facts, Evidence: "x"}
}

// add appends an event whatever the book says.
func add(j *journal, b *book, e events.Event) error {
	return j.decide(b, func() events.Event { return e })
}

// TestRecordThatCantBeRead (law 4): it stops its environment and no other.
func TestRecordThatCantBeRead(t *testing.T) {
	log := memory.New()
	j := on(log)
	b, done := use(t, j)
	if err := add(j, b, accepted(1)); err != nil {
		t.Fatal(err)
	}
	done()
	log.AppendRaw(events.ProviderBoundary(testID), []byte("{broken"))
	j = on(log) // as after a restart
	if _, _, err := j.book(testID); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
	if _, done, err := j.book(otherID); err != nil {
		t.Error(err)
	} else {
		done()
	}
	if all, err := j.living(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
}

// TestStrangeEventStopsItsEnvironment (law 4): what a manager would append is
// not guessed at.
func TestStrangeEventStopsItsEnvironment(t *testing.T) {
	j := on(memory.New())
	b, done := use(t, j)
	if err := add(j, b, events.UIDReserved{}); err != nil {
		t.Fatal(err)
	}
	done()
	if _, _, err := j.book(testID); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}

// TestFirstAnswerWins: an answer never changes.
func TestFirstAnswerWins(t *testing.T) {
	j := on(memory.New())
	b, done := use(t, j)
	defer done()
	for _, f := range []*events.Facts{{Ref: "r"}, nil} {
		if err := add(j, b, answered(1, f)); err != nil {
			t.Fatal(err)
		}
	}
	if v := b.ops[nth(1)].answer.verdict(); v != providers.Landed {
		t.Errorf("%s", v)
	}
}

// TestOperationsAreBounded: at the limit a new id is refused, a known one goes on.
func TestOperationsAreBounded(t *testing.T) {
	j := on(memory.New())
	b, done := use(t, j)
	defer done()
	for n := range wire.MaxOperations - 1 {
		b.applyEvent(accepted(n))
	}
	if err := add(j, b, accepted(wire.MaxOperations-1)); err != nil {
		t.Errorf("the last one: %v", err)
	}
	if err := add(j, b, accepted(wire.MaxOperations)); fault.CodeOf(err) != fault.ResourceExhausted {
		t.Errorf("one too many: %v", err)
	}
	if err := add(j, b, answered(0, nil)); err != nil {
		t.Errorf("the answer of a known one: %v", err)
	}
}

// TestLostAcknowledgementIsRead (laws 1 and 2): a commit whose end nobody knows
// is an error, nothing is acted on, and the next use reads what is there.
func TestLostAcknowledgementIsRead(t *testing.T) {
	lost := fault.New(fault.Unavailable, "no acknowledgement")
	for stored, hooks := range map[bool]memory.Hooks{
		true:  {After: func([]events.Record) error { return lost }},
		false: {Before: func([]events.Commit) error { return lost }},
	} {
		log := memory.New()
		j := on(log)
		log.SetHooks(hooks)
		b, done := use(t, j)
		if err := add(j, b, accepted(1)); fault.CodeOf(err) != fault.Unavailable || len(b.ops) != 0 {
			t.Errorf("stored %t: %v, %d operations", stored, err, len(b.ops))
		}
		done()
		log.SetHooks(memory.Hooks{})
		b, done = use(t, j)
		if o := b.ops[nth(1)]; (o != nil) != stored {
			t.Errorf("stored %t: %+v", stored, o)
		}
		done()
	}
}

// TestOneAcceptOnOneLog (law 3): of two servers on one log one accepts an
// operation, and the other sees that; what one fenced the other does not accept.
func TestOneAcceptOnOneLog(t *testing.T) {
	log := memory.New()
	var mu sync.Mutex
	accepts, fences := map[events.OperationID]int{}, map[events.OperationID]int{}
	count := func(m map[events.OperationID]int, id events.OperationID) { mu.Lock(); m[id]++; mu.Unlock() }
	const ops = 50
	var wg sync.WaitGroup
	for server := range 4 {
		j := on(log)
		wg.Go(func() {
			for n := range ops {
				b, done, err := j.book(testID)
				if err != nil {
					t.Error(err)
					return
				}
				b.mu.Lock()
				id, won := nth(n), false
				err = j.decide(b, func() events.Event {
					if won = b.ops[id] == nil; !won {
						return nil
					}
					if server == 3 {
						return events.ProviderFenced{Operation: id, Verb: events.VerbStart, Digest: "d"}
					}
					return accepted(n)
				})
				b.mu.Unlock()
				done()
				switch {
				case err != nil:
					t.Error(err)
				case won && server == 3:
					count(fences, id)
				case won:
					count(accepts, id)
				}
			}
		})
	}
	wg.Wait()
	for n := range ops {
		if a, f := accepts[nth(n)], fences[nth(n)]; a+f != 1 {
			t.Errorf("operation %d was accepted %d times and fenced %d times", n, a, f)
		}
	}
	if last, err := log.Tip(t.Context()); err != nil || last != ops {
		t.Errorf("%d records for %d operations: %v", last, ops, err)
	}
}

// TestIdleBooksAreBounded: what nobody asks about is folded again when somebody does.
func TestIdleBooksAreBounded(t *testing.T) {
	log := memory.New()
	j := on(log)
	b, done := use(t, j)
	if err := add(j, b, accepted(1)); err != nil {
		t.Fatal(err)
	}
	done()
	for range maxIdle {
		_, done, err := j.book(events.EnvironmentID(random.UUID()))
		if err != nil {
			t.Fatal(err)
		}
		done()
	}
	if len(j.open) != maxIdle || j.open[testID] != nil {
		t.Errorf("%d are kept, at most %d were to be", len(j.open), maxIdle)
	}
	b, done = use(t, j)
	defer done()
	if !b.ops[nth(1)].accepted {
		t.Error("what was dropped was not folded again")
	}
}

// TestClosedJournal: after the end nothing is begun.
func TestClosedJournal(t *testing.T) {
	j := on(memory.New())
	j.close()
	if _, _, err := j.book(testID); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}

// TestFarBehindIsReset (scenario 33): a client that is further behind than the
// changes that are kept is told to look at everything; one at the edge is not.
func TestFarBehindIsReset(t *testing.T) {
	h := newHub()
	first := h.after(t.Context(), "").Cursor
	for range maxChanges {
		h.changed(testID)
	}
	if c := h.after(t.Context(), first); c.Reset || len(c.Environments) != 1 {
		t.Errorf("at the edge: %+v", c)
	}
	h.changed(testID)
	if c := h.after(t.Context(), first); !c.Reset {
		t.Errorf("beyond: %+v", c)
	}
	now := h.after(t.Context(), "").Cursor
	h.changed(otherID)
	if c := h.after(t.Context(), now); c.Reset || len(c.Environments) != 1 {
		t.Errorf("the newest: %+v", c)
	}
	for _, bad := range []string{"x", "x-1", h.boot + "-99999999", h.boot + "--1", h.boot} {
		if c := h.after(t.Context(), bad); !c.Reset {
			t.Errorf("cursor %q: %+v", bad, c)
		}
	}
}
