package server

import (
	"context"
	"strconv"
	"sync"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/wire"
)

// Limits of the end of environments whose driver has no deadlines.
const (
	// maxExpiries is how many stops one end may take, each refused before the next.
	maxExpiries = 8
	// expireFor bounds one attempt; after it the stop is reconciled.
	expireFor = time.Minute
	// lookAgain is the first pause after an attempt that settled nothing; it
	// doubles up to lookSlowly. Deadlines are looked at this often too, because
	// the wall clock may be set.
	lookAgain  = time.Second
	lookSlowly = time.Minute
)

// expiryPrefix begins the id of every stop that this server makes.
const expiryPrefix = "expiry-"

// ends ends environments at their deadlines where the driver has none (R31,
// scenario 30). It keeps when to look at which; what is due is decided from the
// journal and by a look at the environment.
type ends struct {
	s *Server

	mu    sync.Mutex
	at    map[events.EnvironmentID]look
	moved chan struct{}
}

// look is when to look at an environment.
type look struct {
	next  time.Time
	pause time.Duration // before the one after it, if it settles nothing
	busy  bool
	moved *time.Time // the end that was noted while it was busy
}

func newEnds(s *Server) *ends {
	return &ends{s: s, at: map[events.EnvironmentID]look{}, moved: make(chan struct{}, 1)}
}

// note takes in where an environment stands. One that is looked at is left to
// that look, which may have seen it as it was before.
func (e *ends) note(id events.EnvironmentID, at standing) {
	e.mu.Lock()
	defer e.mu.Unlock()
	end := at.end()
	switch l := e.at[id]; {
	case l.busy:
		l.moved = end
		e.at[id] = l
	case end == nil:
		delete(e.at, id)
	default:
		e.set(id, *end)
	}
}

// found takes in where an environment stood when the journal was read at the
// start. It may have moved since: what is known of it already is not put off,
// nor forgotten. A look at a time that is no longer its end ends nothing.
func (e *ends) found(id events.EnvironmentID, at standing) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l, known := e.at[id]
	if end := at.end(); end != nil && (!known || !l.busy && end.Before(l.next)) {
		e.set(id, *end)
	}
}

// set keeps an end. Called with the lock.
func (e *ends) set(id events.EnvironmentID, end time.Time) {
	e.at[id] = look{next: end, pause: lookAgain}
	select {
	case e.moved <- struct{}{}:
	default:
	}
}

// run looks at each environment when it is time, until the server ends.
func (e *ends) run() {
	defer e.s.calls.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-e.s.base.Done():
			return
		case <-e.moved:
		case <-timer.C:
		}
		timer.Reset(e.due())
	}
}

// due begins what is due, and says how long nothing else is.
func (e *ends) due() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	wait, now := lookAgain, e.s.clock()
	for id, l := range e.at {
		left := l.next.Sub(now)
		switch {
		case l.busy:
		case left > 0:
			wait = min(wait, left)
		case e.s.begin():
			l.busy = true
			e.at[id] = l
			go e.look(id, l)
		}
	}
	return wait
}

// look ends an environment, or says when to look again.
func (e *ends) look(id events.EnvironmentID, l look) {
	defer e.s.calls.Done()
	ctx, cancel := context.WithTimeout(e.s.base, expireFor)
	defer cancel()
	next, err := e.s.expire(ctx, id)
	if err != nil {
		e.s.logger.Warn("an environment whose deadline is over could not be ended yet", "environment", id, "error", err)
		at := e.s.clock().Add(l.pause)
		next = &at
	}
	e.looked(id, next)
}

// looked keeps when to look again; nil: never, unless something was appended
// since the look began. Its own stop may be that, so it takes its time.
func (e *ends) looked(id events.EnvironmentID, next *time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.at[id]
	if soonest := e.s.clock().Add(l.pause); next == nil && l.moved != nil {
		if next = l.moved; next.Before(soonest) {
			next = &soonest
		}
	}
	if next == nil {
		delete(e.at, id)
		return
	}
	e.at[id] = look{next: *next, pause: min(2*l.pause, lookSlowly)}
}

// expire stops an environment whose deadline is over. It gives the time of a
// deadline that is not over, nil if there is nothing to end, and an error if it
// may still run.
func (s *Server) expire(ctx context.Context, id events.EnvironmentID) (next *time.Time, err error) {
	b, done, err := s.journal.book(id)
	if err != nil {
		return nil, err
	}
	defer done()
	b.mu.Lock()
	at, op := b.standing, b.expiry()
	b.mu.Unlock()
	if end := at.end(); end == nil || s.clock().Before(*end) {
		return end, nil
	}
	f, err := s.driver.Inspect(ctx, id, at.ref)
	switch {
	case err != nil:
		return nil, err
	case f.ExpiresAt != nil, f.State != events.StateRunning && f.State != events.StatePaused && f.State != events.StateUnknown:
		return nil, nil // the driver has a deadline after all, or nothing runs
	case op == "":
		s.logger.Error("an environment runs beyond its deadline, and every stop was refused; look at it", "environment", id, "stops", maxExpiries)
		return nil, nil
	}
	w := wire.Operation{ID: op, Environment: id, Verb: events.VerbStop, Ref: at.ref, Writer: at.writer}
	var later *time.Time // where an extension was accepted since the look began
	put := false
	out := s.do(ctx, w, expireFor, func(at standing) bool {
		later = at.end()
		put = later == nil || s.clock().Before(*later)
		return !put
	})
	switch {
	case put:
		return later, nil
	case out.Kind == providers.Done:
		s.hub.changed(id)
		return nil, nil
	case out.Kind == providers.Refused:
		return nil, out.Fault
	}
	if found := s.reconcile(ctx, w); found.Verdict == providers.Open {
		s.exclude(ctx, w) // so that the next attempt may have another id
	}
	return nil, fault.New(fault.Unavailable, "whether its stop landed is not known yet")
}

// expiry is the stop to end the environment with: the first that was not
// excluded, so that it is the same one after a restart; none after the last.
func (l *ledger) expiry() events.OperationID {
	for n := range maxExpiries {
		id := expiryID(l.id, n)
		if o := l.ops[id]; o == nil || o.answer == nil && !o.fenced {
			return id
		}
	}
	return ""
}

func expiryID(id events.EnvironmentID, n int) events.OperationID {
	return events.OperationID(expiryPrefix + strconv.Itoa(n) + "-" + string(id))
}

// ending is whether a stop that ends the environment was accepted, unless it is
// known that it did not land or the environment was started anew since.
func (l *ledger) ending() bool {
	for n := range maxExpiries {
		if o := l.ops[expiryID(l.id, n)]; o != nil && o.accepted && !o.fenced && o.answer == nil {
			return true
		}
	}
	return l.ended
}

// overdue refuses to begin what would run beyond its deadline, where no driver
// does it, and to put off an end that has begun: the sequence of the journal
// decides which of an extension and the end came first. Called with what the
// journal has before the operation.
func (s *Server) overdue(w wire.Operation, l *ledger) *fault.Error {
	end := l.end()
	if end == nil {
		return nil
	}
	switch w.Verb {
	case events.VerbExtend:
		if !l.ending() {
			return nil
		}
	case events.VerbStart, events.VerbResume, events.VerbRestore:
		if w.Expires != nil {
			end = w.Expires
		}
		if s.clock().Before(*end) {
			return nil
		}
	default:
		return nil
	}
	return fault.New(fault.FailedPrecondition, "environment %s can't %s: its lifetime ended at %s", w.Environment, w.Verb, end.Format(time.RFC3339))
}
