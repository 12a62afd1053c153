package drill

import (
	"encoding/json"
	"testing"
	"time"

	"berth/events"
	"berth/providers"
)

// startWith starts a seat whose plan asks for a sign.
func (r *rig) startWith(sign *events.ReadySign) events.Facts {
	r.Helper()
	r.until(events.VerbProvision)
	op := r.op(events.VerbStart, events.Arguments{})
	op.Plan.Connector = &events.Connector{Name: "exec", Ready: sign}
	out := r.do(op)
	if out.Kind != providers.Done {
		r.Fatalf("start: %s %v", out.Kind, out.Fault)
	}
	return out.Facts
}

func (r *rig) ready() *events.Readiness {
	r.Helper()
	a := r.m.Apply(r.now, Call{Verb: Inspect, Environment: envID(1)})
	if a.Err != nil {
		r.Fatal(a.Err)
	}
	return a.Facts.Ready
}

func TestASeatShowsItsSign(t *testing.T) {
	fd := &events.ReadySign{Kind: events.SignFD}
	if f := newRig(t).startWith(nil); f.Ready != nil {
		t.Errorf("without a sign: %+v", f.Ready)
	}
	if f := newRig(t).startWith(fd); f.Ready == nil || f.State != events.StateRunning {
		t.Errorf("faithful: %+v", f)
	}
	never := newRig(t, Rule{Verb: "start", Fault: Unready})
	if f := never.startWith(fd); f.Ready != nil || f.State != events.StateRunning {
		t.Errorf("unready: %+v", f)
	}
	never.now = never.now.Add(24 * time.Hour)
	if never.ready() != nil {
		t.Error("it showed its sign without having been told to")
	}
}

// A sign that is due comes at its time, also of a machine that was read back,
// and never from a seat that has ended meanwhile.
func TestASignComesLate(t *testing.T) {
	fd := &events.ReadySign{Kind: events.SignFD}
	r := newRig(t, Rule{Verb: "start", Fault: Unready, DelayMs: 5000})
	r.startWith(fd)
	raw, err := json.Marshal(r.m.s)
	if err != nil {
		t.Fatal(err)
	}
	again := &rig{T: t, m: &Machine{}, now: r.now}
	if err := json.Unmarshal(raw, &again.m.s); err != nil {
		t.Fatal(err)
	}
	again.m.rebuild()
	for name, m := range map[string]*rig{"as it was": r, "read back": again} {
		next, ok := m.m.Next()
		if !ok || !next.Equal(m.now.Add(5*time.Second)) {
			t.Fatalf("%s: next is %s, %t", name, next, ok)
		}
		m.now = m.now.Add(4999 * time.Millisecond)
		if m.ready() != nil {
			t.Errorf("%s: too early", name)
		}
		m.now = m.now.Add(time.Millisecond)
		m.m.Advance(m.now)
		if changed := m.m.TakeChanged(); len(changed) != 1 {
			t.Errorf("%s: %v were told of", name, changed)
		}
		if got := m.ready(); got == nil || !got.Since.Equal(m.now) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	ended := newRig(t, Rule{Verb: "start", Fault: Unready, DelayMs: 5000})
	ended.startWith(fd)
	ended.must(events.VerbStop, events.Arguments{})
	ended.now = ended.now.Add(time.Minute)
	if ended.ready() != nil {
		t.Error("a seat that has ended showed its sign")
	}
}
