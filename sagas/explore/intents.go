package explore

import (
	"time"

	"berth/aggregates"
	"berth/aggregates/intent"
	"berth/events"
	"berth/sagas"
)

// The intents of a walk with Budget.Intent: the spawn is a user's launch, and
// its end may be one too.
const (
	launchIntent = events.GoalID("launch-1")
	retireIntent = events.GoalID("retire-1")
)

// admit lets the acting manager launch the name once: what a walk begins with.
func (w *world) admit() error {
	caller, _, _ := w.lives[0].boundary.Goal()
	es, err := w.seat.Admit(events.IntentAdmitted{Intent: launchIntent, Kind: events.IntentLaunch, By: caller, Instance: w.self.Instance, Epoch: w.self.Epoch,
		ExpiresAt: w.now().Add(intent.MaxLife)}, w.now())
	if err != nil {
		return err
	}
	return w.add(-1, false, es...)
}

func (w *world) use(id events.GoalID) intent.Use {
	return intent.Use{Intent: id, Request: events.CommandID("use-" + string(id)), Instance: w.self.Instance, Epoch: w.self.Epoch}
}

// take claims the name for a life: for its user, if the walk has an intent. One
// that can't be used any more is never used by anybody.
func (w *world) take(l *life) ([]events.Event, error) {
	if i, ok := w.seat.Intent(launchIntent); ok && l == w.lives[0] {
		es, err := w.seat.Launch(w.use(i.ID), w.claimOf(l), w.self, w.now())
		if err != nil {
			return nil, w.refusal("launch by an intent", es, err)
		}
		return es, nil
	}
	return w.r.Claim(*w.seat, w.claimOf(l))
}

// intents is what may be asked about the intents of the name.
func (m *mover) intents() {
	if len(m.w.seat.Intents) == 0 {
		return
	}
	m.ask("retire by intent", func(w *world) ([]events.Event, error) {
		s, caller := *w.seat, w.seat.Intents[0].By
		admitted, err := s.Admit(events.IntentAdmitted{Intent: retireIntent, Kind: events.IntentRetire, By: caller, Instance: s.Intents[0].Instance, Epoch: w.self.Epoch,
			UID: s.Slot.UID, ExpiresAt: w.now().Add(intent.MaxLife)}, w.now())
		if err != nil {
			return nil, err
		}
		if len(admitted) == 0 {
			return nil, nil
		}
		es, err := s.With(w.meta(), admitted...).RetireFor(w.use(retireIntent), w.self, w.now(), 0)
		if err != nil {
			return nil, err
		}
		return append(admitted, es...), nil
	})
	for _, i := range m.w.seat.Intents {
		if i.Phase == intent.Held {
			m.ask("let go", func(w *world) ([]events.Event, error) {
				return w.seat.ReleaseIntent(i.ID, i.By, "its host was switched off")
			})
		}
	}
}

// intended is what must hold of one event of an intent.
func (w *world) intended(before, after aggregates.Seat, e events.IntentEnded) error {
	i, _ := before.Intent(e.Intent)
	if e.Outcome == events.IntentEnrolled {
		w.r.checks["D7, D11"]++
		switch {
		case i.Phase == intent.Swept, i.Executor.Instance != before.Slot.Holder, i.Executor.Epoch != before.Slot.Epoch:
			return w.broken("D7, D11", "an intent of epoch %d of %.1s is enrolled on a seat of epoch %d of %.1s", i.Executor.Epoch, i.Executor.Instance, before.Slot.Epoch, before.Slot.Holder)
		case before.Slot.UID != i.UID || !before.Slot.Activated:
			return w.broken("D7, D11", "an intent is enrolled and its seat is not active")
		}
		return nil
	}
	if w.r.checks["D8, D10"]++; !retired(after) || after.Slot.UID != i.UID {
		return w.broken("D8, D10", "an intent is %s, and its lifecycle is %s", e.Outcome, after.Slot.Phase)
	}
	return nil
}

// holdsName is what intents mean for the name in every state: one that was used
// is refused to all others (D17), and has an outcome when all is over (D16).
func (w *world) holdsName() error {
	s := *w.seat
	i, held := s.Holding()
	if !held {
		return nil
	}
	if w.r.checks["D16, D17"]++; !s.Slot.Held() && i.Phase != intent.Held {
		return w.broken("D16, D17", "the name is free and its intent is %s", i.Phase)
	}
	_, err := w.r.Claim(s, aggregates.Claim{UID: "zzzzzzzzzzzzzzzzzzzzzzzzzz", Environment: "0191e1a0-ffff-7000-8000-000000000000"})
	_, door := s.Admit(events.IntentAdmitted{Intent: "another-1", Kind: events.IntentLaunch, By: i.By, Instance: w.self.Instance, Epoch: 1, ExpiresAt: w.now().Add(time.Minute)}, w.now())
	if err == nil || door == nil {
		return w.broken("D16, D17", "the name is held by an intent that is %s, and is given to another", i.Phase)
	}
	return nil
}

// kept says that a seat whose launch has no executor any more is ended, and
// nothing else is done for it (D20).
func (w *world) kept(a sagas.Action) error {
	if !w.seat.Unpreserved(w.self) || open(w.seat.Environment) {
		return nil
	}
	if w.r.checks["D20"]++; a.Step != "end" && a.Step != "expire" && a.Kind != sagas.Idle {
		return w.broken("D20", "the run that launched the seat is over and what is done is %s (%s)", a.Kind, a.Step)
	}
	return nil
}

// intents adds what is remembered of them.
func (b *writer) intents(w *world, s *aggregates.Seat) {
	for _, i := range s.Intents {
		b.text(string(i.ID), string(i.Phase), string(i.Outcome))
		b.flags(i.Epoch == w.self.Epoch && i.Instance == w.self.Instance, i.Executor == w.self, i.Executor.Instance == w.self.Instance, i.SweptBy.Instance == i.Executor.Instance,
			i.Executor.Epoch == s.Slot.Epoch, w.now().After(i.ExpiresAt), i.UID == s.Slot.UID)
	}
}
