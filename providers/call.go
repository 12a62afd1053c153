package providers

import (
	"context"
	"fmt"
	"sync/atomic"

	"berth/events"
	"berth/events/fault"
)

// Late receives an answer that came after its call had already been given up
// as unknown. It is called at most once per call, from another goroutine, and
// never with Unknown, which would say nothing new.
type Late func(op Operation, out Outcome)

// Call runs one mutation and returns by the context's end, whatever the
// driver does (R85, law 2):
//
//   - a panic of the driver is unknown
//   - the end of ctx is unknown, with deadline-exceeded or cancelled; the
//     call goes on, and if an answer still comes, late gets it (may be nil)
//   - an answer that breaks the contract is unknown, and its text is dropped
//   - text in failures is scrubbed, and material is cut out of it
//   - material that is not of this launch is refused before the driver sees it
//
// A ctx that has ended already gives unknown as well, without calling: only
// reconciliation can tell, and a later attempt of the same id may land.
func Call(ctx context.Context, d Driver, op Operation, late Late) Outcome {
	d = Raw(d)
	if ctx.Err() != nil {
		return gaveUp(ctx, d, op)
	}
	if err := checkLaunch(d, op); err != nil {
		return RefusedWith(ScrubFault(fault.From(err), op.Material))
	}
	answer := make(chan Outcome, 1)
	var abandoned atomic.Bool
	go func() {
		out := guarded(ctx, d, op)
		answer <- out
		// Whoever swaps first decides who delivers: the caller or late.
		if abandoned.Swap(true) && late != nil && out.Kind != Unknown {
			late(op, out)
		}
	}()
	select {
	case out := <-answer:
		return out
	case <-ctx.Done():
	}
	if !abandoned.Swap(true) {
		return gaveUp(ctx, d, op)
	}
	return <-answer // it came in the same moment
}

func gaveUp(ctx context.Context, d Driver, op Operation) Outcome {
	return UnknownWith(fault.Ended(ctx.Err(), "%s of environment %s was not answered by provider %s (%s); the operation %s has to be reconciled",
		op.Verb, op.Environment, d.Name(), ctx.Err(), op.ID))
}

// guarded is the call itself with its answer checked.
func guarded(ctx context.Context, d Driver, op Operation) (out Outcome) {
	defer func() {
		if p := recover(); p != nil {
			out = UnknownWith(panicked(d, string(op.Verb), p, op.Material))
		}
	}()
	return checkOutcome(d, op, d.Do(ctx, op))
}

func panicked(d Driver, verb string, p any, m Material) *fault.Error {
	return ScrubFault(fault.New(fault.Internal, "provider %s panicked in %s: %s", d.Name(), verb, fmt.Sprint(p)), m)
}

// checkOutcome makes of any answer one that can be recorded.
func checkOutcome(d Driver, op Operation, out Outcome) Outcome {
	switch out.Kind {
	case Done:
		if err := CheckFacts(op, out.Facts); err != nil {
			return UnknownWith(violation(d.Name(), "%s: %s", op.Verb, fault.From(err).Message))
		}
		return DoneWith(out.Facts)
	case Refused, Unknown:
		if out.Fault == nil {
			return UnknownWith(violation(d.Name(), "%s was %s without a reason", op.Verb, out.Kind))
		}
		e := ScrubFault(out.Fault, op.Material)
		if out.Kind == Refused {
			return RefusedWith(e)
		}
		return UnknownWith(e)
	}
	return UnknownWith(violation(d.Name(), "%s answered with outcome kind %q", op.Verb, events.Scrub(string(out.Kind))))
}

// checkFinding makes of any finding one that can be recorded. A landing whose
// facts can't be kept stays open: nobody could say what landed.
func checkFinding(d Driver, op Operation, f Finding) Finding {
	open := func(e *fault.Error) Finding {
		return Finding{Verdict: Open, Evidence: "no usable answer", Fault: e.WithOutcome(fault.Unknown)}
	}
	if f.Evidence != "" {
		f.Evidence = events.Scrub(redact(f.Evidence, op.Material))
	}
	switch f.Verdict {
	case Landed:
		if err := CheckFacts(op, f.Facts); err != nil {
			return open(violation(d.Name(), "reconciliation of %s: %s", op.Verb, fault.From(err).Message))
		}
	case Excluded, Open:
		f.Facts = events.Facts{}
	default:
		return open(violation(d.Name(), "verdict %q", events.Scrub(string(f.Verdict))))
	}
	if f.Verdict != Open && f.Evidence == "" {
		return open(violation(d.Name(), "verdict %s without evidence", f.Verdict))
	}
	if f.Verdict == Open && f.Fault == nil {
		f.Fault = fault.New(fault.Unavailable, "provider %s can't tell what became of operation %s", d.Name(), op.ID)
	}
	f.Fault = ScrubFault(f.Fault, op.Material)
	return f
}
