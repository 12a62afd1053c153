package sagas_test

import (
	"context"
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
