package explore

import (
	"errors"

	"berth/aggregates/slot"
	"berth/events"
	"berth/sagas"
)

func other(id events.InstanceID) events.InstanceID {
	if id == instances[0] {
		return instances[1]
	}
	return instances[0]
}

// fall has the acting manager die or stall at this point: that it died is that
// it never wakes up. Another epoch goes on, of the same instance or of the
// other, which takes the seat over (decision 1).
func (w *world) fall(next events.InstanceID) error {
	w.left.Crashes--
	w.sleep = &sleeper{self: w.self, seen: w.seat, try: w.try, mint: w.mint, clock: w.clock}
	w.self = events.Writer{Instance: next, Epoch: w.self.Epoch + 1}
	w.try, w.mint = sagas.Try{Observe: true}, sagas.Minted{}
	for n, l := range w.lives {
		if l == nil {
			continue
		}
		l = w.edit(n)
		l.heirTry = sagas.Try{Observe: true}
		if l.call != nil && l.call.asker == actor {
			l.call.asker = sleeps
		} else if l.call != nil {
			l.call.asker = nobody
		}
	}
	return w.takeOver()
}

// takeOver moves what the other instance held: the name and, of each life that
// was written off, the environment's own boundary.
func (w *world) takeOver() error {
	if s := w.seat; s.Slot.Held() && s.Slot.Holder != w.self.Instance {
		es, err := s.TakeOver(w.self.Instance, w.self.Epoch)
		if err != nil {
			return err
		}
		if err := w.add(w.current(), false, es...); err != nil {
			return err
		}
	}
	for n, l := range w.lives {
		if l == nil || l.heir == nil || l.heir.Slot.Holder == w.self.Instance || settled(l.heir.Environment) {
			continue
		}
		es, err := l.heir.TakeOver(w.self.Instance, w.self.Epoch)
		if err != nil {
			return err
		}
		if err := w.add(n, true, es...); err != nil {
			return err
		}
	}
	return nil
}

// stale says that the seat moved since the sleeper saw it.
func (w *world) stale() bool { return w.sleep.seen.Sequence != w.seat.Sequence }

// sleeper is a stalled manager that wakes up: it finishes the one decision
// that it was making, on the seat as it saw it, and finds out.
func (m *mover) sleeper() {
	z, n := m.w.sleep, m.w.current()
	if z == nil || n < 0 || !z.seen.Slot.Held() {
		return
	}
	v := m.w.view(n, false)
	v.Seat, v.Self, v.Try, v.Minted, v.Now = *z.seen, z.self, z.try, z.mint, moments[z.clock]
	a := m.w.r.Next(&v)
	switch appends := a.Kind == sagas.Append || a.Kind == sagas.Dispatch; {
	case !appends && m.w.stale():
		m.try("the stalled manager wakes up and finds the seat moved", func(w *world) error { return w.fenced(errMoved) })
		return
	case !appends:
		return // it reads, or rests: nothing comes of it
	}
	m.try("the stalled manager wakes up and appends: "+a.Step, func(w *world) error {
		var err error
		if a.Kind == sagas.Dispatch {
			err = w.dispatch(n, false, z.self, z.seen.Sequence, a, nobody)
		} else {
			err = w.commit(n, false, z.self, z.seen.Sequence, a.Events...)
		}
		return w.fenced(err)
	})
}

// fenced is what the sleeper does after its append: nothing more. One that was
// refused folds the news; a seat that is another's it leaves alone.
func (w *world) fenced(err error) error {
	z := w.sleep
	w.sleep = nil
	for n, l := range w.lives {
		if l != nil && l.call != nil && l.call.asker == sleeps {
			w.edit(n).call.asker = nobody
		}
	}
	if !errors.Is(err, errMoved) {
		return err
	}
	s := *w.seat
	if lost := s.Slot.Holder != z.self.Instance || s.Slot.Epoch > z.self.Epoch; lost && s.Slot.Phase != slot.Retired {
		v := sagas.View{Seat: s, Self: z.self, Now: w.now(), Fresh: w.fresh(), Try: z.try}
		if a := w.r.Next(&v); a.Kind != sagas.Idle {
			return w.broken("law 3", "epoch %d acts (%s) on a seat of epoch %d", z.self.Epoch, a.Step, s.Slot.Epoch)
		}
		w.r.checks["law 3"]++
	}
	return nil
}
