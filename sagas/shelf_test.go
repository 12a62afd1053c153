package sagas_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/aggregates/instance"
	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/internal/ids"
	"berth/sagas"
	"berth/sagas/sagastest"
)

func register(t *testing.T, s *sagas.Shelf, source events.IDs) (instance.State, events.Record, error) {
	t.Helper()
	return s.DecideInstance(context.Background(), sagastest.Instance, events.Meta{ID: events.EventID(source.UUID())}, func(i instance.State) ([]events.Event, error) {
		return i.Register(sagastest.Instance, events.HostFacts{}, "", "v"), nil
	})
}

// A decision on an old fold is made again, and a refusal is never given from
// one (law 3, decision 8).
func TestShelfDecidesOnTheLastState(t *testing.T) {
	log, source := memory.New(), ids.Seeded(1, time.Now)
	one, two := sagas.NewShelf(log), sagas.NewShelf(log)
	for want := uint64(1); want <= 6; want += 2 {
		if i, _, err := register(t, one, source); err != nil || i.Epoch != want {
			t.Fatalf("epoch %d: %v", i.Epoch, err)
		}
		if i, _, err := register(t, two, source); err != nil || i.Epoch != want+1 {
			t.Fatalf("epoch %d: %v", i.Epoch, err)
		}
	}
	// One has epoch 5 cached; the stop of epoch 6 is refused there and must
	// be decided on what two appended.
	i, r, err := one.DecideInstance(t.Context(), sagastest.Instance, events.Meta{ID: events.EventID(source.UUID())}, func(i instance.State) ([]events.Event, error) { return i.Stop(6) })
	if err != nil || r.Sequence != 7 || i.Phase != instance.Stopped {
		t.Fatalf("%v %d %v", i.Phase, r.Sequence, err)
	}
}

// A lost acknowledgement is settled by the commit's id; a log that never
// answers gives unavailable with outcome unknown.
func TestShelfSettlesLostAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, source := memory.New(), ids.Seeded(1, time.Now)
		s := sagas.NewShelf(log)
		lost, once := fault.New(fault.Unavailable, "lost"), true
		log.SetHooks(memory.Hooks{After: func([]events.Record) error {
			if once {
				once = false
				return lost
			}
			return nil
		}})
		if i, r, err := register(t, s, source); err != nil || i.Epoch != 1 || r.Sequence != 1 {
			t.Fatalf("%d %d %v", i.Epoch, r.Sequence, err)
		}
		log.SetHooks(memory.Hooks{Before: func([]events.Commit) error { return lost }})
		if _, _, err := register(t, s, source); fault.From(err).Outcome != fault.Unknown {
			t.Fatal(err)
		}
		if tip, _ := log.Tip(t.Context()); tip != 1 {
			t.Errorf("tip %d", tip)
		}
	})
}

// Who waits for a decision of another is told what ended the wait, and that
// nothing was done; a boundary that is free is not called busy (E8, law 2).
func TestShelfWaitsForADecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, source := sagas.NewShelf(memory.New()), ids.Seeded(1, time.Now)
		expired, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		decide := func(ctx context.Context, f func()) error {
			_, _, err := s.DecideInstance(ctx, sagastest.Instance, events.Meta{ID: events.EventID(source.UUID())}, func(i instance.State) ([]events.Event, error) {
				f()
				return i.Register(sagastest.Instance, events.HostFacts{}, "", "v"), nil
			})
			return err
		}
		err := decide(t.Context(), func() {
			for ctx, want := range map[context.Context]fault.Code{expired: fault.DeadlineExceeded, cancelled: fault.Cancelled} {
				if e := fault.From(decide(ctx, func() {})); e.Code != want || e.Outcome != fault.NotExecuted {
					t.Errorf("%s, %s, want %s", e.Code, e.Outcome, want)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 { // a select that is left the choice takes either
			err := decide(expired, func() {})
			if fault.CodeOf(err) != fault.DeadlineExceeded || strings.Contains(err.Error(), "another decision") {
				t.Fatalf("the boundary was free: %v", err)
			}
		}
	})
}
