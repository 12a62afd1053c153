package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/wire"
)

// What is appended while an environment is looked at is looked at again: the
// look may have seen it before that, and would forget its deadline for good
// (R31).
func TestAnEndThatMovesDuringALookIsKept(t *testing.T) {
	const id = events.EnvironmentID("e")
	at := time.Unix(1_000, 0)
	s := &Server{clock: func() time.Time { return at.Add(-lookAgain) }}
	until := func(t time.Time) standing { return standing{ref: "r", ends: []asked{{at: t}}} }
	for name, c := range map[string]struct {
		noted []standing
		next  *time.Time
		want  *time.Time
	}{
		"nothing":                      {},
		"a start":                      {noted: []standing{until(at)}, want: &at},
		"a start, then its end":        {noted: []standing{until(at), {ref: "r", over: true}}},
		"a start, and a later attempt": {noted: []standing{until(at.Add(time.Hour))}, next: &at, want: &at},
	} {
		e := newEnds(s)
		e.note(id, until(at))
		e.at[id] = look{next: at, pause: lookAgain, busy: true}
		for _, s := range c.noted {
			e.note(id, s)
		}
		if !e.at[id].busy {
			t.Errorf("%s: a second look would begin beside the first", name)
		}
		e.looked(id, c.next)
		got, kept := e.at[id]
		if kept != (c.want != nil) || kept && (got.busy || !got.next.Equal(*c.want)) {
			t.Errorf("%s: %+v, %v", name, got, kept)
		}
	}
}

// plain is a driver without deadlines whose Inspect can be made to wait.
type plain struct {
	providers.Driver
	inspect func()

	mu      sync.Mutex
	verbs   []events.Verb
	adopted []events.EnvironmentID
	refuse  events.Verb
}

func (p *plain) Name() string { return "plain" }

func (p *plain) facts() events.Facts {
	return events.Facts{Ref: "r", State: events.StateRunning, ObservedAt: events.MillisUTC(at0)}
}

func (p *plain) Inspect(context.Context, events.EnvironmentID, string) (events.Facts, error) {
	if p.inspect != nil {
		p.inspect()
	}
	return p.facts(), nil
}

func (p *plain) Do(_ context.Context, op providers.Operation) providers.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	if op.Verb == p.refuse {
		return providers.RefusedWith(fault.New(fault.FailedPrecondition, "not here"))
	}
	p.verbs = append(p.verbs, op.Verb)
	return providers.DoneWith(p.facts())
}

func (p *plain) Adopt(_ context.Context, id events.EnvironmentID, _ string, _ *events.Custody) (events.Facts, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adopted = append(p.adopted, id)
	return p.facts(), nil
}

func (p *plain) did() []events.Verb {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.verbs)
}

// at0 is the time of servers whose clock a test sets.
var at0 = time.UnixMilli(1_700_000_000_000)

// under is a server on a driver; now is its clock.
func under(t *testing.T, d providers.Driver, log eventlog.Log, now func() time.Time) *Server {
	t.Helper()
	s, err := New(Config{Driver: d, Log: log, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (s *Server) make(ctx context.Context, v events.Verb, until time.Time) providers.Outcome {
	return s.do(ctx, wire.Operation{ID: events.OperationID("operation-" + string(v) + until.Format("-150405")), Environment: testID, Verb: v, Ref: "r", Expires: &until}, time.Minute, nil)
}

// Which of an extension and the end came first is decided by the sequence of
// the journal, however far the look at the environment was (R31, law 3): after
// an extension that was accepted there is no stop at the old end, and one that
// comes after the stop is refused.
func TestExtensionBesideAnExpiry(t *testing.T) {
	end, later := at0.Add(time.Hour), at0.Add(2*time.Hour)
	for name, c := range map[string]struct {
		refuse events.Verb // by the driver
		want   []events.Verb
		end    *time.Time // that is left
	}{
		"it is accepted":        {want: []events.Verb{events.VerbStart, events.VerbExtend}, end: &later},
		"the driver refuses it": {refuse: events.VerbExtend, want: []events.Verb{events.VerbStart, events.VerbStop}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &plain{refuse: c.refuse}
			s := under(t, d, memory.New(), func() time.Time { return at0 }) // its own looks find nothing
			if out := s.make(t.Context(), events.VerbStart, end); out.Kind != providers.Done {
				t.Fatal(out)
			}
			late := &Server{ // the same books, by a clock that is at the end
				driver: s.driver, clock: func() time.Time { return end }, logger: s.logger, journal: s.journal, admits: s.admits, hub: s.hub, base: s.base, turns: s.turns,
			}
			defer late.calls.Wait()
			d.inspect = func() {
				out := late.make(t.Context(), events.VerbExtend, later)
				if want := c.refuse != events.VerbExtend; (out.Kind == providers.Done) != want {
					t.Errorf("the extension: %+v", out)
				}
			}
			next, err := late.expire(t.Context(), testID)
			if err != nil || (next == nil) != (c.end == nil) || next != nil && !next.Equal(*c.end) {
				t.Errorf("%v %v, not %v", next, err, c.end)
			}
			if got := d.did(); !slices.Equal(got, c.want) {
				t.Errorf("%v, not %v", got, c.want)
			}
			if c.end != nil {
				return
			}
			out := late.make(t.Context(), events.VerbExtend, later.Add(time.Hour))
			if out.Kind != providers.Refused || fault.CodeOf(out.Fault) != fault.FailedPrecondition {
				t.Errorf("an extension after the end: %+v", out)
			}
		})
	}
}

// halting is a log whose first scans end in the middle.
type halting struct {
	eventlog.Log
	mu    sync.Mutex
	fails int
}

func (h *halting) Scan(ctx context.Context, from uint64, fn func(events.Record) error) error {
	h.mu.Lock()
	fails := h.fails > 0
	h.fails--
	h.mu.Unlock()
	n := 0
	return h.Log.Scan(ctx, from, func(r events.Record) error {
		if n++; fails && n > 2 {
			return errors.New("the log went away")
		}
		return fn(r)
	})
}

// A journal that can't be read to its end at the start is read again: what
// comes after would have no end and nobody to adopt it (R31, law 4).
func TestAFailedScanIsTriedAgain(t *testing.T) {
	log := memory.New()
	before := under(t, &plain{}, log, func() time.Time { return at0 })
	ids := []events.EnvironmentID{"11890a5d-ac96-774b-bcce-b302099a8057", "21890a5d-ac96-774b-bcce-b302099a8057"}
	for _, id := range ids {
		end := at0.Add(time.Hour)
		w := wire.Operation{ID: "operation-00000001", Environment: id, Verb: events.VerbStart, Expires: &end}
		if out := before.do(t.Context(), w, time.Minute, nil); out.Kind != providers.Done {
			t.Fatal(out)
		}
	}
	_ = before.Close()
	d := &plain{}
	s := under(t, d, &halting{Log: log, fails: 1}, func() time.Time { return at0 })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		s.ends.mu.Lock()
		known := len(s.ends.at)
		s.ends.mu.Unlock()
		d.mu.Lock()
		adopted := slices.Clone(d.adopted)
		d.mu.Unlock()
		if known == len(ids) && slices.Equal(adopted, ids) { // each once
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d ends are known, %v were adopted", known, adopted)
		}
	}
}

// While the host can't take new work it is refused, for good under its id; what
// ends something is not.
func TestNewWorkIsAdmitted(t *testing.T) {
	full := fault.New(fault.ResourceExhausted, "the disk is nearly full")
	d := &plain{}
	var room error
	s, err := New(Config{Driver: d, Log: memory.New(), Clock: func() time.Time { return at0 }, Admit: func() error { return room }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	do := func(v events.Verb) providers.Outcome {
		return s.do(t.Context(), wire.Operation{ID: events.OperationID("operation-" + string(v)), Environment: testID, Verb: v, Ref: "r"}, time.Minute, nil)
	}
	room = full
	for _, v := range events.Verbs {
		ends := v == events.VerbStop || v == events.VerbDestroy || v == events.VerbDeleteFile
		if out := do(v); (out.Kind == providers.Done) != ends || !ends && (out.Kind != providers.Refused || fault.CodeOf(out.Fault) != fault.ResourceExhausted) {
			t.Errorf("%s: %+v", v, out)
		}
	}
	before := len(d.did())
	room = nil
	if out := do(events.VerbStart); out.Kind != providers.Refused || len(d.did()) != before {
		t.Errorf("what was refused was done later: %+v", out)
	}
}
