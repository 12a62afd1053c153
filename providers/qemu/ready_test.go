//go:build linux

package qemu

import (
	"testing"

	"berth/events"
	"berth/events/fault"
)

// A machine shows the sign of its seat: a line on the descriptor is seen by the
// agent inside, a pattern in the output by whoever holds the machine. Until then
// it runs and is not ready.
func TestAMachineShowsItsSign(t *testing.T) {
	needMachines(t)
	r := newRig(t)
	for want, c := range map[string]struct {
		ready  events.ReadySign
		script string
	}{
		"it wrote a line on descriptor 3": {events.ReadySign{Kind: events.SignFD}, "read x; echo up >&3; exec sleep 1000"},
		"its output matched the pattern":  {events.ReadySign{Kind: events.SignPattern, Pattern: "^all is up$"}, "read x; echo all is up; exec sleep 1000"},
	} {
		p := plan(c.script)
		p.Connector = &events.Connector{Name: "exec", Ready: &c.ready}
		id, facts := r.running(p)
		if facts.Ready != nil || r.inspect(id).Ready != nil {
			t.Errorf("%s: it is ready before its sign", c.ready)
		}
		if err := r.say(id, "go\n"); err != nil {
			t.Fatal(err)
		}
		r.until("the sign", func() bool { f := r.inspect(id); return f.Ready != nil && f.Ready.Evidence == want })
		r.must(r.op(id, events.VerbDestroy))
	}
}

// What goes on from a memory would not show its sign again.
func TestASignAndAMemoryExcludeEachOther(t *testing.T) {
	p := events.Plan{Options: map[string]string{OptionCheckpoint: "memory"}, Connector: &events.Connector{Name: "exec", Ready: &events.ReadySign{Kind: events.SignFD}}}
	if _, err := choices(p); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Errorf("%v", err)
	}
	p.Options = nil
	if _, err := choices(p); err != nil {
		t.Errorf("a cold one: %v", err)
	}
}
