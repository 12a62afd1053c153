package server

import (
	"context"
	"fmt"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/wire"
)

// do runs one mutation once, whatever happens to the connection, or gives the
// answer that its id has already (R27, R86). ctx is that of the request; limit
// bounds the call itself (R85). An operation that is new is accepted only while
// due holds of where its environment stands; nil always holds.
func (s *Server) do(ctx context.Context, w wire.Operation, limit time.Duration, due func(standing) bool) providers.Outcome {
	if !s.begin() {
		return providers.UnknownWith(stopping())
	}
	defer s.calls.Done()
	b, done, err := s.journal.book(w.Environment)
	if err != nil {
		return providers.UnknownWith(fault.From(err))
	}
	defer done()
	c, o, err := s.admit(w, b, limit, due)
	switch {
	case err != nil:
		return providers.UnknownWith(fault.From(err))
	case o.digest != w.Digest():
		return providers.RefusedWith(otherArguments(w))
	case o.answer != nil:
		return o.answer.outcome(w)
	case o.fenced:
		return providers.RefusedWith(fault.New(fault.Expired, "operation %s was excluded before it arrived", w.ID))
	case c == nil:
		// Accepted by a process that is gone or another server, or given up:
		// asking is safe, calling again might not be.
		return s.unanswered(ctx, w)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return providers.UnknownWith(fault.New(fault.DeadlineExceeded, "operation %s goes on at the provider", w.ID))
	}
	b.mu.Lock()
	a := b.ops[w.ID].answer
	b.mu.Unlock()
	if a == nil && c.why != nil {
		return providers.UnknownWith(c.why)
	}
	if a == nil {
		return providers.UnknownWith(fault.New(fault.DeadlineExceeded, "the provider has no answer of operation %s yet; it has to be reconciled", w.ID))
	}
	return a.outcome(w)
}

// admit accepts an operation that is new and begins its call, which runs on
// whatever becomes of the request. It gives the operation as it stands, and
// the call of this process that is under way, if there is one.
func (s *Server) admit(w wire.Operation, b *book, limit time.Duration, due func(standing) bool) (*call, operation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := false
	var refused *fault.Error
	err := s.journal.decide(b, func() events.Event {
		if first = b.ops[w.ID] == nil && (due == nil || due(b.standing)); !first {
			return nil
		}
		e := events.ProviderAccepted{Operation: w.ID, Verb: w.Verb, Digest: w.Digest(), Writer: writer(w)}
		if refused = s.overdue(w, b.ledger); refused == nil {
			refused = s.crowded(w)
		}
		if refused == nil {
			e.Expires = expires(w.Expires)
		}
		return e
	})
	switch {
	case err != nil:
		return nil, operation{}, err
	case b.ops[w.ID] == nil:
		return nil, operation{}, fault.New(fault.Conflict, "environment %s moved before operation %s was accepted", w.Environment, w.ID).WithOutcome(fault.NotExecuted)
	}
	if first {
		c := &call{done: make(chan struct{})}
		b.calls[w.ID] = c
		s.calls.Add(1) // not from zero: this request is counted
		s.journal.hold(b)
		go s.run(w, b, c, limit, refused)
	}
	return b.calls[w.ID], *b.ops[w.ID], nil
}

// crowded refuses what is new while the host can't take it. It is accepted and
// answered like any other refusal, which the space that is held back is for.
func (s *Server) crowded(w wire.Operation) *fault.Error {
	switch w.Verb {
	case events.VerbStop, events.VerbDestroy, events.VerbDeleteFile:
		return nil // what ends something makes room
	}
	if err := s.admits(); err != nil {
		return fault.From(err)
	}
	return nil
}

// run is the one call to the driver; refused takes its place.
func (s *Server) run(w wire.Operation, b *book, c *call, limit time.Duration, refused *fault.Error) {
	defer s.calls.Done()
	defer s.journal.release(b)
	ctx, cancel := context.WithTimeout(s.base, limit)
	defer cancel()
	op := w.Operation()
	op.Plan.Provider, op.Deadline = s.driver.Name(), s.clock().Add(limit)
	var out providers.Outcome
	switch {
	case refused != nil:
		out = providers.RefusedWith(refused)
	case s.turn(ctx):
		out = providers.Call(ctx, s.driver, op, func(_ providers.Operation, late providers.Outcome) { s.settle(w, answerOf(late)) })
		s.leave()
	default:
		// Nobody called the driver, and nobody will under this id.
		out = providers.RefusedWith(busy(s))
	}
	s.settle(w, answerOf(out))
	b.mu.Lock()
	defer b.mu.Unlock()
	if out.Kind == providers.Unknown {
		c.why = out.Fault
	}
	delete(b.calls, w.ID)
	close(c.done)
}

// settle keeps the first answer of an operation; nil says nothing.
func (s *Server) settle(w wire.Operation, a *answer) {
	if a == nil {
		return
	}
	b, done, err := s.journal.book(w.Environment)
	if err != nil {
		return // stopping: the driver is asked after the next start
	}
	defer done()
	b.mu.Lock()
	defer b.mu.Unlock()
	err = s.journal.decide(b, func() events.Event {
		if o := b.ops[w.ID]; o != nil && o.answer != nil {
			return nil
		}
		return events.ProviderAnswered{Operation: w.ID, Verb: w.Verb, Digest: w.Digest(), Facts: a.Facts, Fault: a.Fault, Evidence: a.Evidence}
	})
	if err != nil {
		s.logger.Error("an answer could not be kept", "environment", w.Environment, "operation", w.ID, "error", err)
	}
}

// unanswered answers a repeated call whose first answer was lost.
func (s *Server) unanswered(ctx context.Context, w wire.Operation) providers.Outcome {
	f := s.reconcile(ctx, w)
	switch f.Verdict {
	case providers.Landed:
		return providers.DoneWith(f.Facts)
	case providers.Excluded:
		return providers.RefusedWith(fault.New(fault.Expired, "operation %s can't land any more: %s", w.ID, f.Evidence))
	}
	return providers.UnknownWith(f.Fault)
}

// reconcile says what became of an operation: from the journal, else by the
// driver.
func (s *Server) reconcile(ctx context.Context, w wire.Operation) providers.Finding {
	b, done, err := s.journal.book(w.Environment)
	if err != nil {
		return stillOpen(fault.From(err))
	}
	defer done()
	b.mu.Lock()
	o := b.ops[w.ID]
	f, known := told(w, o)
	b.mu.Unlock()
	if known {
		return f
	}
	return s.proved(w, s.ask(ctx, w, s.driver.Reconcile))
}

// exclude makes it impossible for an operation to land, if it has not: by our
// own fence if it never arrived, and by the driver's.
func (s *Server) exclude(ctx context.Context, w wire.Operation) providers.Finding {
	b, done, err := s.journal.book(w.Environment)
	if err != nil {
		return stillOpen(fault.From(err))
	}
	defer done()
	b.mu.Lock()
	err = s.journal.decide(b, func() events.Event {
		if b.ops[w.ID] != nil {
			return nil
		}
		return events.ProviderFenced{Operation: w.ID, Verb: w.Verb, Digest: w.Digest()}
	})
	if err != nil {
		b.mu.Unlock()
		return stillOpen(fault.From(err))
	}
	o := b.ops[w.ID]
	f, known := told(w, o)
	never := !o.accepted
	b.mu.Unlock()
	if known {
		return f
	}
	f = s.ask(ctx, w, s.driver.Exclude)
	if f.Verdict == providers.Open && never && fault.CodeOf(f.Fault) == fault.Unimplemented {
		f = kept()
	}
	return s.proved(w, f)
}

// kept is the finding of our own fence: the driver is reached through this
// server only, and never heard of the operation.
func kept() providers.Finding {
	return providers.Finding{Verdict: providers.Excluded, Evidence: "it was fenced before it arrived, and is refused if it does"}
}

// told is what the journal knows of an operation.
func told(w wire.Operation, o *operation) (providers.Finding, bool) {
	switch {
	case o == nil:
		return providers.Finding{}, false
	case o.digest != w.Digest():
		return stillOpen(otherArguments(w)), true
	case o.answer != nil:
		f := providers.Finding{Verdict: o.answer.verdict(), Evidence: o.answer.Evidence}
		if o.answer.Facts != nil {
			f.Facts = *o.answer.Facts
		}
		return f, true
	}
	return providers.Finding{}, false
}

// ask puts a question to the driver when it is its turn.
func (s *Server) ask(ctx context.Context, w wire.Operation, question func(context.Context, providers.Operation) providers.Finding) providers.Finding {
	if !s.turn(ctx) {
		return stillOpen(busy(s))
	}
	defer s.leave()
	op := w.Operation()
	op.Plan.Provider = s.driver.Name()
	if at, ok := ctx.Deadline(); ok {
		op.Deadline = at
	}
	return question(ctx, op)
}

// proved keeps a finding that is a proof.
func (s *Server) proved(w wire.Operation, f providers.Finding) providers.Finding {
	switch f.Verdict {
	case providers.Landed:
		facts := f.Facts
		s.settle(w, &answer{Facts: &facts, Evidence: f.Evidence})
	case providers.Excluded:
		s.settle(w, &answer{Evidence: f.Evidence})
	}
	return f
}

func stillOpen(e *fault.Error) providers.Finding {
	return providers.Finding{Verdict: providers.Open, Evidence: "no answer", Fault: e}
}

func otherArguments(w wire.Operation) *fault.Error {
	return fault.New(fault.Conflict, "operation %s of environment %s was %s with other arguments before; use another id", w.ID, w.Environment, w.Verb)
}

// answerOf is the answer that an outcome gives; nil if it says nothing.
func answerOf(out providers.Outcome) *answer {
	switch out.Kind {
	case providers.Done:
		f := out.Facts
		return &answer{Facts: &f, Evidence: "the answer of the call, kept by the provider"}
	case providers.Refused:
		return &answer{Fault: out.Fault,
			Evidence: events.Scrub(fmt.Sprintf("the call was refused: %s", out.Fault.Message))}
	}
	return nil
}

// outcome is the answer as it is given again.
func (a *answer) outcome(w wire.Operation) providers.Outcome {
	if a.Facts != nil {
		return providers.DoneWith(*a.Facts)
	}
	if a.Fault != nil {
		return providers.RefusedWith(a.Fault)
	}
	return providers.RefusedWith(fault.New(fault.Expired, "operation %s can't land any more: %s", w.ID, a.Evidence))
}
