//house:pure

package server

import (
	"slices"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/wire"
)

// answer is what became of an operation, once and for all: with facts it has
// landed, without it is excluded.
type answer struct {
	Facts    *events.Facts
	Fault    *fault.Error // of a refusal
	Evidence string
}

func (a *answer) verdict() providers.Verdict {
	if a.Facts != nil {
		return providers.Landed
	}
	return providers.Excluded
}

// operation is the state of one id, as the log has it.
type operation struct {
	verb     events.Verb
	digest   string
	accepted bool
	fenced   bool
	answer   *answer
}

// standing is where an environment stands, as far as its operations tell.
type standing struct {
	ref     string
	custody *events.Custody
	over    bool               // destroyed
	ends    []asked            // by operations that were not refused, the last one last
	ended   bool               // stopped at its end, and not started since
	held    bool               // by the driver, which has observed a deadline
	writer  events.Writer      // the manager that asked last
	open    events.OperationID // the last one that was accepted, while it has no answer
}

// asked is the end that an operation asks for.
type asked struct {
	by events.OperationID
	at time.Time
}

// end is the deadline that nobody but this server keeps; nil if there is none.
func (s standing) end() *time.Time {
	if s.over || s.held || s.ref == "" || len(s.ends) == 0 {
		return nil
	}
	return &s.ends[len(s.ends)-1].at
}

// apply folds one event.
func (s *standing) apply(e events.Event) {
	if a, ok := e.(events.ProviderAccepted); ok {
		if a.Expires != nil {
			s.ends = append(slices.Clip(s.ends), asked{a.Operation, *a.Expires})
		}
		if a.Writer != nil {
			s.writer = *a.Writer
		}
		s.open = a.Operation
		return
	}
	a, ok := e.(events.ProviderAnswered)
	if !ok {
		return
	}
	if s.open == a.Operation {
		s.open = ""
	}
	n := slices.IndexFunc(s.ends, func(e asked) bool { return e.by == a.Operation })
	switch {
	case n < 0:
	case a.Facts == nil:
		s.ends = slices.Concat(s.ends[:n], s.ends[n+1:]) // refused: the end before it stands
	default:
		s.ends = s.ends[n:] // it stands until a later one does
	}
	if a.Facts == nil {
		return
	}
	s.held = s.held || a.Facts.ExpiresAt != nil
	if a.Facts.Ref != "" {
		s.ref = a.Facts.Ref
	}
	if a.Facts.Custody != nil {
		s.custody = a.Facts.Custody
	}
	switch {
	case a.Verb == events.VerbStart, a.Verb == events.VerbRestore:
		s.ended = false
	case a.Verb == events.VerbStop && strings.HasPrefix(string(a.Operation), expiryPrefix):
		s.ended = true
	}
	s.over = s.over || a.Verb == events.VerbDestroy
}

// ledger is what the log says of the operations of one environment.
type ledger struct {
	standing
	id       events.EnvironmentID
	sequence uint64 // of the boundary: what the next decision expects
	ops      map[events.OperationID]*operation
	files    map[string]events.File
	broken   *fault.Error // a record that can't be read: nothing is decided on it
}

func newLedger(id events.EnvironmentID) *ledger {
	return &ledger{id: id, ops: map[events.OperationID]*operation{}, files: map[string]events.File{}}
}

// apply folds one record. A member of a torn publish was never acknowledged.
func (l *ledger) apply(r events.Record) {
	l.sequence = r.Sequence
	if r.Broken != nil {
		l.broken = fault.From(r.Broken)
	}
	if r.Torn || l.broken != nil {
		return
	}
	for _, e := range r.Events {
		l.applyEvent(e)
	}
}

func (l *ledger) applyEvent(e events.Event) {
	switch e := e.(type) {
	case events.ProviderAccepted:
		l.operation(e.Operation, e.Verb, e.Digest).accepted = true
		l.standing.apply(e)
	case events.ProviderFenced:
		l.operation(e.Operation, e.Verb, e.Digest).fenced = true
	case events.ProviderAnswered:
		o := l.operation(e.Operation, e.Verb, e.Digest)
		if o.answer != nil {
			return // an answer never changes
		}
		o.answer = &answer{Facts: e.Facts, Fault: e.Fault, Evidence: e.Evidence}
		if e.Facts != nil && e.Facts.File != nil {
			l.files[e.Facts.File.ID] = *e.Facts.File
		}
		l.standing.apply(e)
	default:
		l.broken = fault.New(fault.UnsupportedVersion, "%s is no event of a served provider", e.EventType())
	}
}

func (l *ledger) operation(id events.OperationID, v events.Verb, digest string) *operation {
	o := l.ops[id]
	if o == nil {
		o = &operation{verb: v, digest: digest}
		l.ops[id] = o
	}
	return o
}

// subject is the operation that an event of a served provider is about.
func subject(e events.Event) events.OperationID {
	switch e := e.(type) {
	case events.ProviderAccepted:
		return e.Operation
	case events.ProviderFenced:
		return e.Operation
	case events.ProviderAnswered:
		return e.Operation
	}
	return ""
}

// writer is who asked, as far as it is fit for a log.
func writer(w wire.Operation) *events.Writer {
	if _, err := events.ParseInstanceID(string(w.Writer.Instance)); err != nil {
		return nil
	}
	return &w.Writer
}

// expires is the end that an operation asks for, as events store times.
func expires(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	at := events.MillisUTC(*t)
	return &at
}
